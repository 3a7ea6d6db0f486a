#!/usr/bin/env bash
# Has the proposal's candidate answer the target's cases. It runs the proposal's code and has no key; the candidate's
# processes get none of this step's variables but those that the suite names.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
proposed=$(cd "$PROPOSED" && pwd)
folder=$RUNNER_TEMP/rampgate-answers
rm -rf "$folder"
mkdir -p "$folder"
echo "folder=$folder" >>"$GITHUB_OUTPUT"
cd "$TARGET"
suite=$SUITE
[[ -e $SUITE ]] || suite=$proposed/$SUITE # as in score.sh
arguments=(--only generate --answers "$folder/answers.jsonl" --store "$RUNNER_TEMP/rampgate-untrusted.db")
arguments+=(--proposed "$proposed/$(dirname "$SUITE")" --commit "$COMMIT" --json)
minutes=30
[[ $SET == full ]] || { arguments+=(--smoke) && minutes=10; }
timeout "${MINUTES:-$minutes}m" "$rampgate" suite run "$suite" "${arguments[@]}" >"$RUNNER_TEMP/rampgate-answers.json"
echo "sha256=$(sha256sum <"$folder/answers.jsonl" | cut -d ' ' -f 1)" >>"$GITHUB_OUTPUT"
