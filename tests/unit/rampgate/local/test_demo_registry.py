"""The demo's registry is the shipped one with one exception, sound on whatever day it runs."""

from __future__ import annotations

from datetime import date
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from evalcore.registry.disk import read_tree
from evalcore.registry.registry import build
from evalcore.validation import checked
from rampgate.local.demo.candidates import CANDIDATES
from rampgate.local.demo.gates import shown
from rampgate.local.demo.registry import WARNS, demo_registry
from schemas.judges import Enforcement, Milestone


@pytest.mark.parametrize("today", [date(2026, 11, 21), date(2027, 6, 1), date(2031, 2, 28)])
def test_it_is_sound_and_only_the_excepted_judge_warns_at_pre_ramp(tmp_path: Path, today: date) -> None:
    files, findings = checked(read_tree(demo_registry(tmp_path, today)), today)
    assert [finding for finding in findings if finding.severity == "error"] == []
    judges = build(files).all("rewards_assistant")
    warns = {judge.id for judge in judges if judge.enforcement[Milestone.PRE_RAMP] is Enforcement.WARN}
    assert warns == {WARNS}
    assert all(judge.recalibration_due > today for judge in judges)
    assert [finding for finding in findings if "noise" in finding.check] == []
    assert all(judge.noise is not None for judge in judges), "verdicts say what their sample could have seen"


def test_a_verdicts_table_shows_the_smallest_fall_that_is_found_and_how_often_a_clean_candidate_passes() -> None:
    row = {
        "score": 1.0, "threshold": 1.0, "floor": 1.0, "baseline": None, "n": 200, "passed": True, "rule": None,
        "enforcement": "block", "standing": "provisional",
        "detectable_drop": 0.00801, "clean_pass_probability": 0.99641,
    }  # fmt: skip
    unknown = {**row, "detectable_drop": None, "clean_pass_probability": None, "n": 100}
    verdict = {
        "verdict": "pass", "action": "proceed", "from_percent": 0, "to_percent": 5, "milestone": "pre_ramp",
        "sample": {"size": 200}, "evidence": {"duration_seconds": 1.0}, "reasons": [],
        "per_judge_scores": {"measured": row, "unknown": unknown},
    }  # fmt: skip
    console = Console(width=200, record=True, file=StringIO())
    console.print(shown(CANDIDATES[0], verdict))
    said = [" ".join(line.strip("│ ").split()) for line in console.export_text().splitlines()]
    assert "measured 0.00801 99.64%" in said
    assert "unknown" in said
