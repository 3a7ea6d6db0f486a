#!/usr/bin/env bash
# Keeps one comment on the pull request: the report of its last commit's run. The only step whose token may write; it has no
# other key. The workflow's concurrency group ends earlier runs, so that no two write at once.
set -euo pipefail
report=$(cd "$DOCUMENTS" && pwd)/suite.md
if [[ $(sha256sum <"$report" | cut -d ' ' -f 1) != "$DOCUMENTS_SHA256" ]]; then
    echo "::error::suite.md is not the file that this run's verdict was written to: run the workflow again"
    exit 2
fi
said=$RUNNER_TEMP/rampgate-gh.txt
body=$RUNNER_TEMP/rampgate-comment.md
mark="<!-- rampgate suite ${SUITE//[^A-Za-z0-9._\/-]/_} -->"
# Only comments of the token's own user count: anyone can write the mark. GitHub takes 65,536 characters.
query='query($owner: String!, $name: String!, $number: Int!, $endCursor: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    headRefOid comments(first: 100, after: $endCursor) {
      pageInfo { hasNextPage endCursor } nodes { databaseId viewerDidAuthor body } } } } }'
pull='.data.repository.pullRequest'
found=$(gh api graphql --paginate -F owner="${REPOSITORY%/*}" -F name="${REPOSITORY#*/}" -F number="$NUMBER" -f query="$query" \
    --jq "\"head \($pull.headRefOid)\", ($pull.comments.nodes[] | select(.viewerDidAuthor and (.body | startswith(\"$mark\"))) | .databaseId)")
if ! grep -qx "head $COMMIT" <<<"$found"; then
    echo "no comment on $REPOSITORY#$NUMBER: the run is of ${COMMIT:0:12}, and the pull request has another commit by now"
    exit
fi
{
    echo "$mark"
    if (($(wc -c <"$report") > 60000)); then
        printf '%s\n\n' "_What is too long for a comment is cut at its end; the report in the job's summary has all._"
        head -c 60000 "$report" | sed '$d'
    else
        cat "$report"
    fi
} >"$body"
own=$(grep -v ^head <<<"$found" | head -n 1) || true
comments=repos/$REPOSITORY/issues/$NUMBER/comments
[[ -n $own ]] && place=(--method PATCH "repos/$REPOSITORY/issues/comments/$own") || place=(--method POST "$comments")
if ! gh api "${place[@]}" -F body=@"$body" --jq .html_url 2>"$said"; then
    cat "$said" >&2
    grep -q "HTTP 403" "$said" || exit 1
    echo "::notice::no comment on $REPOSITORY#$NUMBER: the token may not write, as for a pull request from a fork; the job's summary has the report"
fi
