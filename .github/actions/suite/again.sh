#!/usr/bin/env bash
# Has one side answer anew what tripped. It runs that side's code and has no key. The baseline answers as it is in its
# commit, of the target's history: of the proposal its job has nothing, so that nobody's code edits the evidence.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
again=$(cd "$AGAIN" && pwd)/again.json
hash_of() { sha256sum <"$1" | cut -d ' ' -f 1; }
if [[ $(hash_of "$again") != "$AGAIN_SHA256" ]]; then
    echo "::error::again.json is not the file that score wrote: run the workflow anew"
    exit 2
fi
arguments=(--only generate --again "$again" --side "$SIDE" --json --store "$RUNNER_TEMP/rampgate-untrusted.db")
if [[ $SIDE == candidate ]]; then arguments+=(--proposed "$(cd "$PROPOSED" && pwd)/$(dirname "$SUITE")"); fi
folder=$RUNNER_TEMP/rampgate-answers
rm -rf "$folder"
mkdir -p "$folder"
echo "folder=$folder" >>"$GITHUB_OUTPUT"
cd "$TARGET"
minutes=30
[[ $SET == full ]] || minutes=10
timeout "${MINUTES:-$minutes}m" "$rampgate" suite run "$SUITE" "${arguments[@]}" --answers "$folder/answers.jsonl" \
    >"$RUNNER_TEMP/rampgate-answers.json"
echo "sha256=$(hash_of "$folder/answers.jsonl")" >>"$GITHUB_OUTPUT"
