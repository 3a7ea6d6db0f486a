#!/usr/bin/env bash
# Sets up the scenario crashloop-probe for openai; returns once its container was killed for the first time.
set -euo pipefail
export SCENARIO="crashloop-probe"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/_setup_infra-openai.sh"
source "$here/_start_fixture.sh"
