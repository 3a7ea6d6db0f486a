"""A small registry as files in memory, and the same with some of its fields written otherwise.

What is laid over it is YAML too: mappings are merged field by field, everything else takes the place of what was there,
`null` takes it away. A file that is not there yet is added whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from evalcore.registry.files import RegistryFiles, Tree, assemble
from evalcore.yaml.findings import Finding

TODAY = date(2026, 11, 21)
ROOT = Path("configs")

HELPFULNESS = """
id: helpfulness
name: Helpfulness Judge
model: gpt-5-mini
temperature: 1.0
sampling_rate: 1.0
enabled: true
score_name: helpfulness
score_type: INTEGER
classification: quality
applies_to: []
description: Whether the answer helps.
task_introduction: You judge answers.
variables:
  offline: {input: input, output: output}
  online: {input: "input.messages[-1].content", output: "output.messages[-1].content"}
  playground: {input: metadata.item.input, output: output.output}
prompt: "Rate {{output}} as an answer to {{input}}."
drift:
  kl_threshold: 0.1
  baseline_source: provisional_seed
  calibration_ref: PLT-1
  recalibration_due: 2027-02-18
  calibration: {seeded_on: 2026-11-20}
floor: 2
tolerance: 0.2
threshold: 4
baseline_source: provisional_seed
calibration_ref: PLT-1
recalibration_due: 2027-02-18
calibration: {seeded_on: 2026-11-20}
"""
REFUSAL = """
id: refusal
name: Refusal Judge
model: gpt-5-mini
temperature: 1.0
sampling_rate: 1.0
enabled: true
score_name: refusal
score_type: FLOAT
classification: safety_refusal
applies_to: []
description: Whether what must be refused is refused.
task_introduction: You judge refusals.
variables:
  offline: {input: input, output: output}
  online: {input: "input.messages[-1].content", output: "output.messages[-1].content"}
  playground: {input: metadata.item.input, output: output.output}
prompt: "Rate {{output}} as an answer to {{input}}."
drift:
  kl_threshold: 0.1
  baseline_source: provisional_seed
  calibration_ref: PLT-1
  recalibration_due: 2027-02-18
  calibration: {seeded_on: 2026-11-20}
floor: 0.9
tolerance: 0
threshold: 0.95
baseline_source: provisional_seed
calibration_ref: PLT-1
recalibration_due: 2027-02-18
calibration: {seeded_on: 2026-11-20}
"""
REGISTRY: Mapping[str, str] = {
    "rules/helpfulness.yaml": HELPFULNESS,
    "rules/refusal.yaml": REFUSAL,
    "rules/honesty.yaml": REFUSAL.replace("refusal", "honesty")
    .replace("FLOAT", "BOOLEAN")
    .replace("0.95", "true")
    .replace("safety_honesty", "safety_refusal"),
    "rules/brevity.yaml": HELPFULNESS.replace("helpfulness", "brevity"),
    "rules/shop/helpfulness.yaml": """
classification: quality
threshold: 4.5
filter: {field: sub_agent_id, operator: equals, value: shop}
baseline_source: provisional_seed
calibration_ref: PLT-1
recalibration_due: 2027-02-18
calibration: {seeded_on: 2026-11-20}
""",
    "evaluation_manifest.yaml": """
dataset: {name: golden, version: 7, items: 345}
schema: {input: {type: string}, metadata: {category: {type: string}}}
categories:
  general_qa: {judges: [helpfulness], archetypes: [conversation]}
  shop_returns: {judges: [brevity, helpfulness], vertical: shop}
global_metrics: {judges: [refusal, honesty]}
thresholds: {}
archetypes: {conversation: [chat, shop], search: [finder]}
""",
    "enforcement-overrides.yaml": "overrides: []",
    "verticals/shop.yaml": "{name: shop, project: shop-eval}",
    "verticals/travel.yaml": "{name: travel, project: travel-eval}",
    "../specs/verticals/shop/eval/manifest-extension.yaml": """
vertical: shop
categories: {shop_returns: {description: The user sends something back.}}
archetypes: {conversation: [shop]}
""",
    "../specs/verticals/shop/eval/judge-selection.yaml": """
vertical: shop
categories: {shop_returns: {quality_judges: [brevity, helpfulness]}}
""",
}
OWN = """
classification: quality
baseline_source: provisional_seed
calibration_ref: PLT-1
recalibration_due: 2027-01-01
"""
"""A vertical's rule file that says no more than it has to."""
EXTENSION = "../specs/verticals/{}/eval/manifest-extension.yaml".format
SELECTION = "../specs/verticals/{}/eval/judge-selection.yaml".format


Changes = Mapping[str, str | None]


def registry(changes: Changes | None = None) -> Tree:
    """The registry above with `changes`: file -> YAML laid over it, None for a file that is not there."""
    files = dict(_written())
    for name, change in (changes or {}).items():
        if change is None:
            del files[name]
        else:
            there = _loaded(REGISTRY[name]) if name in REGISTRY else None
            files[name] = _dumped(_laid_over(there, _loaded(change)))
    return Tree(ROOT, files)


def parsed_registry(changes: Changes | None = None, today: date = TODAY) -> tuple[RegistryFiles, list[Finding]]:
    return _corpus(tuple(sorted((changes or {}).items())), today)


@cache
def _corpus(changes: tuple[tuple[str, str | None], ...], today: date) -> tuple[RegistryFiles, list[Finding]]:
    return assemble(registry(dict(changes)), today)


@cache
def _written() -> dict[str, bytes]:
    return {name: _dumped(_loaded(text)) for name, text in REGISTRY.items()}


def _loaded(text: str) -> Any:
    return yaml.load(text, yaml.CSafeLoader)  # ten times as fast as `safe_load`, for thousands of tests


def _dumped(data: Any) -> bytes:
    return yaml.dump(data, Dumper=_Plain, sort_keys=False).encode()


def _laid_over(data: Any, change: Any) -> Any:
    if not isinstance(data, dict) or not isinstance(change, dict):
        return deepcopy(change)
    out = dict(data)
    for key, value in change.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = _laid_over(out.get(key), value)
    return out


class _Plain(yaml.CSafeDumper):
    """No anchors: our reader refuses them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
