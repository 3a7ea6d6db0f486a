"""The package as who imports it finds it (PC5 §5.4, FR-8): its names, its page, its weight, and no one it needs."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evalcore
from evalcore import get_metric_by_id, get_metrics_for_category, get_threshold, reloading
from evalcore.registry import disk
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import GateVerdict, JudgeScore, VerdictLevel
from tests.root import ROOT

SHIPPED = ROOT / "configs"
ALONE = {
    "PATH": "/usr/bin:/bin",
    "OPIK_CONFIG_PATH": "/nowhere/opik.config",
    "HOME": "/nowhere",
    "OPIK_ANALYTICS_ENABLE": "true",
}

pytestmark = pytest.mark.usefixtures("just_started")


def python(code: str, root: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """In a process of its own, with the registry's root as its argument."""
    command = [sys.executable, "-c", code, str(root)]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=SHIPPED.parent)


def test_the_functions_have_the_specifications_signatures() -> None:
    """PC5 §5.4, §9.4, §10.1, contracts §3: positional parameters, their names and defaults; `vertical` by name only."""
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


def test_pc5_5_4_a_verdict_and_a_judges_score_are_as_the_document_has_them() -> None:
    """Frozen, with its fields in its order; ours follow. The words are texts, as PC6 compares them."""
    wanted = {
        GateVerdict: ["per_judge_scores", "verdict", "failing_judges", "milestone"],
        JudgeScore: ["score", "threshold", "passed", "enforcement"],
    }
    for kind, names in wanted.items():
        found = dataclasses.fields(kind)
        assert [one.name for one in found][: len(names)] == names
        assert all(one.default is not one.default_factory for one in found[len(names) :]), "ours can be left out"
    score = JudgeScore(4.5, 4.0, True, Enforcement.WARN)
    verdict = GateVerdict({"ux_quality": score}, VerdictLevel.PASS, [], Milestone.PRE_RAMP)
    for one, name in ((verdict, "verdict"), (score, "passed")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, False)
    assert (verdict.verdict, verdict.milestone, score.enforcement) == ("pass", "pre_ramp", "warn")
    assert [*VerdictLevel] == ["pass", "warn", "fail"]
    assert [*Milestone] == ["pre_merge", "pre_ramp", "pre_full"]


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


def test_lookups_work_in_a_folder_without_being_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RAMPGATE_CONFIGS, else `configs` where the process runs."""
    monkeypatch.setattr(reloading, "_chosen", None)
    monkeypatch.setenv("RAMPGATE_CONFIGS", str(root))
    assert evalcore.list_rules() == ["brevity", "helpfulness", "honesty", "refusal"]
    monkeypatch.setattr(reloading, "_chosen", None)
    monkeypatch.delenv("RAMPGATE_CONFIGS")
    monkeypatch.chdir(root.parent)
    assert evalcore.get_threshold("brevity") == 4
    assert disk.default_root() == Path("configs")


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
    """PC5 AC-8, FR-7, §5.6: a vertical's own project needs to grant nothing, and no more than reading. The process has
    no connection at all: first without credentials, then with a key that may only read."""
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


@pytest.mark.parametrize("nothing", [None, 7, b"ux_quality"])
def test_an_id_that_is_no_text_is_said_to_be_none(nothing: Any) -> None:
    """As where a configuration lacks the judge that it was to name."""
    with pytest.raises(TypeError, match=r"a judge's id is a text, not .*; there are .*ux_quality"):
        get_metric_by_id(nothing)
    with pytest.raises(TypeError, match=r"a judge's id is a text, not .*; there are .*ux_quality"):
        get_threshold(nothing, "pre_ramp")
    with pytest.raises(TypeError, match=r"a category is a text, not .*; there are .*general_qa"):
        get_metrics_for_category(nothing)
