"""A rule whose model is `spec:FILE` judges traces by a spec's layers without a model, and decides gates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalcore import evaluate_gate
from evalcore.judges.evaluator import Evaluation, Task
from evalcore.judges.kinds import needs_model
from evalcore.registry.disk import read_tree
from evalcore.registry.files import RegistryFiles
from evalcore.registry.judge import Judge
from evalcore.registry.opik_rules import plan
from evalcore.registry.registry import build, config_hash
from evalcore.scoring.calls import CallFailed, Failure
from evalcore.scoring.runner import evaluate
from evalcore.specs.live import picks
from evalcore.validation import assembled
from evalcore.yaml.findings import Finding
from schemas.specs import Matcher
from tests.unit.evalcore.gates.gate_items import Model, items
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.evalcore.registry.registry_files import TODAY, registry

RULE = """
{model: "spec:router.yaml", score_type: BOOLEAN, threshold: true, floor: 0.5, tolerance: 0}
"""
SPEC = """
agent: router
queries:
  - id: billing
    query: I want to cancel
    matcher: {category: general_qa, metadata: {sub_agent: billing}}
    correctness: {not_in_answer: [idiot], safety_check: {rule: it is polite}}
    path: {forbidden_tools: [delete_account], max_tool_calls: 2}
  - {id: never, query: not on the stream, correctness: {exact_match: x}}
"""


def files_of(router: str | None = SPEC, *, rule: str = RULE, **others: str) -> tuple[RegistryFiles, list[Finding]]:
    tree = registry({"rules/brevity.yaml": rule})
    for name, text in {"router": router, **others}.items():
        if text is not None:
            tree = tree.with_file(f"agent-specs/{name}.yaml", text.encode())
    return assembled(tree, TODAY)


def judge(router: str = SPEC, **others: str) -> Judge:
    found, findings = files_of(router, **others)
    assert findings == []
    return build(found).judge("brevity")


def trace(output: Any = "done", tools: Any = (), **metadata: Any) -> dict[str, Any]:
    return {
        "output": output, "tool_calls": None if tools is None else [{"name": name} for name in tools],
        "metadata": {"category": "general_qa", "sub_agent": "billing", **metadata},
    }  # fmt: skip


def found(source: dict[str, Any], by: Judge | None = None) -> Any:
    return evaluate(Task(by or judge(), "t", "online", source))


@pytest.mark.parametrize(
    ("source", "score", "reason"),
    [
        (trace(), 1.0, ""),
        (trace(tools=["a", "b", "c"]), 1.0, "billing: Tool calls: 3 > max 2"),
        (trace(tools=["delete_account"]), 0.0, "billing: Forbidden tools used: delete_account"),
        (trace("you idiot"), 0.0, "billing: Forbidden term 'idiot' found in answer"),
        (trace({"messages": [{"content": "you idiot"}]}), 0.0, "billing: Forbidden term 'idiot' found in answer"),
        (trace(sub_agent="sales"), None, "no query of the spec picks it"),
        (trace(category="other"), None, "no query of the spec picks it"),
    ],
)
def test_the_queries_that_pick_a_trace_judge_it(source: dict[str, Any], score: float | None, reason: str) -> None:
    assert found(source) == Evaluation(score, reason)


def test_what_can_not_be_decided_is_unscored() -> None:
    made = found(trace(tools=None))
    assert isinstance(made, CallFailed)
    assert (made.kind, "the answer has no `tool_calls`" in made.message) == (Failure.UNBOUND, True)


def test_a_spec_says_what_blocks_on_the_stream_too() -> None:
    blocking = judge(SPEC + "fail_on: [max_tool_calls]\n")
    assert found(trace(tools=["a", "b", "c"]), blocking).value == 0.0


def test_there_is_no_baseline_on_the_stream() -> None:
    """What needs one warns; where it blocks, the trace is unscored."""
    needing = SPEC.replace("path: {", "cost: {max_cost_multiplier: 2.0}\n    path: {")
    warned = found(trace(), judge(needing))
    assert warned.value == 1.0
    assert "max_cost_multiplier can't be checked" in warned.reason
    assert isinstance(found(trace(), judge(f"{needing}fail_on: [max_cost_multiplier]\n")), CallFailed)


def test_it_asks_no_model() -> None:
    assert not needs_model(judge())


def test_a_gate_decides_by_it() -> None:
    about = {"metadata": {"category": "general_qa", "sub_agent": "billing"}}
    given = [{**one, "tool_calls": [], "metadata": {**one["metadata"], **about["metadata"]}} for one in items(25)]
    for one in given[20:]:
        one["tool_calls"] = [{"name": "delete_account"}]
    whole = build(files_of()[0])
    verdict = evaluate_gate("pre_merge", given, ["brevity"], model=Model(), registry=whole, today=TODAY)
    one = verdict.per_judge_scores["brevity"]
    assert (one.score, one.n, one.unscored, one.passed) == (0.8, 25, 0, False)


def test_the_files_content_is_a_part_of_the_version() -> None:
    texts = SPEC, SPEC.replace("idiot", "fool"), f"# a comment\n{SPEC}"
    versions = [judge(text).version for text in texts]
    assert versions[0] == versions[2] != versions[1]
    hashes = [config_hash(files_of(text)[0]) for text in texts]
    assert hashes[0] == hashes[2] != hashes[1]


def test_what_a_spec_includes_is_of_the_version_too() -> None:
    including = SPEC.replace("{not_in_answer: [idiot], safety_check: {rule: it is polite}}", "!include tone.yaml")
    first, second = (judge(including, tone=f"not_in_answer: [{one}]") for one in ("idiot", "fool"))
    assert first.version != second.version
    assert found(trace("a fool"), second).value == 0.0


@pytest.mark.parametrize(
    ("router", "rule", "check", "place"),
    [
        (None, RULE, "no-spec", "configs/rules/brevity.yaml"),
        (SPEC, RULE.replace("router", "../manifest"), "no-spec", "configs/rules/brevity.yaml"),
        (SPEC, '{model: "spec:router.yaml"}', "spec-score", "configs/rules/brevity.yaml"),
        ("agent: router\nqueries: []\n", RULE, "", "configs/agent-specs/router.yaml"),
        (
            SPEC.replace("path: {", "path: !include ../rules/brevity.yaml #"),
            RULE,
            "",
            "configs/agent-specs/router.yaml",
        ),
    ],
)
def test_a_spec_that_can_not_be_used_is_told_with_its_place(
    router: str | None, rule: str, check: str, place: str
) -> None:
    files, findings = files_of(router, rule=rule)
    assert place in {one.file for one in findings}
    assert any(check in one.check for one in findings)
    assert "brevity" not in files.rules, "no judge scores without its spec"
    assert ("rule", "brevity") in files.unread


def test_a_folders_specs_are_read(tmp_path: Path) -> None:
    root = written(tmp_path)
    (root / "agent-specs").mkdir()
    (root / "agent-specs" / "router.yaml").write_text(SPEC)
    assert "agent-specs/router.yaml" in read_tree(root).files


def test_opik_gets_no_copy_of_a_rule_that_it_can_not_run() -> None:
    made = plan(build(files_of()[0]).all("shop"), "shop", True, [], "project")
    assert "brevity" not in {one.metadata.get("judge_id") for one in made.create}
    assert any("a spec, which Opik can't" in str(one) for one in made.left_alone)


@pytest.mark.parametrize(
    ("matcher", "source", "picked"),
    [
        ({"tag": "vip"}, {"tags": ["vip"]}, True),
        ({"tag": "vip"}, {"metadata": {"tags": ["vip", "a"]}}, True),
        ({"tag": "vip"}, {"tags": "vip", "metadata": None}, False),
        ({"metadata": {"n": 1}}, {"metadata": {"n": 1, "m": 2}}, True),
        ({"metadata": {"n": 1}}, {"metadata": {"n": True}}, False),
        ({"metadata": {"n": 1}}, {"metadata": {}}, False),
        ({"category": "a", "tag": "vip"}, {"tags": ["vip"], "metadata": {"category": "b"}}, False),
    ],
)
def test_a_matcher_picks_by_all_that_it_names(matcher: Any, source: Any, picked: bool) -> None:
    assert picks(Matcher.model_validate(matcher), source) is picked
