#!/usr/bin/env bash
# Notes the overrides of each pull request that a push merged: description, labels and reviews as GitHub has them, added
# exceptions to enforcement as git has them. It has no key but the token that reads pull requests. Exit code 1: an override
# is refused; those that hold are noted all the same.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
folder=$RUNNER_TEMP/rampgate-overrides
rm -rf "$folder"
mkdir -p "$folder"
echo "folder=$folder" >>"$GITHUB_OUTPUT"
cd "$TARGET"
# A branch's first push has no commit before it.
before=$(git rev-parse --verify --quiet "$BEFORE^{commit}") || before=$(git rev-parse HEAD^)
worst=0
# What comes before a merge in the same push is not the merge's: no reviewer of that saw it.
unreviewed() { # commit
    if ! git diff --quiet "$before" "$1" -- "$CONFIGS/enforcement-overrides.yaml"; then
        echo "::error::enforcement-overrides.yaml was changed by no pull request, so that no one reviewed it: ${1:0:12}"
        ((worst > 0)) || worst=1
    fi
}
for commit in $(git rev-list --first-parent --reverse "$before..HEAD"); do
    # A merge by rebase makes several commits, of which the last is the merge.
    merges=$(gh api "repos/$REPOSITORY/commits/$commit/pulls" \
        --jq '.[] | select(.base.ref == env.BRANCH) | "\(.merge_commit_sha) \(.number)"')
    if [[ -z $merges ]]; then
        unreviewed "$commit"
        before=$commit
        continue
    fi
    number=$(awk -v commit="$commit" '$1 == commit { print $2 }' <<<"$merges")
    [[ -n $number ]] || continue
    arguments=(--base "$before" --head "$commit" --configs "$CONFIGS" --pull-request "$REPOSITORY#$number")
    [[ -z $AGENT_ID ]] || arguments+=(--agent-id "$AGENT_ID" --agent-version "${AGENT_VERSION:-$commit}")
    status=0
    "$rampgate" gate plan "${arguments[@]}" --audit "$folder/audit.jsonl" --json >"$folder/plan-$number.json" || status=$?
    ((status <= worst)) || worst=$status
    before=$commit
done
unreviewed HEAD
exit "$worst"
