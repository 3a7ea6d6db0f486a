"""A new kind of evaluator is one file and one registration (CONTRIBUTING): the rest of the house scores with it."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore import evaluate_gate
from evalcore.canaries.check import asked
from evalcore.judges import kinds
from evalcore.judges.evaluator import Evaluation, Evaluator, Prompt, Task
from evalcore.judges.llm_judge import LLMJudge, render
from evalcore.registry.judge import Judge
from evalcore.scoring.answers import Unscored
from evalcore.scoring.assignments import NO_MODEL, assign, score_assignments, task_of
from evalcore.scoring.items import items_of
from evalcore.scoring.opik_metric import LLMJudgeMetric
from evalcore.suite.pairwise.question import pair_judge
from schemas.judges import Milestone
from tests.unit.evalcore.gates.gate_items import Model, items
from tests.unit.evalcore.judges.words_evaluator import Words
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY

SHORT = """
{model: "words:3", score_type: BOOLEAN, threshold: true, floor: 0.5, tolerance: 0}
"""
REGISTRY = built({"rules/brevity.yaml": SHORT})
JUDGE = REGISTRY.judge("brevity")


def refuse(_: Any) -> Any:
    raise AssertionError("a model was made")


def test_a_rules_model_names_the_kind_and_every_other_name_is_a_models() -> None:
    of_words: Evaluator = kinds.evaluator_of(JUDGE)
    assert isinstance(of_words, Words)
    for model in ("gpt-5-mini", "llama3:8b", "azure/gpt:4"):
        judge = built({"rules/helpfulness.yaml": f'{{model: "{model}"}}'}).judge("helpfulness")
        assert isinstance(kinds.evaluator_of(judge), LLMJudge)


@pytest.mark.parametrize("scheme", ["words", "", "a:b"])
def test_a_scheme_is_registered_once_and_has_a_name(scheme: str) -> None:
    with pytest.raises(ValueError, match="no evaluator can be registered"):
        kinds.register(scheme, Words())


def test_the_gate_decides_by_its_scores_and_asks_no_model_for_them() -> None:
    given = [*items(20), *[{**one, "output": "one word too many"} for one in items(25)[20:]]]
    model = Model()
    found = evaluate_gate("pre_merge", given, ["brevity"], model=model, registry=REGISTRY, today=TODAY)
    one = found.per_judge_scores["brevity"]
    assert (one.score, one.n, one.unscored, one.passed) == (0.8, 25, 0, False)
    assert {asked.model for asked in model.asked} == {"gpt-5-mini"}, "the safety judges alone"


def test_an_item_it_can_not_score_is_unscored_with_its_reason() -> None:
    found = evaluate_gate(
        "pre_merge", [{**one, "output": {"no": "text"}} for one in items()], ["brevity"],
        model=Model(), registry=REGISTRY, today=TODAY,
    )  # fmt: skip
    assert found.per_judge_scores["brevity"].unscored == 25
    assert any("the output is no text" in reason.message for reason in found.reasons)


async def test_it_scores_where_no_model_is_configured() -> None:
    sample = items_of(items(3), Milestone.PRE_MERGE, {})
    judges = [JUDGE, REGISTRY.judge("helpfulness")]
    found = await score_assignments(None, assign(judges, sample))
    assert [one.reason for one in found[::2]] == ["2 words"] * 3
    assert all(one.failure is not None for one in found[1::2])


def test_a_defect_of_an_evaluators_leaves_its_items_unscored_and_no_others() -> None:
    registry = built({"rules/brevity.yaml": SHORT.replace("words:3", "words:many")})
    found = evaluate_gate("pre_merge", items(), ["brevity"], model=Model(), registry=registry, today=TODAY)
    scores = found.per_judge_scores
    assert (scores["brevity"].unscored, scores["refusal"].unscored) == (25, 0)
    assert any("ValueError while brevity evaluated" in reason.message for reason in found.reasons)


def test_its_metric_scores_without_a_model() -> None:
    found = LLMJudgeMetric(JUDGE, refuse).score(input="how?", output="so it is")
    assert (found.value, found.reason, found.scoring_failed) == (1.0, "3 words", False)


class Graded:
    """A kind that is no plain LLM judge, and asks a model."""

    needs_model = True

    def evaluate(self, task: Task) -> Prompt:
        return render(task.judge, task.context, task.source)

    def read(self, reply: str, judge: Judge) -> Evaluation:
        return Evaluation(1.0, reply)


async def test_a_kind_says_whether_it_needs_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kinds._KINDS, "graded", Graded())
    of_rubric = built({"rules/helpfulness.yaml": '{model: "graded:x"}'}).judge("helpfulness")
    assert [kinds.needs_model(one) for one in (JUDGE, REGISTRY.judge("helpfulness"), of_rubric)] == [False, True, True]
    assert asked([JUDGE, of_rubric]) == [of_rubric]
    assert pair_judge(of_rubric, ["output"]).own is of_rubric
    (found,) = await score_assignments(None, assign([of_rubric], items_of(items(1), Milestone.PRE_MERGE, {})))
    assert isinstance(found.answer, Unscored)
    assert found.answer.reason == NO_MODEL


def test_an_llm_judge_returns_its_prompt_and_reads_the_reply() -> None:
    judge = REGISTRY.judge("helpfulness")
    ((_, item),) = assign([judge], items_of(items(1), Milestone.PRE_MERGE, {}))
    evaluator = kinds.evaluator_of(judge)
    assert isinstance(evaluator.evaluate(task_of(judge, item)), Prompt)
    assert evaluator.read('{"score": 4, "reason": "r"}', judge).value == 4.0
