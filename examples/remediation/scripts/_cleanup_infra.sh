#!/usr/bin/env bash
# Sourced by a provider's _cleanup_infra-, which exports PROVIDER, for a scenario's cleanup, which exports SCENARIO. Deletes
# all that the setup makes, whether it is there or not, and goes on after what can't be deleted; exit code 1 then.
set -uo pipefail
kubectl="${KUBECTL:-kubectl}"
operator="${OPERATOR_NAMESPACE:-openshift-lightspeed}"
name="rampgate-${SCENARIO}-${PROVIDER}"
failed=0

# The namespace goes first, while the operator still has what it needs to end the workflows in it.
"$kubectl" delete namespace "${SCENARIO}-demo" --ignore-not-found || failed=1
"$kubectl" delete agents.agentic.openshift.io "$name" --ignore-not-found || failed=1
"$kubectl" delete llmproviders.agentic.openshift.io "$name" --ignore-not-found || failed=1
"$kubectl" -n "$operator" delete secret "$name" --ignore-not-found || failed=1
exit "$failed"
