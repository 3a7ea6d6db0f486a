"""Copies the shipped registry with fresh dates; the demo's has one audited override (PC5 §5.2), and judges' noise."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from evalcore.registry.disk import read_tree
from evalcore.registry.files import NOISE, OVERRIDES
from evalcore.registry.registry import build
from evalcore.validation import checked
from rampgate.console import Failure
from schemas.judges import ScoreType

SHIPPED = Path(__file__).parents[3]
NAMESPACE = "openshift-lightspeed"
"""Where the demo's remediation workflows run."""
WARNS = "ux_quality"
"""The judge that may only warn at pre_ramp here."""
_MADE_UP = """\
# Made up for the demo, by what its stand-in for a model is: it answers the same question alike each time. What a real
# model's judges do is measured: rampgate check noise --write.
"""
_DUE = re.compile(r"^(\s*recalibration_due:\s*)\d{4}-\d\d-\d\d", re.MULTILINE)
_SEEDED = re.compile(r"^(\s*seeded_on:\s*)\d{4}-\d\d-\d\d", re.MULTILINE)
GOOD_FOR = timedelta(days=80)


def demo_registry(folder: Path, today: date) -> Path:
    """Copy the registry with the demo's override and noise, and the namespace of its workflows, into `folder`; return
    its configuration folder. Raises Failure."""
    configs = seeded(folder, today)
    with (configs / "verticals" / "remediation.yaml").open("a") as vertical:
        vertical.write(f"proposal_namespaces: [{NAMESPACE}]\n")
    _excepted(configs, today)
    _noise_known(configs, today)
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


def logged(today: date) -> dict[str, Any]:
    """The merge of the exception, as the central log has it."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"), "kind": "enforcement", "repository": "example/rampgate",
        "pull_request": "#1", "author": "demo", "head": "0" * 40, "approved_by": "@demo-spec-owner", "judges": [WARNS],
        "milestone": "pre_ramp", "justification": "A warning.", "expires": str(today + timedelta(days=1)),
    }  # fmt: skip


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
                "justification": "The demo shows what a warning looks like; nothing but the demo reads this.",
                "approved_on": today,
                "expires": today + timedelta(days=1),
            }
        ]
    }
    (configs / OVERRIDES).write_text(yaml.safe_dump(overrides, sort_keys=False))


def _noise_known(configs: Path, today: date) -> None:
    """Verdicts then say what their sample could have seen."""
    entries: Any = [
        {
            "judge": judge.id,
            "judge_version": judge.version,
            "measured_on": today.isoformat(),
            "items": 100,
            "asks": 2,
            "flip_rate": 0.0,
            "flip_rate_ci95": [0.0, 0.037],
            "deviation": 0.0,
            "deviation_ci95": [0.0, 0.0],
            **({"false_alarm_rate": 0.0, "miss_rate": 0.0} if judge.score_type is ScoreType.BOOLEAN else {}),
        }
        for judge in build(checked(read_tree(configs), today)[0]).all()
    ]
    (configs / NOISE).write_text(_MADE_UP + yaml.safe_dump({"measured": entries}, sort_keys=False))
