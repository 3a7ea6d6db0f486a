#!/usr/bin/env bash
# Sets up the scenario oomkill for claude-vertex; returns once its container was killed for the first time.
set -euo pipefail
export SCENARIO="oomkill"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/_setup_infra-claude-vertex.sh"
source "$here/_start_fixture.sh"
