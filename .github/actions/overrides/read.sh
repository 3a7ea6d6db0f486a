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
for commit in $(git rev-list --first-parent --reverse "$before..HEAD"); do
    number=$(COMMIT=$commit gh api "repos/$REPOSITORY/commits/$commit/pulls" \
        --jq '.[] | select(.merge_commit_sha == env.COMMIT and .base.ref == env.BRANCH) | .number')
    [[ -n $number ]] || continue
    arguments=(--base "$before" --head "$commit" --configs "$CONFIGS" --repository "$REPOSITORY" --pull-request "$number")
    [[ -z $AGENT_ID ]] || arguments+=(--agent-id "$AGENT_ID" --agent-version "${AGENT_VERSION:-$commit}")
    status=0
    "$rampgate" gate plan "${arguments[@]}" --audit "$folder/audit.jsonl" --json >"$folder/plan-$number.json" || status=$?
    ((status <= worst)) || worst=$status
    before=$commit
done
if ! git diff --quiet "$before" HEAD -- "$CONFIGS/enforcement-overrides.yaml"; then
    echo "::error::enforcement-overrides.yaml was changed by no pull request, so that nobody reviewed it"
    ((worst > 0)) || worst=1
fi
exit "$worst"
