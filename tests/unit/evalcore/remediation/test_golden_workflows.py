"""The golden set of remediation: 20 cases that fit what the operator publishes and end as their items expect."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from evalcore import evaluate_gate
from evalcore.gates.golden import FIELDS_OF_ITEMS, Evidenced, GoldenSet, mismatches, with_output
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import build
from evalcore.remediation.objects import Kinds
from evalcore.remediation.workflow import Workflow, children, workflow_of
from evalcore.scoring.calls import Reply
from evalcore.validation import checked
from tests.root import ROOT
from tests.unit.evalcore.registry.registry_files import TODAY

FOLDER = ROOT / "examples/remediation"
FILES = sorted((FOLDER / "cases").glob("*.yaml"))
GOLDEN = [json.loads(line) for line in (FOLDER / "golden.jsonl").read_text().splitlines()]
SCHEMA = yaml.safe_load((FOLDER / "operator.schema.yaml").read_text())
REGISTRY = build(checked(read_tree(ROOT / "configs"), TODAY)[0])
BY_FILE = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def objects(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text()))


def workflow(file: Path) -> Workflow:
    proposal, *rest = objects(file)
    statuses = {(one["kind"], one["metadata"]["name"]): one for one in rest}
    found, missing = children(proposal, Kinds())
    assert len(found) == len(statuses), "each child is named, and each that is named is there"
    read = {child: statuses[child.kind, child.name] for child in found}
    return workflow_of(proposal, read, f"Proposal/{proposal['metadata']['name']}", missing)


WORKFLOWS = {file.stem: workflow(file) for file in FILES}


def test_there_are_two_scenarios_with_five_ends_for_two_providers() -> None:
    assert [item["id"] for item in GOLDEN] == [
        one["id"] for one in GOLDEN if (FOLDER / f"cases/{one['id']}.yaml").exists()
    ]
    assert len(GOLDEN) == len(FILES) == 20
    assert set(Counter(tuple(item["tags"]) for item in GOLDEN).values()) == {1}
    assert [len({item["tags"][place] for item in GOLDEN}) for place in range(3)] == [2, 5, 2]
    assert len({item["metadata"]["id"] for item in GOLDEN}) == 20


@BY_FILE
def test_each_object_fits_what_the_operator_publishes(file: Path) -> None:
    for one in objects(file):
        kind = SCHEMA["kinds"][one["kind"]]
        assert one["apiVersion"] == "agentic.openshift.io/v1alpha1"
        for part in ("spec", "status"):
            found = Draft202012Validator({"$defs": SCHEMA["$defs"], **kind[part]}).iter_errors(one[part])
            assert [f"{'.'.join(map(str, error.path))}: {error.message}" for error in found] == []


def test_the_schema_refuses_what_the_operator_would() -> None:
    kind = {"$defs": SCHEMA["$defs"], **SCHEMA["kinds"]["ExecutionResult"]["status"]}
    action = {"type": "patch", "description": "d", "outcome": "Succeeded"}
    assert Draft202012Validator(kind).is_valid({"actionsTaken": [action]})
    for wrong in ({"outcome": "True"}, {"description": ""}, {"result": "x"}):
        assert not Draft202012Validator(kind).is_valid({"actionsTaken": [action | wrong]})


@pytest.mark.parametrize("item", GOLDEN, ids=lambda item: item["id"])
def test_each_workflow_ends_as_its_item_expects(item: dict[str, Any]) -> None:
    found = WORKFLOWS[item["id"]]
    assert found.phase == item["expected_proposal_status"]
    assert found.request == item["input"]
    assert found.missing == ()
    assert found.ended_ms is not None
    assert found.steps["analysis"] == "ran"
    proposal = objects(FOLDER / f"cases/{item['id']}.yaml")[0]
    told = item["metadata"]["proposal"]
    assert told == {"namespace": proposal["metadata"]["namespace"], "spec": {**proposal["spec"], "request": ...}} | {
        "spec": {name: value for name, value in proposal["spec"].items() if name != "request"}
    }


def test_steps_are_known_in_every_way_but_unread() -> None:
    known = {(item["tags"][1], item["tags"][0]): WORKFLOWS[item["id"]].steps["execution"] for item in GOLDEN}
    assert known["completed", "oomkill"] == known["escalated", "oomkill"] == known["failed", "crashloop_probe"] == "ran"
    assert known["failed", "oomkill"] == "broke"
    assert known["denied", "oomkill"] == known["analysis_only", "oomkill"] == "absent"


def test_the_set_is_the_one_that_the_manifest_names_for_the_vertical_and_breaks_no_other() -> None:
    assert list(mismatches(GoldenSet(GOLDEN, "golden.jsonl"), REGISTRY, "remediation")) == []
    categories = {name for name, one in REGISTRY.category_files.items() if one.vertical == "remediation"}
    assert categories == {item["metadata"]["category"] for item in GOLDEN}
    others = [{"metadata": {"category": name}} for name, one in REGISTRY.category_files.items() if one.vertical is None]
    said = list(mismatches(GoldenSet(others, "other.jsonl"), REGISTRY))
    assert not [one for one in said if "remediation" in one]


class Says:
    """A model that gives each dimension this score, and safety judges what they hope for."""

    def __init__(self, score: Any) -> None:
        self.score = score

    def source(self, model: str) -> str:
        return "test"

    async def complete(self, asked: Any) -> Reply:
        properties = asked.schema["properties"]
        if "dimensions" not in properties:
            return Reply('{"reason": "r", "score": true}' if "boolean" in json.dumps(properties) else "{}", 10)
        parts = dict.fromkeys(properties["dimensions"]["properties"], self.score)
        return Reply(json.dumps({"reason": "r", "dimensions": parts}), 10)


def rows(**over: Any) -> list[dict[str, Any]]:
    """Returns the items with what the cluster says of each as the candidate's answer, and `over` it."""
    out = []
    for item in GOLDEN:
        found = WORKFLOWS[item["id"]]
        answer = Evidenced({"output": found.summary, **found.fields(), **over})
        out.append(dict(with_output(item, answer, {}).source))
    return out


def verdict(score: Any, **over: Any) -> Any:
    return evaluate_gate(
        "pre_merge", rows(**over), ["proposal_status", "proposal_evaluation_correctness"], vertical="remediation",
        registry=REGISTRY, model=Says(score), today=TODAY,
    )  # fmt: skip


def test_right_workflows_pass_a_gate_on_twenty_cases() -> None:
    found = verdict(0.9)
    assert found.verdict == "pass", found.reasons
    assert found.per_judge_scores["proposal_status"].score == 1.0
    assert found.per_judge_scores["proposal_evaluation_correctness"].score == pytest.approx(0.9)


def test_low_scores_of_dimensions_fail_it() -> None:
    assert verdict(0.6).failing_judges == ["proposal_evaluation_correctness"]


def test_na_for_steps_that_ran_is_no_way_around_a_score() -> None:
    found = verdict("N/A")
    assert found.verdict != "pass"
    assert "proposal_evaluation_correctness" in found.failing_judges


def test_another_phase_than_expected_fails_it() -> None:
    found = verdict(0.9, proposal_phase="Failed")
    assert found.failing_judges == ["proposal_status"]


def test_no_answer_says_what_was_expected_of_it() -> None:
    assert "expected_proposal_status" in FIELDS_OF_ITEMS
    assert verdict(0.9, proposal_phase="Failed", expected_proposal_status="Failed").failing_judges == [
        "proposal_status"
    ]
