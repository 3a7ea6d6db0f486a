#!/usr/bin/env bash
# Sourced by a scenario's setup, which exports SCENARIO. Makes the key's Secret, the LLMProvider and the Agent that the
# operator runs with, all named rampgate-SCENARIO-openai. OPENAI_API_KEY: the key. AGENT_MODEL: the model.
set -euo pipefail
{ set +x; } 2>/dev/null # a trace would show the key
: "${OPENAI_API_KEY:?must be the key of the OpenAI API}"
kubectl="${KUBECTL:-kubectl}"
operator="${OPERATOR_NAMESPACE:-openshift-lightspeed}"
name="rampgate-${SCENARIO}-openai"

"$kubectl" -n "$operator" delete secret "$name" --ignore-not-found
# On the input, since every user of this machine can read a command line.
printf '%s' "$OPENAI_API_KEY" |
  "$kubectl" -n "$operator" create secret generic "$name" --from-file=OPENAI_API_KEY=/dev/stdin
"$kubectl" apply -f - <<YAML
apiVersion: agentic.openshift.io/v1alpha1
kind: LLMProvider
metadata:
  name: ${name}
spec:
  type: OpenAI
  openAI:
    credentialsSecret:
      name: ${name}
---
apiVersion: agentic.openshift.io/v1alpha1
kind: Agent
metadata:
  name: ${name}
spec:
  llmProvider:
    name: ${name}
  model: "${AGENT_MODEL:-gpt-5.4}"
YAML
