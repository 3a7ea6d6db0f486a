"""The eval-config API as callers use it (PC5 §5.4, FR-5, FR-8, NFR-1; PF-9 FR-1, AC-1, AC-2)."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from registry_disk import rewritten, written
from registry_files import REGISTRY, TODAY

import evalcore
from evalcore import live, loading, lookup
from evalcore.judging import LLMJudgeMetric
from schemas.judges import BaselineSource, Classification, Milestone

CENTRAL, MANIFEST, OWN = "rules/helpfulness.yaml", "evaluation_manifest.yaml", "rules/shop/helpfulness.yaml"
SHIPPED = Path(__file__).parents[2] / "configs"
NEW = yaml.dump({**yaml.safe_load(REGISTRY[CENTRAL]), "id": "wit", "score_name": "wit"})
ALONE = {
    "PATH": "/usr/bin:/bin",
    "OPIK_CONFIG_PATH": "/nowhere/opik.config",
    "HOME": "/nowhere",
    "OPIK_ANALYTICS_ENABLE": "true",
}


@pytest.fixture(autouse=True)
def nothing_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just started, on a fixed day."""
    monkeypatch.setattr(live, "_live", None)
    monkeypatch.setattr(lookup, "_metrics", None)
    monkeypatch.setattr(lookup, "_manifest", None)
    monkeypatch.setattr(live.LiveRegistry.__init__, "__kwdefaults__", _defaults())


def _defaults() -> dict[str, Any]:
    return {**(live.LiveRegistry.__init__.__kwdefaults__ or {}), "today": lambda: TODAY, "settle": 0.001}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The small registry, served."""
    root = written(tmp_path)
    evalcore.use(root, ttl=None)
    return root


def ids(metrics: list[LLMJudgeMetric]) -> list[str]:
    return [metric.id for metric in metrics]


def python(code: str, root: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """In a process of its own, with the registry's root as its argument."""
    command = [sys.executable, "-c", code, str(root)]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=SHIPPED.parent)


def restarted(root: Path) -> None:
    evalcore.use(root, ttl=None)


def test_the_functions_have_the_specifications_signatures() -> None:
    """PC5 §5.4, contracts §3: positional parameters, their names and defaults; `vertical` by name only."""
    wanted = {
        "get_metrics_for_category": ["category"],
        "get_metric_by_id": ["judge_id"],
        "load_manifest": [],
        "get_threshold": ["judge_id", "milestone"],
        "list_rules": [],
        "validate_rule_file": ["path"],
        "validate_manifest": ["path"],
    }
    for name, parameters in wanted.items():
        found = inspect.signature(getattr(evalcore, name)).parameters
        positional = [p.name for p in found.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert positional == parameters
        others = [p for p in found.values() if p.kind is not p.POSITIONAL_OR_KEYWORD]
        assert all(p.kind is p.KEYWORD_ONLY and p.default is None for p in others), "callable without the rest"
        if name in ("get_metrics_for_category", "get_metric_by_id", "get_threshold"):
            assert [p.name for p in others] == ["vertical"]
    assert inspect.signature(evalcore.get_threshold).parameters["milestone"].default is None


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


def test_the_milestones_own_threshold_is_returned_and_else_the_default(root: Path) -> None:
    """PC5 AC-5, FR-6, §9.1; `refresh` serves the new one without a restart (FR-10)."""
    assert evalcore.get_threshold("helpfulness", "pre_full") == 4
    rewritten(
        root / MANIFEST, "categories:\n", "thresholds: {helpfulness: 4, helpfulness.pre_full: 4.5}\ncategories:\n"
    )
    assert evalcore.get_threshold("helpfulness", "pre_full") == 4
    assert evalcore.refresh().valid
    assert evalcore.get_threshold("helpfulness", "pre_full") == 4.5
    assert evalcore.get_threshold("helpfulness", "pre_ramp") == evalcore.get_threshold("helpfulness") == 4
    assert evalcore.get_threshold("helpfulness", Milestone.PRE_FULL) == 4.5
    assert evalcore.get_threshold("honesty", "pre_merge") is True
    assert evalcore.get_metric_by_id("helpfulness").threshold("pre_full") == 4.5
    assert evalcore.get_metric_by_id("helpfulness").threshold() == 4


def test_a_verticals_thresholds_are_given_to_who_asks_for_it_and_to_nobody_else(root: Path) -> None:
    """PF-9 AC-8, in files: one vertical calibrates, the other's thresholds stay as they are."""
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
    rewritten(root / MANIFEST, "categories:\n", "thresholds: {honesty: 0.9}\ncategories:\n")
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
    rewritten(root / MANIFEST, "categories:\n", "thresholds: {honesty: 0.9}\ncategories:\n")
    assert not evalcore.refresh().valid
    assert evalcore.get_threshold("honesty") is True


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


def test_the_manifest_is_a_dict_as_its_file_has_it(root: Path) -> None:
    assert evalcore.load_manifest() == yaml.safe_load((root / MANIFEST).read_text())
    assert type(evalcore.load_manifest()) is dict


def test_what_a_caller_does_to_a_list_or_a_manifest_reaches_nobody_else(root: Path) -> None:
    metrics, rules, manifest = evalcore.get_metrics_for_category("general_qa"), evalcore.list_rules(), None
    metrics.clear(), rules.clear()
    manifest = evalcore.load_manifest()
    manifest["categories"]["general_qa"]["judges"].clear()
    manifest["thresholds"] = {"helpfulness": 1}
    assert ids(evalcore.get_metrics_for_category("general_qa")) == ["helpfulness", "refusal", "honesty"]
    assert evalcore.list_rules() == ["brevity", "helpfulness", "honesty", "refusal"]
    assert evalcore.get_threshold("helpfulness") == 4
    assert evalcore.load_manifest() == yaml.safe_load((root / MANIFEST).read_text())


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


def test_names_that_nobody_knows_are_not_remembered(root: Path) -> None:
    """Verticals come out of events: their number has no end."""
    evalcore.get_metric_by_id("helpfulness")
    evalcore.get_metrics_for_category("general_qa")
    serving = lookup._serving()
    kept = len(serving.by_id), len(serving.by_category)
    for number in range(100):
        assert evalcore.get_metric_by_id("helpfulness", vertical=f"made-up-{number}").vertical is None
        assert evalcore.get_metric_by_id(" " * number + "helpfulness").id == "helpfulness"
        assert len(evalcore.get_metrics_for_category("general_qa", vertical=f"made-up-{number}")) == 3
        with pytest.raises(evalcore.UnknownJudge):
            evalcore.get_metric_by_id(f"made-up-{number}")
    assert (len(serving.by_id), len(serving.by_category)) == kept


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


def test_lookups_work_in_a_folder_without_being_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RAMPGATE_CONFIGS, else `configs` where the process runs."""
    monkeypatch.setattr(live, "_live", None)
    monkeypatch.setenv("RAMPGATE_CONFIGS", str(root))
    assert evalcore.list_rules() == ["brevity", "helpfulness", "honesty", "refusal"]
    monkeypatch.setattr(live, "_live", None)
    monkeypatch.delenv("RAMPGATE_CONFIGS")
    monkeypatch.chdir(root.parent)
    assert evalcore.get_threshold("brevity") == 4
    assert loading.default_root() == Path("configs")


PROBE = """
import os, socket, sys
def refuse(*args, **kwargs):
    raise AssertionError(f"a connection was opened: {args}")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
import evalcore
for credentials in ({}, {"OPIK_API_KEY": "reads-only", "OPIK_URL_OVERRIDE": "http://opik.invalid/api"}):
    os.environ.update(credentials)
    evalcore.use(sys.argv[1])
    for vertical in (None, "shop", "travel"):
        for name in evalcore.list_rules():
            evalcore.get_metric_by_id(name, vertical=vertical)
            evalcore.get_threshold(name, "pre_full", vertical=vertical)
        for category in evalcore.load_manifest()["categories"]:
            assert evalcore.get_metrics_for_category(category, vertical=vertical)
    print(len(evalcore.list_rules()))
"""


def test_lookups_need_no_opik_and_never_write_to_it(root: Path) -> None:
    """PC5 AC-8, FR-7: a vertical's own project needs to grant nothing, and no more than reading. The process has no
    connection at all: first without credentials, then with a key that may only read."""
    key = root.parent / "read-only.key"
    key.write_text("reads-only")
    (root / "verticals/shop.yaml").write_text(f"{{name: shop, project: shop-eval, api_key_file: {key}}}")
    run = python(PROBE, root, env=ALONE)
    assert (run.returncode, run.stdout) == (0, "4\n4\n"), run.stderr


def test_importing_the_library_is_cheap(root: Path) -> None:
    """Who validates files, or asks for a threshold, waits neither for opik nor for models of anything."""
    code = """
import sys
import evalcore
heavy = {"opik", "litellm", "pydantic", "yaml", "scipy", "numpy"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert set(evalcore.__all__) == set(evalcore._FROM)
for name in evalcore.__all__:
    if name != "LLMJudgeMetric":
        getattr(evalcore, name)
evalcore.use(sys.argv[1])
evalcore.get_threshold("helpfulness", "pre_full"), evalcore.load_manifest(), evalcore.list_rules(), evalcore.refresh()
assert not {"opik", "litellm"} & set(sys.modules)
assert evalcore.LLMJudgeMetric and "opik" in sys.modules
assert "litellm" not in sys.modules
"""
    run = python(code, root)
    assert run.returncode == 0, run.stderr


def test_what_the_library_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'get_metric'"):
        _ = evalcore.get_metric


def test_the_documented_calls_work_as_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/registry.md, run on the shipped files; what a comment gives as the answer is the answer."""
    page = (SHIPPED.parent / "docs/registry.md").read_text()
    monkeypatch.chdir(SHIPPED.parent)
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    evalcore.use(SHIPPED, ttl=None)
    names: dict[str, Any] = {}
    told = 0
    for line in block.splitlines():
        code, _, comment = line.partition("  # ")
        if "(" not in code or "=" in code.partition("(")[0]:
            exec(code, names)  # noqa: S102  # our own page
            continue
        found = eval(code, names)  # noqa: S307  # the same
        assert found or comment == "[]"
        if re.match(r"True$|\[\]$|[\d.]+(,|$)", comment):
            told += 1
            assert found == ast.literal_eval(comment.partition(",")[0]), line
    assert told == 4
    assert {"UnknownJudge", "UnknownCategory", "UnknownArchetype", "ThresholdTypeError", "BrokenRegistry"} <= set(
        re.findall(r"`(\w+)`", page)
    ) & set(evalcore.__all__)
