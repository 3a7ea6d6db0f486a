"""Judges are found by id, category, classification, archetype and sub-agent (PC5 FR-5, FR-8; PF-9 FR-1, AC-1, AC-2)."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import yaml

import evalcore
from schemas.judges import BaselineSource, Classification
from tests.root import ROOT
from tests.unit.evalcore.registry.registry_disk import rewritten
from tests.unit.evalcore.registry.registry_files import REGISTRY, TODAY
from tests.unit.evalcore.registry.registry_reloading import CENTRAL, MANIFEST, ids

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
