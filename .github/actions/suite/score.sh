#!/usr/bin/env bash
# Scores the answers of generate.sh, by the target's cases, checks and judges. The only step with the model's, Opik's and
# the store's keys; of the proposal it reads the suite's candidate and hashes its parts.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
proposed=$(cd "$PROPOSED" && pwd)
answers=$(cd "$ANSWERS" && pwd)/answers.jsonl
folder=$RUNNER_TEMP/rampgate-suite
rm -rf "$folder"
mkdir -p "$folder" "$RUNNER_TEMP/rampgate-suite-store"
echo "folder=$folder" >>"$GITHUB_OUTPUT"
cd "$TARGET"
for name in MODEL_URL MODEL_KEY SEAL_KEY OPIK OPIK_API_KEY; do
    if [[ -n ${!name} ]]; then export "RAMPGATE_$name=${!name}"; fi
done
arguments=(--only score --answers "$answers" --proposed "$proposed/$(dirname "$SUITE")" --commit "$COMMIT")
arguments+=(--store "${STORE:-$RUNNER_TEMP/rampgate-suite-store/store.db}" --configs "$CONFIGS")
arguments+=(--out "$folder/results.jsonl" --canary "$folder/canary.jsonl" --format github --json)
for ending in json xml html; do arguments+=(--report "$folder/suite.$ending"); done
[[ -z ${GITHUB_STEP_SUMMARY:-} ]] || arguments+=(--report "$GITHUB_STEP_SUMMARY")
[[ -z $LABEL ]] || arguments+=(--label "$LABEL")
[[ -z $MAX_COST ]] || arguments+=(--max-cost "$MAX_COST")
minutes=30
[[ $SET == full ]] || { arguments+=(--smoke) && minutes=10; }
status=0
timeout "${MINUTES:-$minutes}m" "$rampgate" suite run "$SUITE" "${arguments[@]}" >"$RUNNER_TEMP/rampgate-suite.json" ||
    status=$?
if [[ -s $folder/suite.json ]]; then echo "document=true" >>"$GITHUB_OUTPUT"; fi
exit "$status"
