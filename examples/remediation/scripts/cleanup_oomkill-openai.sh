#!/usr/bin/env bash
# Deletes what setup_oomkill-openai.sh made, also half of it, also twice.
set -euo pipefail
export SCENARIO="oomkill"
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/_cleanup_infra-openai.sh"
