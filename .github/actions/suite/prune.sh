#!/usr/bin/env bash
# Takes away of main's store what no run has used for so many days: later runs begin with it. With the key, runs that lack
# its seal go, too: only jobs with the key write main's store, so theirs is a key of before.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
store=$RUNNER_TEMP/rampgate-suite-store/store.db
if [[ -z $KEEP_DAYS || ! -f $store ]]; then exit 0; fi
cd "$TARGET"
arguments=(--older-than "$KEEP_DAYS" --store "$store")
if [[ -n $SEAL_KEY ]]; then
    export RAMPGATE_SEAL_KEY=$SEAL_KEY
    arguments+=(--unsealed)
fi
"$rampgate" suite prune "$SUITE" "${arguments[@]}"
