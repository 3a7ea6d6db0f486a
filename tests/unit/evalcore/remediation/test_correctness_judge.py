"""The judge of workflows (Remediation test plan 3), and how its answers are read (Remediation test plan 4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalcore.gates.evaluate import evaluate_gate
from evalcore.judges.evaluator import NoScore, Task
from evalcore.judges.kinds import evaluator_of, needs_model
from evalcore.judges.llm_judge import LLMJudge, render
from evalcore.judges.score_parsing import read
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import build
from evalcore.scoring.answers import NotApplicable, Scored, Unscored
from evalcore.scoring.applicability import scores
from evalcore.scoring.assignments import arrived, score_assignments
from evalcore.scoring.calls import Failure
from evalcore.scoring.items import dataset_item, trace_item
from evalcore.validation import checked
from schemas.judges import Milestone
from schemas.verdicts import VerdictLevel
from tests.root import ROOT
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.evalcore.scoring.scoring_rig import Model, down, scorer

REGISTRY = build(checked(read_tree(ROOT / "configs"), TODAY)[0])
JUDGE = REGISTRY.judge("proposal_evaluation_correctness", "remediation")
STATUS = REGISTRY.judge("proposal_status", "remediation")
RAN = {"analysis": "ran", "execution": "ran", "verification": "ran"}
ITEM = {"input": "Pods restart.", "output": "## Request\n\n>     Pods restart.\n", "proposal_steps": RAN}


def reply(diagnosis: Any = 0.9, action: Any = 0.8, verification: Any = 0.7, **more: Any) -> str:
    parts = {"diagnosis": diagnosis, "action": action, "verification": verification}
    return json.dumps({"reason": "The exit code proves the cause.", "dimensions": parts, **more})


async def judged(answers: Any, judge: Any = JUDGE, **item: Any) -> Any:
    """Returns the judgement of the item, changed so (`...` leaves a field out), by a model that answers so."""
    source = {name: value for name, value in {**ITEM, **item}.items() if value is not ...}
    async with arrived(scorer(Model(answers)), "g", [judge], [dataset_item(source, {})]) as (items, scoring):
        (found,) = await score_assignments(scoring, [(judge, one) for one in items])
    return found


async def test_a_mock_models_answer_is_the_mean_of_three_dimensions() -> None:
    found = await judged(reply())
    assert found.answer == Scored(pytest.approx(0.8))
    assert found.dimensions == {"diagnosis": Scored(0.9), "action": Scored(0.8), "verification": Scored(0.7)}
    assert found.reason == "The exit code proves the cause."


async def test_a_broken_execution_with_a_right_diagnosis_is_judged_by_the_diagnosis() -> None:
    steps = {"analysis": "ran", "execution": "broke", "verification": "absent"}
    found = await judged(reply(0.95, "N/A", 0.0), proposal_steps=steps)
    assert found.answer == Scored(0.95)
    assert found.dimensions["verification"] == NotApplicable()


@pytest.mark.parametrize("output", [..., None, "", "  "])
async def test_a_missing_response_is_unscored_and_asks_no_model(output: Any) -> None:
    found = await judged(reply(), output=output)
    assert isinstance(found.answer, Unscored)
    assert found.failure is Failure.UNBOUND


async def test_a_failed_model_leaves_it_unscored_and_does_not_raise() -> None:
    found = await judged(down())
    assert isinstance(found.answer, Unscored)
    assert all(isinstance(part, Unscored) for part in found.dimensions.values())


async def test_a_trace_that_was_not_completed_is_unscored() -> None:
    assert isinstance((await judged(reply(), proposal_steps=...)).answer, Unscored)


def completed(number: int, name: str, ended: str, **more: Any) -> dict[str, Any]:
    """Returns a trace that the workflow `name`, which ended at minute `ended`, completed."""
    results = {"verification": [{"checks": [{"result": "Passed"}], "conditions": [{"lastTransitionTime": ended}]}]}
    named = {"namespace": "shop", "name": name, **more}
    source = {"trace_id": f"t{number}", "metadata": {"vertical": "remediation"}, "input": "Pods restart."}
    return {**source, "proposal": named, "proposal_results": results, "proposal_steps": RAN, "output": f"done {number}"}


async def test_a_workflow_that_many_traces_name_is_judged_once_and_they_count_at_their_worst() -> None:
    traces = [completed(1, "a", ":01"), *(completed(number, "a", ":01", made=number) for number in range(2, 20))]
    others = [completed(20, "b", ":01"), completed(21, "a", ":07")]  # the last: made again under the same name
    items = [trace_item(one) for one in (*traces, *others)]
    async with arrived(scorer(model := Model(reply(1, 1, 1))), "g", [JUDGE], items) as (there, scoring):
        found = await score_assignments(scoring, [(JUDGE, one) for one in there])
    scored = [one.id for one, said in zip(there, found, strict=True) if isinstance(said.answer, Scored)]
    assert scored == ["t1", "t20", "t21"]
    assert model.calls == ["done 1", "done 20", "done 21"]
    gate = evaluate_gate("pre_ramp", [*traces, *others], [JUDGE.id], vertical="remediation", registry=REGISTRY,
                         model=Model(reply(1, 1, 1)), today=TODAY)  # fmt: skip
    assert gate.verdict is VerdictLevel.FAIL


async def test_traces_of_a_workflow_without_results_are_judged_each() -> None:
    items = [trace_item({**completed(number, "a", ":01"), "proposal_results": {}}) for number in (1, 2)]
    async with arrived(None, "g", [JUDGE], items) as (there, _):
        assert not any(one.missing for one in there)


def test_a_conversation_is_skipped_and_so_is_a_turn_of_another_vertical() -> None:
    """A judge scores turns: what is no turn of a remediation is not asked about."""
    turn = {"metadata": {"vertical": "remediation"}, "output": "x"}
    assert scores(JUDGE, turn, 0.0)
    assert not scores(JUDGE, {"metadata": {"vertical": "receipts"}, "output": "x"}, 0.0)
    assert not scores(JUDGE, {"thread_id": "c1", "output": "x"}, 0.0)


def test_it_judges_as_a_senior_engineer_of_openshift_and_kubernetes_by_the_rubric_of_the_document() -> None:
    asked = render(JUDGE, "offline", {**ITEM, "expected_output": "OOMKilled"})
    persona = asked.rubric.lower()
    for words in ("senior site reliability engineer", "openshift", "kubernetes", "diagnosis", "action", "verification"):
        assert words in persona
    for example in ("  A. ", "  B. ", "  C. "):
        assert example.strip() in asked.rubric
    assert "Risk belongs here" in asked.rubric
    assert json.loads(asked.turn)["expected_output"] == "OOMKilled"


def test_an_item_without_an_expected_output_is_judged_without() -> None:
    asked = render(JUDGE, "offline", dataset_item(ITEM, {}).source)
    assert json.loads(asked.turn)["expected_output"] == ""
    trace = {"input": "Pods restart.", "output": "## Request", "proposal_steps": RAN, "trace_id": "t"}
    assert json.loads(render(JUDGE, "online", trace).turn)["expected_output"] == ""


def test_the_rubrics_own_examples_are_answers_that_it_reads() -> None:
    lines = JUDGE.rule.prompt.replace("\n", " ").split('{"reason"')[1:4]
    found = [read('{"reason"' + line[: line.index("}}") + 2], JUDGE) for line in lines]
    assert [one.value for one in found] == [pytest.approx(0.95), pytest.approx(0.1), 0.95]
    assert found[2].dimensions == {"diagnosis": 0.95, "action": None, "verification": None}


def test_it_is_a_plain_judge_with_a_threshold_of_075() -> None:
    assert isinstance(evaluator_of(JUDGE), LLMJudge)
    assert JUDGE.thresholds == dict.fromkeys(Milestone, 0.75)


def test_an_answer_in_all_dimensions_is_read() -> None:
    assert read(reply(1, 0.5, 0), JUDGE).dimensions == {"diagnosis": 1.0, "action": 0.5, "verification": 0.0}


def test_dimensions_that_are_not_applicable_are_left_out_of_the_average() -> None:
    assert read(reply(0.9, "N/A", "N/A"), JUDGE).value == 0.9
    assert read(reply("N/A", "N/A", "N/A"), JUDGE).value is None


@pytest.mark.parametrize("more", [{}, {"average": 0.2}, {"score": 1.0}])
def test_the_average_is_computed_also_where_the_model_gives_one(more: Any) -> None:
    assert read(reply(0.9, 0.8, 0.4, **more), JUDGE).value == pytest.approx(0.7)


@pytest.mark.parametrize(
    "text",
    ["", "Diagnosis: 0.9\nAction: 0.8\nVerification: 0.7\nAverage: 0.8", reply(0.9, 0.8, "high"), reply()[:-1], "0.8"],
)
def test_what_can_not_be_parsed_is_no_score(text: str) -> None:
    with pytest.raises(NoScore):
        read(text, JUDGE)


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Denied", "Escalated", "InProgress"])
@pytest.mark.parametrize("expected", ["Completed", "Failed", "Denied", "Escalated"])
async def test_the_status_is_true_where_the_workflow_ended_as_expected(phase: str, expected: str) -> None:
    found = await judged(None, STATUS, proposal_phase=phase, expected_proposal_status=expected)
    assert found.answer == Scored(float(phase == expected))


async def test_an_item_that_expects_no_phase_is_not_applicable_and_no_trace_is_asked() -> None:
    assert not needs_model(STATUS)
    assert (await judged(None, STATUS, proposal_phase="Completed")).answer == NotApplicable()
    assert not scores(STATUS, {**ITEM, "proposal_phase": "Completed"}, 0.0)


async def test_without_a_phase_or_with_an_unknown_word_the_status_is_unscored() -> None:
    assert isinstance((await judged(None, STATUS, expected_proposal_status="Completed")).answer, Unscored)
    odd = await judged(None, STATUS, proposal_phase="Done", expected_proposal_status="Done")
    assert isinstance(odd.answer, Unscored)


def test_a_trace_can_not_say_what_was_expected_of_it() -> None:
    forged = {**ITEM, "proposal_phase": "Completed", "expected_proposal_status": "Completed"}
    with pytest.raises(NoScore, match="a trace can't say"):
        evaluator_of(STATUS).evaluate(Task(STATUS, "t", "online", trace_item(forged).source))
