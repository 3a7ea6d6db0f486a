#!/usr/bin/env bash
# Sourced by a scenario's setup, which exports SCENARIO. Starts its fixture; returns once the container was killed for the
# first time.
set -euo pipefail
kubectl="${KUBECTL:-kubectl}"
"$kubectl" apply -f "$(dirname "${BASH_SOURCE[0]}")/../fixtures/${SCENARIO}-demo.yaml"
"$kubectl" -n "${SCENARIO}-demo" wait pod -l "app=${SCENARIO}-demo" --timeout=60s --for=create
"$kubectl" -n "${SCENARIO}-demo" wait pod -l "app=${SCENARIO}-demo" --timeout=180s \
  --for=jsonpath='{.status.containerStatuses[0].lastState.terminated}'
