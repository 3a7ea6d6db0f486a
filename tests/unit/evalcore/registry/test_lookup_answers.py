"""What lookups answer (PC5 FR-8, NFR-1): kept without a file, not for whatever name, and nobody's to change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

import evalcore
from evalcore import api
from tests.unit.evalcore.registry.registry_disk import rewritten
from tests.unit.evalcore.registry.registry_reloading import CENTRAL, MANIFEST, ids

pytestmark = pytest.mark.usefixtures("just_started")


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
