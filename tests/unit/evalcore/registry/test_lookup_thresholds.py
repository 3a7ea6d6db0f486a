"""Thresholds as callers ask for them (PC5 FR-8): a milestone's, a vertical's, and those that fit no judge."""

from __future__ import annotations

from pathlib import Path

import pytest

import evalcore
from schemas.judges import Milestone
from tests.unit.evalcore.registry.registry_disk import rewritten
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.evalcore.registry.registry_reloading import MANIFEST, OWN

pytestmark = pytest.mark.usefixtures("just_started")


def test_the_milestones_own_threshold_is_returned_and_else_the_default(root: Path) -> None:
    """PC5 AC-5, FR-6, §9.1; `refresh` serves the new one without a restart (FR-10)."""
    assert evalcore.get_threshold("helpfulness", "pre_full") == 4
    rewritten(root / MANIFEST, "thresholds: {}\n", "thresholds: {helpfulness: 4, helpfulness.pre_full: 4.5}\n")
    assert evalcore.get_threshold("helpfulness", "pre_full") == 4
    assert evalcore.refresh().valid
    assert evalcore.get_threshold("helpfulness", "pre_full") == 4.5
    assert evalcore.get_threshold("helpfulness", "pre_ramp") == evalcore.get_threshold("helpfulness") == 4
    assert evalcore.get_threshold("helpfulness", Milestone.PRE_FULL) == 4.5
    assert evalcore.get_threshold("honesty", "pre_merge") is True
    assert evalcore.get_metric_by_id("helpfulness").threshold("pre_full") == 4.5
    assert evalcore.get_metric_by_id("helpfulness").threshold() == 4


def test_a_verticals_thresholds_are_given_to_who_asks_for_it_and_to_nobody_else(root: Path) -> None:
    """PF-9 AC-8, PC5 §5.6: in files, one vertical calibrates, the other's thresholds stay as they are."""
    others = {(judge, vertical): evalcore.get_threshold(judge, "pre_ramp", vertical=vertical)
              for judge in evalcore.list_rules() for vertical in (None, "travel")}  # fmt: skip
    assert evalcore.get_threshold("helpfulness", "pre_ramp", vertical="shop") == 4.5
    rewritten(root / OWN, "threshold: 4.5", "threshold: 4.9")
    assert evalcore.refresh().valid
    assert evalcore.get_threshold("helpfulness", "pre_ramp", vertical="shop") == 4.9
    assert evalcore.get_metric_by_id("helpfulness", vertical="shop").threshold("pre_ramp") == 4.9
    for (judge, vertical), threshold in others.items():
        assert evalcore.get_threshold(judge, "pre_ramp", vertical=vertical) == threshold
    (own,) = [m for m in evalcore.get_metrics_for_category("shop_returns", vertical="shop") if m.id == "helpfulness"]
    assert (own.vertical, own.threshold(), own.judge.filter.value if own.judge.filter else None) == (
        "shop",
        4.9,
        "shop",
    )
    (central,) = [m for m in evalcore.get_metrics_for_category("shop_returns") if m.id == "helpfulness"]
    assert (central.vertical, central.threshold(), central.judge.filter) == (None, 4, None)


def test_a_threshold_that_does_not_fit_its_judge_is_a_type_error(root: Path) -> None:
    """PC5 §9.5: a FLOAT threshold on a BOOLEAN judge. Validation finds it, so it never comes to serve; who asks a
    process that started with it is told what is wrong."""
    rewritten(root / MANIFEST, "thresholds: {}\n", "thresholds: {honesty: 0.9}\n")
    assert not evalcore.validate_manifest(root / MANIFEST, today=TODAY).valid
    with pytest.raises(evalcore.ThresholdTypeError, match=r"0\.9 for a BOOLEAN judge") as raised:
        evalcore.get_threshold("honesty", "pre_full")
    assert isinstance(raised.value, TypeError)
    with pytest.raises(evalcore.BrokenRegistry, match="honesty"):
        evalcore.get_threshold("brevity")
    with pytest.raises(evalcore.BrokenRegistry):
        evalcore.get_metric_by_id("brevity")


def test_a_threshold_that_comes_to_misfit_later_never_serves(root: Path) -> None:
    assert evalcore.get_threshold("honesty") is True
    rewritten(root / MANIFEST, "thresholds: {}\n", "thresholds: {honesty: 0.9}\n")
    assert not evalcore.refresh().valid
    assert evalcore.get_threshold("honesty") is True
