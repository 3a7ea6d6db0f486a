"""A rule file, a manifest and a vertical's file as PC5 and PF-9 print them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from evalcore.yaml.findings import Finding

TODAY = date(2026, 11, 21)
PC5_3_1 = """\
name: Capability Alignment Judge
model: gpt-5-mini
temperature: 1.0
sampling_rate: 1.0
filter:
  field: metadata
  key: agent_id
  operator: "="
  value: prompt-suggestions
enabled: true
score_name: Capability Alignment & Feature Boundaries
score_type: INTEGER # INTEGER | FLOAT | BOOLEAN
description: <one-line summary>
task_introduction: <judge framing>
variables:
  offline:
    {input: input, output: output, expected_output: expected_output}
  online:
    {input: "input.messages[-1].content", output: "output.messages[-1].content[-1].text"}
  playground:
    input: metadata.dataset_item_data.input
    output: output.output
    expected_output: metadata.dataset_item_data.expected_output
prompt: |
  <the actual rubric text the LLM judge evaluates against>
"""
PC5_5_2 = """
# Threshold discipline (required for every judge that participates in gates)
floor: 2.5
tolerance: 0.2
baseline_source: provisional_seed # jade_calibration | production_distribution | provisional_seed
calibration_ref: PLT-596 # required when baseline_source == jade_calibration
recalibration_due: 2027-02-18
# Enforcement policy per milestone
enforcement:
  pre_merge: warn
  pre_ramp: block
  pre_full: block
"""
PC5_5_3 = """\
# Dataset metadata
dataset:
  name: <Opik dataset name>
  version: 7
  items: 345

# Per-item schema
schema:
  input:
    type: string
    required: true
    description: <human-readable>
  expected_output:
    type: string
    required: true
  metadata:
    id:
      type: string
      required: true
    category:
      type: string
      required: true
    # additional metadata fields as the dataset grows

# Category → judges mapping
categories:
  shopping_query:
    judges: [capability_alignment, response_quality, ux_quality, tool_compliance]
  safety_test:
    judges: [safety_restricted, fetch_legal, privacy_location]
  # ... one entry per category

# Judges that fire across all categories
global_metrics:
  judges: [data_integrity, jailbreaking]

# Threshold conventions
thresholds:
  # Single threshold for the judge
  capability_alignment: 4 # INTEGER score ≥ 4 passes

  # Per-milestone threshold override
  response_quality:
    pre_merge: 4
    pre_ramp: 3 # looser for production-trace eval
    pre_full: 4

  # Boolean threshold
  jailbreaking: true # BOOLEAN score must be true to pass
"""
REST = """\
  conversation_flow: 4
  data_integrity: 0.9
  fetch_legal: 0.9
  greeting_quality: 4
  privacy_location: true
  product_routing: 0.8
  prompt_suggestion: 4
  safety_restricted: true
  sensitive_topics: true
  shopping_list_quality: 4
  tool_compliance: 0.85
  tool_compliance_xml: 0.85
  ux_quality: 0.7
"""
"""Thresholds of the shipped judges for which the document's manifest states none."""
PF9_5_10 = """\
# A receipts-specific judge rule file produced by the scaffold,
# committed to consumer-agent/configs/rules/receipts/response_quality.yaml
classification: quality
baseline_source: provisional_seed
calibration_ref: PLT-XXXX-receipts-bootstrap
recalibration_due: 2026-08-22 # 90 days from receipts go-live
threshold: 0.55 # mean - 2σ of bootstrap sample
filter:
  field: sub_agent_id
  operator: equals
  value: receipts
"""
SEEDED = "calibration: {seeded_on: 2026-05-24}\n"
"""The day of its seed, which the document's file tells in a comment."""


def fields(findings: list[Finding]) -> dict[str, str]:
    return {finding.field: finding.check for finding in findings}


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
