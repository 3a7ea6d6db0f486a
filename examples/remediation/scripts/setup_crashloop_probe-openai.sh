#!/usr/bin/env bash
# Sets up the scenario crashloop-probe for openai; returns once its container was killed for the first time.
set -euo pipefail
export SCENARIO="crashloop-probe"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/_setup_infra-openai.sh"

kubectl="${KUBECTL:-kubectl}"
"$kubectl" apply -f "$here/../fixtures/${SCENARIO}-demo.yaml"
"$kubectl" -n "${SCENARIO}-demo" wait pod -l "app=${SCENARIO}-demo" --timeout=60s --for=create
"$kubectl" -n "${SCENARIO}-demo" wait pod -l "app=${SCENARIO}-demo" --timeout=180s \
  --for=jsonpath='{.status.containerStatuses[0].lastState.terminated}'
