"""Copies the shipped registry with fresh dates; the demo's has one audited override (PC5 §5.2)."""

from __future__ import annotations

import re
import shutil
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml

from evalcore.registry.files import OVERRIDES
from rampgate.console import Failure

SHIPPED = Path(__file__).parents[3]
WARNS = "ux_quality"
"""The judge that may only warn at pre_ramp here."""
_DUE = re.compile(r"^(\s*recalibration_due:\s*)\d{4}-\d\d-\d\d", re.MULTILINE)
_SEEDED = re.compile(r"^(\s*seeded_on:\s*)\d{4}-\d\d-\d\d", re.MULTILINE)
GOOD_FOR = timedelta(days=80)


def demo_registry(folder: Path, today: date) -> Path:
    """Copy the registry with the demo's override into `folder`; return its configuration folder. Raises Failure."""
    configs = seeded(folder, today)
    _excepted(configs, today)
    return configs


def seeded(folder: Path, today: date) -> Path:
    """Copy the registry into `folder`; return its configuration folder. Raises Failure.

    Its seeds start today, so that no gate fails with `provisional_overdue` when the shipped ones are past their day.
    """
    configs = folder / "configs"
    try:
        for name in ("rules", "verticals"):
            shutil.copytree(SHIPPED / "configs" / name, configs / name)
        for file in (SHIPPED / "configs").glob("*.yaml"):
            shutil.copy(file, configs / file.name)
        for name in ("prompts", "specs"):
            shutil.copytree(SHIPPED / name, folder / name)
    except OSError as error:
        raise Failure(f"the shipped registry is missing in {SHIPPED}: {error}") from error
    for file in (configs / "rules").rglob("*.yaml"):
        dated = _SEEDED.sub(rf"\g<1>{today}", _DUE.sub(rf"\g<1>{today + GOOD_FOR}", file.read_text()))
        file.write_text(dated)
    return configs


def _excepted(configs: Path, today: date) -> None:
    rule_file = configs / "rules" / f"{WARNS}.yaml"
    rule: Any = yaml.safe_load(rule_file.read_text())
    rule["enforcement"]["pre_ramp"] = "warn"
    rule_file.write_text(yaml.safe_dump(rule, sort_keys=False, allow_unicode=True))
    overrides: Any = {
        "overrides": [
            {
                "judge": WARNS,
                "milestone": "pre_ramp",
                "enforcement": "warn",
                "pull_request": "https://github.com/example/rampgate/pull/1",
                "approved_by": "demo-spec-owner",
                "justification": "The demo shows what a warning looks like; nothing but the demo reads this.",
                "approved_on": today,
                "expires": today + timedelta(days=1),
            }
        ]
    }
    (configs / OVERRIDES).write_text(yaml.safe_dump(overrides, sort_keys=False))
