"""A workflow of what was read of the cluster (Remediation test plan 2), and that no status makes it raise."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.remediation.objects import Kinds, Missing, Object, Why, is_name, is_namespace
from evalcore.remediation.phase import Phase
from evalcore.remediation.summary import MOST_BYTES
from evalcore.remediation.workflow import (
    STEPS,
    Child,
    Step,
    Workflow,
    children,
    standing,
    workflow_of,
)

KINDS = Kinds()
WHAT = "Proposal/fix"


def proposal(named: dict[str, list[str]], conditions: list[dict[str, str]] | None = None, **spec: Any) -> Object:
    steps = {step: {"results": [{"name": name, "outcome": "Succeeded"} for name in of]} for step, of in named.items()}
    return {
        "metadata": {"name": "fix", "uid": "u1", "creationTimestamp": "2026-05-27T10:00:00Z"},
        "spec": {"request": "Pods of api restart.", "analysis": {}, **spec},
        "status": {"conditions": conditions or [], "steps": steps},
    }


def met(kind: str, at: str = "2026-05-27T10:09:00Z", status: str = "True") -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": "Complete",
        "message": f"{kind} said so",
        "lastTransitionTime": at,
    }


def workflow(of: Object, statuses: dict[str, Any]) -> Workflow:
    found, missing = children(of, KINDS)
    read = {child: statuses[child.name] for child in found}
    return workflow_of(
        of, {child: at if isinstance(at, Why) else {"status": at} for child, at in read.items()}, WHAT, missing
    )


ANALYSIS = {"options": [{"title": "Raise the limit", "diagnosis": {"summary": "OOM", "confidence": "High"}}]}
EXECUTION = {"actionsTaken": [{"type": "patch", "description": "Set 512Mi", "outcome": "Succeeded"}]}
VERIFICATION = {"checks": [{"name": "pod-ready", "source": "oc", "value": "Running", "result": "Passed"}]}


def test_of_an_analysis_alone_the_other_steps_are_absent() -> None:
    found = workflow(proposal({"analysis": ["a1"]}, [met("Analyzed")]), {"a1": ANALYSIS})
    assert (found.phase, found.results) == (Phase.COMPLETED, {"analysis": [ANALYSIS]})
    assert found.steps == {"analysis": "ran", "execution": "absent", "verification": "absent"}
    assert found.missing == ()


def test_of_analysis_and_execution_both_ran() -> None:
    of = proposal({"analysis": ["a1"], "execution": ["e1"]}, [met("Analyzed"), met("Executed")], execution={})
    found = workflow(of, {"a1": ANALYSIS, "e1": EXECUTION})
    assert found.phase is Phase.COMPLETED
    assert found.steps == {"analysis": "ran", "execution": "ran", "verification": "absent"}


def test_a_full_workflow_has_each_steps_complete_statuses_in_the_lists_order() -> None:
    retried = {
        "actionsTaken": [{"type": "patch", "description": "Set 1Gi", "outcome": "Succeeded"}],
        "extra": {"x": [1]},
    }
    of = proposal(
        {"analysis": ["a1"], "execution": ["e1", "e2"], "verification": ["v1"]},
        [met("Analyzed"), met("Executed"), met("Verified", "2026-05-27T10:12:30Z")],
        execution={}, verification={},
    )  # fmt: skip
    found = workflow(of, {"a1": ANALYSIS, "e1": EXECUTION, "e2": retried, "v1": VERIFICATION})
    assert found.results == {"analysis": [ANALYSIS], "execution": [EXECUTION, retried], "verification": [VERIFICATION]}
    assert found.ended_ms == 1_779_876_750_000
    assert found.request == "Pods of api restart."
    assert found.fields() == {
        "proposal_results": found.results, "proposal_phase": "Completed",
        "proposal_steps": {"analysis": "ran", "execution": "ran", "verification": "ran"}, "proposal_missing": [],
    }  # fmt: skip


def test_a_step_that_failed_for_the_system_broke_and_one_that_failed_by_its_actions_ran() -> None:
    """Else an agent could fail every execution and be judged by its diagnosis alone."""
    of = proposal({"analysis": ["a1"], "execution": ["e1"]}, [met("Executed", status="False")], execution={})
    assert workflow(of, {"a1": ANALYSIS, "e1": {"failureReason": "sandbox timed out"}}).steps["execution"] is Step.BROKE
    failed = {"actionsTaken": [{"type": "patch", "description": "Set 512Mi", "outcome": "Failed", "error": "denied"}]}
    assert workflow(of, {"a1": ANALYSIS, "e1": failed}).steps["execution"] is Step.RAN


def test_the_last_attempt_that_was_read_says_whether_a_step_broke() -> None:
    of = proposal({"execution": ["e1", "e2", "e3"]}, execution={})
    broke = {"failureReason": "sandbox crashed"}
    assert workflow(of, {"e1": broke, "e2": EXECUTION, "e3": Why.TIMED_OUT}).steps["execution"] is Step.RAN
    assert workflow(of, {"e1": EXECUTION, "e2": broke, "e3": Why.NOT_FOUND}).steps["execution"] is Step.BROKE
    assert workflow(of, {"e1": EXECUTION, "e2": broke, "e3": EXECUTION}).steps["execution"] is Step.RAN


def test_a_step_of_which_no_named_attempt_was_read_is_unread_and_not_absent() -> None:
    of = proposal({"analysis": ["a1"], "execution": ["e1", "Not_A_Name"], "verification": ["v1"]}, verification={})
    found = workflow(of, {"a1": ANALYSIS, "e1": Why.FORBIDDEN, "v1": {}})
    assert found.steps == {"analysis": "ran", "execution": "unread", "verification": "unread"}
    assert set(found.missing) == {
        Missing("ExecutionResult/Not_A_Name", Why.BAD_NAME), Missing("ExecutionResult/e1", Why.FORBIDDEN),
        Missing("VerificationResult/v1", Why.MALFORMED), Missing(WHAT, Why.NOT_ENDED),
    }  # fmt: skip
    assert found.unread == [Missing("ExecutionResult/e1", Why.FORBIDDEN)]


@pytest.mark.parametrize(
    "status",
    [["analysis"], {"steps": "analysis"}, {"steps": []}, {"steps": {step: [] for step in STEPS}},
     {"steps": {step: {"results": "a1"} for step in STEPS}}],
)  # fmt: skip
def test_what_is_no_list_of_results_is_unread_and_not_absent(status: Any) -> None:
    found = workflow({**proposal({}), "status": status}, {})
    assert set(found.steps.values()) == {"unread"}
    assert Missing("AnalysisResult/?", Why.BAD_NAME) in found.missing


def test_empty_results_are_absent_steps_and_the_conditions_alone() -> None:
    found = workflow(proposal({"analysis": [], "execution": []}, [met("Denied")]), {})
    assert (found.phase, found.results, set(found.steps.values())) == (Phase.DENIED, {}, {Step.ABSENT})
    assert "Denied said so" in found.summary
    assert "## Analysis" not in found.summary


def test_a_proposal_that_was_not_read_has_not_ended_and_all_its_steps_are_unread() -> None:
    found = workflow_of(Why.TIMED_OUT, {}, WHAT)
    assert (found.phase, set(found.steps.values())) == (Phase.IN_PROGRESS, {Step.UNREAD})
    assert found.missing == (Missing(WHAT, Why.TIMED_OUT),)
    assert found.unread


def test_a_workflow_that_has_not_ended_says_so() -> None:
    found = workflow(proposal({"analysis": ["a1"]}, [met("Analyzed")], execution={}), {"a1": ANALYSIS})
    assert found.missing == (Missing(WHAT, Why.NOT_ENDED),)
    assert found.ended_ms is None
    assert not found.unread


def test_a_child_named_twice_is_read_once_and_said() -> None:
    found, missing = children(proposal({"execution": ["e1", "e1"]}), KINDS)
    assert found == [Child("execution", "ExecutionResult", "e1")]
    assert missing == [Missing("ExecutionResult/e1", Why.MALFORMED)]


def test_of_more_attempts_than_the_operator_keeps_the_last_ones_are_read() -> None:
    found, missing = children(proposal({"execution": [f"e{number}" for number in range(30)]}), KINDS)
    assert [child.name for child in found] == [f"e{number}" for number in range(10, 30)]
    assert missing == [Missing("ExecutionResult/*", Why.TOO_LARGE)]


@pytest.mark.parametrize(
    "name",
    ["", "..", "../secrets", "a/b", "A", "a_b", "-a", "a-", "a..b", "a%2fb", "a\n", "a?b", "a" * 254, 7, None, {}],
)
def test_what_is_no_name_of_kubernetes_never_reaches_a_url(name: Any) -> None:
    found, missing = children({"status": {"steps": {"analysis": {"results": [{"name": name}]}}}}, KINDS)
    assert not found
    assert [one.why for one in missing] == [Why.BAD_NAME]
    assert not is_name(name)
    assert missing[0].what.isprintable()


def test_names_and_namespaces_are_what_kubernetes_takes() -> None:
    assert all(map(is_name, ["a", "fix-crashloop-analysis-1", "a.b-c.d", "0", "a" * 253]))
    assert is_namespace("openshift-lightspeed")
    assert not is_namespace("a.b")
    assert not is_namespace("a" * 64)


def test_results_over_256_kib_are_cut_by_their_longest_texts_and_said() -> None:
    names = [f"e{number}" for number in range(4)]
    action = {"type": "run", "description": "Ran it", "outcome": "Succeeded", "output": "x" * 32_768}
    statuses = {name: {"actionsTaken": [action] * 9} for name in names} | {"a1": ANALYSIS}
    found = workflow(proposal({"analysis": ["a1"], "execution": names}), statuses)
    assert len(orjson.dumps(found.results)) <= MOST_BYTES
    assert found.results["analysis"] == [ANALYSIS]
    assert len(found.results["execution"]) == 4
    assert [len(status["actionsTaken"]) for status in found.results["execution"]] == [9] * 4
    assert {one for one in found.missing if one.why is Why.TOO_LARGE} == {
        Missing(f"ExecutionResult/{name}", Why.TOO_LARGE) for name in names
    }
    assert found.steps["execution"] is Step.RAN


def test_a_status_of_too_many_texts_to_cut_leaves_its_step_unread() -> None:
    found = workflow(proposal({"execution": ["e1"]}), {"e1": {"junk": ["text"] * 100_000}})
    assert found.results == {}
    assert found.steps["execution"] is Step.UNREAD
    assert Missing("ExecutionResult/e1", Why.TOO_LARGE) in found.missing


MINUTE = 60_000
CREATED = 1_779_876_000_000  # 2026-05-27T10:00:00Z


@pytest.mark.parametrize(
    ("began", "ended", "why"),
    [
        (CREATED - 10 * MINUTE, CREATED + MINUTE, None),
        (CREATED + MINUTE, CREATED + 5 * MINUTE, None),
        (CREATED + MINUTE + 1, CREATED + 5 * MINUTE, Why.NOT_ALLOWED),
        (CREATED - 10 * MINUTE, CREATED - MINUTE, None),
        (CREATED - 10 * MINUTE, CREATED - MINUTE - 1, Why.REPLACED),
    ],
)
def test_a_proposal_is_that_of_a_trace_only_if_it_was_created_while_it_ran(began: int, ended: int, why: Any) -> None:
    assert standing(proposal({}), None, began, ended) is why
    assert standing(proposal({}), "u1", began, ended) is why
    assert standing(proposal({}), "u2", began, ended) is Why.REPLACED


def test_a_proposal_that_does_not_say_when_it_was_created_is_no_traces() -> None:
    assert standing({"metadata": {"uid": "u1"}}, "u1", 0, CREATED) is Why.MALFORMED


NAMES = [
    "metadata", "spec", "status", "steps", "conditions", "results", "name", "options", "title", "diagnosis", "proposal",
    "actions", "actionsTaken", "verification", "checks", "failureReason", "summary", "content", "request",
    "selectedOption", "type", "message", "outcome",
]  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda of: st.lists(of, max_size=4) | st.dictionaries(st.text(max_size=3) | st.sampled_from(NAMES), of, max_size=6),
    max_leaves=25,
)


@given(st.dictionaries(st.sampled_from(STEPS), ANYTHING), ANYTHING, st.lists(ANYTHING, min_size=1), ANYTHING)
def test_whatever_statuses_hold_a_workflow_is_made_that_a_record_can_carry(
    steps: Any, conditions: Any, statuses: list[Any], spec: Any
) -> None:
    named = {
        step: {"results": [{"name": f"{step}-1"}, *(of if isinstance(of, list) else [of])]}
        for step, of in steps.items()
    }
    of = {"spec": spec, "status": {"conditions": conditions, "steps": named}}
    found, missing = children(of, KINDS)
    read = {child: {"status": statuses[number % len(statuses)]} for number, child in enumerate(found)}
    made = workflow_of(of, read, WHAT, missing)
    orjson.dumps([made.fields(), made.summary, made.request])
    assert all(step in Step for step in made.steps.values())


@given(ANYTHING, ANYTHING)
def test_whatever_an_object_holds_is_answered(of: Any, status: Any) -> None:
    _, missing = children(of, KINDS)
    workflow_of(of, {Child("analysis", "AnalysisResult", "a"): status}, WHAT, missing)
    standing(of, None, 0, 0)
    workflow_of({"status": of}, {}, WHAT)


def test_a_status_nested_beyond_what_json_carries_is_malformed() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    found = workflow(proposal({"analysis": ["a1"]}), {"a1": {"options": deep}})
    assert Missing("AnalysisResult/a1", Why.MALFORMED) in found.missing
