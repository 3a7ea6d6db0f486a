#!/usr/bin/env bash
# Deletes what setup_oomkill-claude-vertex.sh made, also half of it, also twice.
set -euo pipefail
export SCENARIO="oomkill"
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/_cleanup_infra-claude-vertex.sh"
