"""Lookups (PC5 FR-5, FR-8, NFR-1; PF-9 FR-1, AC-1, AC-2): judges by id, category, classification, archetype and sub-
agent, answered without a file and changed by no caller; thresholds."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest
import yaml

import evalcore
from evalcore import api
from schemas.judges import BaselineSource, Classification, Milestone
from tests.root import ROOT
from tests.unit.evalcore.registry.registry_disk import rewritten
from tests.unit.evalcore.registry.registry_files import REGISTRY, TODAY
from tests.unit.evalcore.registry.registry_reloading import CENTRAL, MANIFEST, OWN, ids

SHIPPED = ROOT / "configs"
NEW = yaml.dump({**yaml.safe_load(REGISTRY[CENTRAL]), "id": "wit", "score_name": "wit"})

pytestmark = pytest.mark.usefixtures("just_started")


def restarted(root: Path) -> None:
    evalcore.use(root, ttl=None)


def test_a_new_rule_file_is_valid_and_its_judge_is_there_after_a_restart_and_after_a_refresh(root: Path) -> None:
    """PC5 AC-1."""
    with pytest.raises(evalcore.UnknownJudge, match="no judge 'wit'"):
        evalcore.get_metric_by_id("wit")
    (root / "rules/wit.yaml").write_text(NEW)
    rewritten(root / MANIFEST, "general_qa:\n    judges:\n", "general_qa:\n    judges:\n    - wit\n")
    assert evalcore.validate_rule_file(root / "rules/wit.yaml", today=TODAY).valid
    assert evalcore.validate_manifest(root / MANIFEST, today=TODAY).valid
    assert evalcore.refresh().valid
    refreshed = evalcore.get_metric_by_id("wit")
    restarted(root)
    metric = evalcore.get_metric_by_id("wit")
    assert metric is not refreshed
    assert isinstance(metric, evalcore.LLMJudgeMetric)
    assert metric.id == metric.judge_id == "wit"
    assert "wit" in evalcore.list_rules()


def test_a_new_category_gives_a_metric_for_each_of_its_judges_and_the_global_ones(root: Path) -> None:
    """PC5 AC-2."""
    rewritten(root / MANIFEST, "categories:\n", "categories:\n  small_talk:\n    judges:\n    - brevity\n")
    restarted(root)
    metrics = evalcore.get_metrics_for_category("small_talk")
    assert all(isinstance(metric, evalcore.LLMJudgeMetric) for metric in metrics)
    assert ids(metrics) == ["brevity", "refusal", "honesty"]
    with pytest.raises(evalcore.UnknownCategory, match=r"no category 'smalltalk'.*small_talk"):
        evalcore.get_metrics_for_category("smalltalk")


def test_judges_are_found_by_classification_archetype_and_sub_agent(root: Path) -> None:
    """PF-9 FR-2, FR-5."""
    rewritten(root / CENTRAL, "applies_to: []", "applies_to: [conversation]")
    restarted(root)
    assert ids(evalcore.get_metrics_for_classification("safety_refusal")) == ["honesty", "refusal"]
    assert ids(evalcore.get_metrics_for_classification("quality", vertical="shop")) == ["brevity", "helpfulness"]
    assert "helpfulness" in ids(evalcore.get_metrics_for_archetype("conversation"))
    assert "helpfulness" not in ids(evalcore.get_metrics_for_archetype("search"))
    assert "helpfulness" in ids(evalcore.get_metrics_for_sub_agent("shop", vertical="shop"))
    assert "helpfulness" not in ids(evalcore.get_metrics_for_sub_agent("finder"))
    with pytest.raises(evalcore.UnknownArchetype):
        evalcore.get_metrics_for_archetype("shopping")
    with pytest.raises(ValueError, match="safety_refusal, quality"):
        evalcore.get_metrics_for_classification("safe")


def test_every_shipped_judge_tells_its_metadata_provenance_and_classification() -> None:
    """PF-9 AC-1, AC-2."""
    evalcore.use(SHIPPED, ttl=None)
    assert len(evalcore.list_rules()) >= 16
    for name in evalcore.list_rules():
        metric = evalcore.get_metric_by_id(name)
        file = yaml.safe_load((SHIPPED / f"rules/{name}.yaml").read_text())
        assert (metric.rule.name, metric.rule.prompt, metric.rule.model) == (
            file["name"],
            file["prompt"],
            file["model"],
        )
        assert metric.judge.classification is Classification(file["classification"])
        assert metric.judge.baseline_source is BaselineSource(file["baseline_source"])
        assert metric.judge.recalibration_due == file["recalibration_due"]
        assert isinstance(metric.judge.recalibration_due, date)
        assert metric.judge.calibration_ref == file.get("calibration_ref")
        assert metric.judge.calibration is not None


def test_answers_are_cached(root: Path) -> None:
    """PC5 §9.1, NFR-1: the same instances on repeat calls; new ones after a refresh that changed something."""
    for name in ("helpfulness", "Helpfulness"):
        assert evalcore.get_metric_by_id(name) is evalcore.get_metric_by_id("helpfulness")
    assert evalcore.get_metrics_for_category("general_qa")[0] is evalcore.get_metric_by_id("helpfulness")
    assert evalcore.load_manifest() is evalcore.load_manifest()
    before, manifest = evalcore.get_metric_by_id("helpfulness"), evalcore.load_manifest()
    evalcore.refresh()
    assert evalcore.get_metric_by_id("helpfulness") is before, "unchanged files change nothing"
    assert evalcore.load_manifest() is manifest
    rewritten(root / CENTRAL, "threshold: 4", "threshold: 3")
    evalcore.refresh()
    assert evalcore.get_metric_by_id("helpfulness") is not before
    assert evalcore.load_manifest() is not manifest


def test_names_that_nobody_knows_are_not_remembered(root: Path) -> None:
    """Verticals come out of events: their number has no end."""
    evalcore.get_metric_by_id("helpfulness")
    evalcore.get_metrics_for_category("general_qa")
    serving = api._serving()
    kept = len(serving.by_id), len(serving.by_category)
    for number in range(100):
        assert evalcore.get_metric_by_id("helpfulness", vertical=f"made-up-{number}").vertical is None
        assert evalcore.get_metric_by_id(" " * number + "helpfulness").id == "helpfulness"
        assert len(evalcore.get_metrics_for_category("general_qa", vertical=f"made-up-{number}")) == 3
        with pytest.raises(evalcore.UnknownJudge):
            evalcore.get_metric_by_id(f"made-up-{number}")
    assert (len(serving.by_id), len(serving.by_category)) == kept


def test_no_call_touches_a_file_once_the_registry_is_loaded(root: Path) -> None:
    """PC5 NFR-1: the folder is gone, and everything is answered."""
    evalcore.list_rules()
    shutil.rmtree(root.parent)
    assert evalcore.get_metric_by_id("helpfulness").id == "helpfulness"
    assert evalcore.get_metric_by_id("brevity", vertical="shop").vertical == "shop"
    assert ids(evalcore.get_metrics_for_category("general_qa")) == ["helpfulness", "refusal", "honesty"]
    assert len(evalcore.get_metrics_for_classification("safety_refusal")) == 2
    assert evalcore.get_threshold("helpfulness", "pre_ramp", vertical="shop") == 4.5
    assert evalcore.load_manifest()["dataset"]["name"] == "golden"
    assert evalcore.list_rules() == ["brevity", "helpfulness", "honesty", "refusal"]


def test_the_manifest_is_a_dict_as_its_file_has_it(root: Path) -> None:
    """PC5 §5.4."""
    assert evalcore.load_manifest() == yaml.safe_load((root / MANIFEST).read_text())
    assert type(evalcore.load_manifest()) is dict


def test_what_a_caller_does_to_a_list_or_a_manifest_reaches_nobody_else(root: Path) -> None:
    evalcore.get_metrics_for_category("general_qa").clear()
    evalcore.list_rules().clear()
    manifest = evalcore.load_manifest()
    manifest["categories"]["general_qa"]["judges"].clear()
    manifest["thresholds"] = {"helpfulness": 1}
    assert ids(evalcore.get_metrics_for_category("general_qa")) == ["helpfulness", "refusal", "honesty"]
    assert evalcore.list_rules() == ["brevity", "helpfulness", "honesty", "refusal"]
    assert evalcore.get_threshold("helpfulness") == 4
    assert evalcore.load_manifest() == yaml.safe_load((root / MANIFEST).read_text())


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
    process that started with it reports what is wrong."""
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
