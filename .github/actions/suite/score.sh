#!/usr/bin/env bash
# Scores the answers of generate.sh, by the target's cases, checks and judges. The only step with the model's, Opik's and
# the store's keys; of the proposal it reads the suite's candidate and hashes its parts. With fresh answers it does the same
# again, and decides what fell by them. Where the target has no such suite, it is the proposal's.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
proposed=$(cd "$PROPOSED" && pwd)
answers=$(cd "$ANSWERS" && pwd)/answers.jsonl
hash_of() { sha256sum <"$1" | cut -d ' ' -f 1; }
if [[ -n $ANSWERS_SHA256 && $(hash_of "$answers") != "$ANSWERS_SHA256" ]]; then
    echo "::error::answers.jsonl is not the file that generate wrote: run the workflow again"
    exit 2
fi
arguments=(--score "$answers")
# A side whose job failed, or whose file is another one than it made, has no fresh answers: the plain rule stands.
fresh() { # side, hash
    local file=$fresh_answers/suite-fresh-$1/answers.jsonl
    [[ ! -f $file || $(hash_of "$file") != "$2" ]] || arguments+=(--score "$file")
}
fresh_answers=$(realpath -m "${FRESH:-none}")
fresh baseline "$BASELINE_SHA256"
fresh candidate "$CANDIDATE_SHA256"
folder=$RUNNER_TEMP/rampgate-suite
store=$RUNNER_TEMP/rampgate-suite-store/store.db
rm -rf "$folder"
mkdir -p "$folder" "$(dirname "$store")"
if [[ -n $FRESH && -z $STORE ]]; then # it begins with the store that score left
    cp "$SCORED/store.db" "$store"
    if [[ $(hash_of "$store") != "$SCORED_SHA256" ]]; then
        echo "::error::store.db is not the file that score wrote: run the workflow again"
        exit 2
    fi
fi
echo "folder=$folder" >>"$GITHUB_OUTPUT"
# That there may be no baseline says main, which has no such suite, or a label by someone who may write: never the proposal.
labelled() {
    local set_by may
    [[ -n $NUMBER && -n $GH_TOKEN ]] || return 1
    set_by=$(gh api --paginate "repos/$REPOSITORY/issues/$NUMBER/events?per_page=100" \
        --jq '.[] | select(.label.name == "suite-first-run") | "\(.event) \(.actor.login)"' | tail -n 1) || return 1
    [[ $set_by == "labeled "* ]] || return 1
    may=$(gh api "repos/$REPOSITORY/collaborators/${set_by#labeled }/permission" --jq .permission) || return 1
    [[ $may == write || $may == admin ]]
}
cd "$TARGET"
for name in MODEL_URL MODEL_KEY SEAL_KEY OPIK OPIK_API_KEY SUITE_KEEP_DAYS; do
    if [[ -n ${!name} ]]; then export "RAMPGATE_$name=${!name}"; fi
done
arguments+=(--proposed "$proposed/$(dirname "$SUITE")" --configs "$CONFIGS")
[[ -n $STORE ]] && export RAMPGATE_SUITE_STORE=$STORE || arguments+=(--store "$store")
suite=$SUITE
if [[ ! -e $SUITE ]]; then
    suite=$proposed/$SUITE
    arguments+=(--first-run)
elif labelled; then
    arguments+=(--first-run)
fi
arguments+=(--out "$folder/results.jsonl" --canary "$folder/canary.jsonl" --report github --json)
for ending in json xml html md; do arguments+=(--report "$folder/suite.$ending"); done
[[ -z ${GITHUB_STEP_SUMMARY:-} ]] || arguments+=(--report "$GITHUB_STEP_SUMMARY")
[[ -z $LABEL ]] || arguments+=(--label "$LABEL")
[[ -z $MAX_COST ]] || arguments+=(--max-cost "$MAX_COST")
minutes=30
[[ $SET == full ]] || { arguments+=(--smoke) && minutes=10; }
status=0
timeout "${MINUTES:-$minutes}m" "$rampgate" suite run "$suite" "${arguments[@]}" >"$RUNNER_TEMP/rampgate-suite.json" ||
    status=$?
if [[ -s $folder/suite.md ]]; then
    printf 'document=true\ndocument-sha256=%s\n' "$(hash_of "$folder/suite.md")" >>"$GITHUB_OUTPUT"
fi
if [[ -s $store ]]; then printf 'store=%s\nstore-sha256=%s\n' "$store" "$(hash_of "$store")" >>"$GITHUB_OUTPUT"; fi
# What is not yet confirmed is no verdict: the job with the fresh answers has it, and fails where no one answers again.
request=$folder/results-again.json
if [[ $status == 1 && -z $FRESH && -s $request ]]; then
    baseline=$(sed -n '/"baseline"/,/}/s/.*"commit": "\([0-9a-f]*\)".*/\1/p' "$request")
    printf 'again=true\nsha256=%s\nbaseline-commit=%s\n' "$(hash_of "$request")" "$baseline" >>"$GITHUB_OUTPUT"
    exit 0
fi
exit "$status"
