#!/usr/bin/env bash
# Sends the overrides that plan.sh and run.sh noted to their central log. The only step with Kafka's password; where it
# fails, so does the job, since no override holds that the log does not have.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
audit=$RUNNER_TEMP/rampgate-gate/audit.jsonl
[[ -s $audit ]] || exit 0
. "${rampgate%/.venv/bin/rampgate}/.ci/kafka_login" "${rampgate%/*}/python" "$RUNNER_TEMP"
cd "$TARGET"
RAMPGATE_KAFKA=$KAFKA "$rampgate" overrides publish "$audit" --json
