#!/usr/bin/env bash
# Sourced by a scenario's cleanup for claude-vertex, which exports SCENARIO.
set -uo pipefail
export PROVIDER="claude-vertex"
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/_cleanup_infra.sh"
