#!/usr/bin/env bash
# Deletes what setup_crashloop_probe-openai.sh made, also half of it, also twice.
set -euo pipefail
export SCENARIO="crashloop-probe"
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/_cleanup_infra-openai.sh"
