#!/usr/bin/env bash
# Plans the gates of a pull request, and writes the registry that judges it: the target branch's with the proposed prompts.
# It has no key but the token that reads pull requests.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
proposed=$(cd "$PROPOSED" && pwd)
folder=$RUNNER_TEMP/rampgate-gate
rm -rf "$folder"
mkdir -p "$folder"
cd "$TARGET"
git fetch --quiet --no-tags --no-recurse-submodules "$proposed" HEAD
commit=$(git rev-parse --verify 'FETCH_HEAD^{commit}')

status=0
"$rampgate" gate plan --base HEAD --head "$commit" --configs "$CONFIGS" \
    --pull-request "$REPOSITORY#$NUMBER" --json >"$folder/plan.json" || status=$?
((status <= 1)) || exit "$status" # 1: an override is refused
"$rampgate" gate proposal "$commit" --configs "$CONFIGS" --to "$folder/registry" --report github --json \
    >"$folder/proposal.json"
{
    echo "folder=$folder"
    "${rampgate%/*}/python" -c 'import json, sys
print("pre_merge=" + str("pre_merge" in json.load(sys.stdin)["gates"]).lower())' <"$folder/plan.json"
} >>"$GITHUB_OUTPUT"
