#!/usr/bin/env bash
# Keeps one comment on the pull request, of its newest run. The only step whose token may write; it has no other key.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
document=$(cd "$DOCUMENTS" && pwd)/suite.json
if [[ $(sha256sum <"$document" | cut -d ' ' -f 1) != "$DOCUMENTS_SHA256" ]]; then
    echo "::error::suite.json is not the file that this run's verdict was written to: run the workflow again"
    exit 2
fi
cd "$TARGET"
"$rampgate" suite comment "$document" --repository "$REPOSITORY" --pull-request "$NUMBER"
