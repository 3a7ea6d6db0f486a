#!/usr/bin/env bash
# Sourced by a scenario's cleanup for openai, which exports SCENARIO.
set -uo pipefail
export PROVIDER="openai"
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/_cleanup_infra.sh"
