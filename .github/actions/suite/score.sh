#!/usr/bin/env bash
# Scores the answers of generate.sh, by the target's cases, checks and judges. The only step with the model's, Opik's and
# the store's keys; of the proposal it reads the suite's candidate and hashes its parts. With confirm it does the same
# again, and decides what tripped by the answers of again.sh.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
proposed=$(cd "$PROPOSED" && pwd)
answers=$(cd "$ANSWERS" && pwd)/answers.jsonl
hash_of() { sha256sum <"$1" | cut -d ' ' -f 1; }
if [[ -n $ANSWERS_SHA256 && $(hash_of "$answers") != "$ANSWERS_SHA256" ]]; then
    echo "::error::answers.jsonl is not the file that generate wrote: run the workflow anew"
    exit 2
fi
# A side whose job failed, or whose file is another one than it made, has no fresh answers: the plain rule stands.
fresh() { # side, hash
    local file=$fresh_answers/suite-fresh-$1/answers.jsonl
    [[ -f $file && $(hash_of "$file") == "$2" ]] || file=$RUNNER_TEMP/no-fresh-$1.jsonl
    arguments+=("--fresh-$1" "$file")
}
fresh_answers=$(realpath -m "${FRESH:-none}")
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
if [[ $PART == confirm ]]; then
    fresh baseline "$BASELINE_SHA256"
    fresh candidate "$CANDIDATE_SHA256"
else
    arguments+=(--again "$folder/again.json")
fi
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
# What is not yet confirmed is no verdict: confirm has it, and fails where nobody answers anew.
if [[ $status == 1 && $PART == score && -s $folder/again.json ]]; then
    echo "again=true" >>"$GITHUB_OUTPUT"
    echo "sha256=$(hash_of "$folder/again.json")" >>"$GITHUB_OUTPUT"
    exit 0
fi
exit "$status"
