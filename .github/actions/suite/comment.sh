#!/usr/bin/env bash
# Keeps one comment on the pull request, of its newest run. The only step whose token may write; it has no other key.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
document=$(cd "$DOCUMENTS" && pwd)/suite.json
cd "$TARGET"
"$rampgate" suite comment "$document" --repository "$REPOSITORY" --pull-request "$NUMBER"
