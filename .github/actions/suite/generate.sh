#!/usr/bin/env bash
# Has the proposal's candidate answer the target's cases, or those of a request again. It runs the proposal's code and has no
# key; the candidate's processes get none of this step's variables but those that the suite names. Without a proposal it is
# the baseline that answers, in a checkout of its commit: there no proposal's code edits the evidence.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
hash_of() { sha256sum <"$1" | cut -d ' ' -f 1; }
arguments=(--store "$RUNNER_TEMP/rampgate-untrusted.db" --json)
if [[ -n $AGAIN ]]; then
    again=$(cd "$AGAIN" && pwd)/results-again.json
    if [[ $(hash_of "$again") != "$AGAIN_SHA256" ]]; then
        echo "::error::results-again.json is not the file that score wrote: run the workflow again"
        exit 2
    fi
    arguments+=(--cases "$again")
fi
folder=$RUNNER_TEMP/rampgate-answers
rm -rf "$folder"
mkdir -p "$folder"
echo "folder=$folder" >>"$GITHUB_OUTPUT"
suite=$SUITE
if [[ -n $PROPOSED ]]; then
    proposed=$(cd "$PROPOSED" && pwd)
    arguments+=(--proposed "$proposed/$(dirname "$SUITE")")
    [[ -e $TARGET/$SUITE ]] || suite=$proposed/$SUITE # as in score.sh
fi
cd "$TARGET"
minutes=30
[[ $SET == full ]] || { arguments+=(--smoke) && minutes=10; }
timeout "${MINUTES:-$minutes}m" "$rampgate" suite run "$suite" "${arguments[@]}" --generate "$folder/answers.jsonl" \
    >"$RUNNER_TEMP/rampgate-answers.json"
echo "sha256=$(hash_of "$folder/answers.jsonl")" >>"$GITHUB_OUTPUT"
