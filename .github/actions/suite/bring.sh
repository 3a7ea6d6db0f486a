#!/usr/bin/env bash
# Brings the store that main's last passing run left: the artifact of a push to main or of the weekly run, which no job of a
# pull request can write. Where there is none, the run finds no baseline, which is no pass.
set -euo pipefail
folder=$RUNNER_TEMP/rampgate-suite-store
rm -rf "$folder"
mkdir -p "$folder"
workflow=$(basename "${WORKFLOW_REF%@*}")
said=$RUNNER_TEMP/rampgate-gh.txt
found=""
for event in push schedule; do
    # A workflow that the target branch does not have yet has no runs; any other failure ends this step.
    if ! runs=$(gh api --method GET "repos/$REPOSITORY/actions/workflows/$workflow/runs" -f branch="$BRANCH" \
        -f event="$event" -f status=success -f per_page=1 --jq '.workflow_runs[] | "\(.created_at) \(.id)"' 2>"$said"); then
        cat "$said" >&2
        grep -q "HTTP 404" "$said" || exit 1
        runs=""
    fi
    found+=$runs$'\n'
done
run=$(sort <<<"$found" | tail -n 1 | cut -d ' ' -f 2)
kept=""
if [[ -n $run ]]; then
    kept=$(gh api --method GET "repos/$REPOSITORY/actions/runs/$run/artifacts" -f name="$ARTIFACT" \
        --jq '.artifacts[] | select(.expired | not) | .id')
fi
if [[ -n $kept ]]; then
    gh run download "$run" --repo "$REPOSITORY" --name "$ARTIFACT" --dir "$folder"
else
    echo "::warning::$BRANCH has no passing run of $workflow that kept its store"
fi
