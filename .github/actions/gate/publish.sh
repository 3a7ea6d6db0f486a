#!/usr/bin/env bash
# Sends the overrides that plan.sh and run.sh noted to their central log. The only step with Kafka's password; where it
# fails, so does the job, since no override holds that the log does not have.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
audit=$RUNNER_TEMP/rampgate-gate/audit.jsonl
[[ -s $audit ]] || exit 0
umask 077
secret=$(mktemp "$RUNNER_TEMP/kafka.XXXXXX")
trap 'rm -f "$secret"' EXIT
printf %s "$KAFKA_PASSWORD" >"$secret"
security=$("${rampgate%/*}/python" -c 'import json, sys
told = json.loads(sys.stdin.read().strip() or "{}")
print(json.dumps(told | {"secret_file": sys.argv[1]} if "user" in told else told))' "$secret" <<<"$KAFKA_SECURITY")
cd "$TARGET"
RAMPGATE_KAFKA=$KAFKA RAMPGATE_KAFKA_SECURITY=$security "$rampgate" overrides publish "$audit" --json
