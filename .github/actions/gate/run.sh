#!/usr/bin/env bash
# Runs pre_merge on the registry that plan.sh wrote. The only step with the model's and Opik's keys.
set -euo pipefail
rampgate=$(cd "$ACTION/../../.." && pwd)/.venv/bin/rampgate
folder=$RUNNER_TEMP/rampgate-gate
cd "$TARGET"
for name in MODEL_URL MODEL_KEY CANDIDATE_KEY OPIK OPIK_API_KEY; do
    if [[ -n ${!name} ]]; then export "RAMPGATE_$name=${!name}"; fi
done
arguments=(--milestone pre_merge --configs "$folder/registry/configs" --baselines "$BASELINES")
arguments+=(--pull-request "$REPOSITORY#$NUMBER")
arguments+=(--report github --json --report "$folder/gate.xml" --report "$folder/gate.html")
arguments+=(--metrics-file "$folder/gate.prom")
[[ -z ${GITHUB_STEP_SUMMARY:-} ]] || arguments+=(--report "$GITHUB_STEP_SUMMARY")
[[ -z $CANDIDATE ]] || arguments+=(--candidate "$CANDIDATE")
[[ -z $OUTPUTS ]] || arguments+=(--outputs "$OUTPUTS")
[[ -z $DATASET ]] || arguments+=(--dataset "$DATASET")
# plan.sh fetched the pull request's last commit.
[[ -z $SUITE ]] || arguments+=(--suite "$SUITE" --commit "$(git rev-parse --verify 'FETCH_HEAD^{commit}')")
[[ -z $VERTICAL ]] || arguments+=(--vertical "$VERTICAL")
"$rampgate" gate run "${arguments[@]}" >"$folder/verdict.json"
