#!/usr/bin/env bash
# Sends the overrides that read.sh noted to their central log. The only step with Kafka's password; where it fails, so does
# the job, since no override holds that the log does not have.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
audit=$RUNNER_TEMP/rampgate-overrides/audit.jsonl
[[ -s $audit ]] || exit 0
if [[ -z $KAFKA ]]; then
    echo "::error::no override holds that the central log does not have, and the input kafka names none"
    exit 1
fi
. "${rampgate%/.venv/bin/rampgate}/.ci/kafka_login" "${rampgate%/*}/python" "$RUNNER_TEMP"
cd "$TARGET"
RAMPGATE_KAFKA=$KAFKA "$rampgate" overrides publish "$audit" --json
