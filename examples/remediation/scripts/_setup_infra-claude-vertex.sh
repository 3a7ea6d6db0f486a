#!/usr/bin/env bash
# Sourced by a scenario's setup, which exports SCENARIO. Makes the key's Secret, the LLMProvider and the Agent that the
# operator runs with, all named rampgate-SCENARIO-claude-vertex. GOOGLE_APPLICATION_CREDENTIALS: the file with the key;
# VERTEX_PROJECT and VERTEX_REGION: where Vertex AI serves the model; AGENT_MODEL: the model.
set -euo pipefail
{ set +x; } 2>/dev/null
: "${GOOGLE_APPLICATION_CREDENTIALS:?must be the file with the key of Google Cloud}"
: "${VERTEX_PROJECT:?must be the project of Google Cloud}"
kubectl="${KUBECTL:-kubectl}"
operator="${OPERATOR_NAMESPACE:-openshift-lightspeed}"
name="rampgate-${SCENARIO}-claude-vertex"

"$kubectl" -n "$operator" delete secret "$name" --ignore-not-found
"$kubectl" -n "$operator" create secret generic "$name" \
  --from-file=GOOGLE_APPLICATION_CREDENTIALS="$GOOGLE_APPLICATION_CREDENTIALS"
"$kubectl" apply -f - <<YAML
apiVersion: agentic.openshift.io/v1alpha1
kind: LLMProvider
metadata:
  name: ${name}
spec:
  type: GoogleCloudVertex
  googleCloudVertex:
    projectID: "${VERTEX_PROJECT}"
    region: "${VERTEX_REGION:-us-east5}"
    modelProvider: Anthropic
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
  model: "${AGENT_MODEL:-claude-sonnet-4@20250514}"
YAML
