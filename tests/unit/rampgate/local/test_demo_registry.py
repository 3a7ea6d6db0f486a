"""The demo's registry is the shipped one with one exception, sound on whatever day it runs."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from evalcore.registry.disk import read_tree
from evalcore.registry.registry import build
from evalcore.validation import checked
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
