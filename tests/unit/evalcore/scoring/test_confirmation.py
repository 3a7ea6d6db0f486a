"""A failing answer of a safety judge is asked for again, k of n, and all its answers are kept as evidence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.gates.evaluate import aevaluate_gate
from evalcore.judges.evaluator import Evaluation, Prompt
from evalcore.judges.llm_judge import render
from evalcore.scoring.answers import Scored, settled
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import Failure, Spend
from evalcore.scoring.opik_metric import LLMJudgeMetric
from schemas.judges import Confirmation
from schemas.verdicts import Code, QuestionedItem, VerdictLevel
from tests.unit.evalcore.gates import gate_items
from tests.unit.evalcore.gates.gate_items import items
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.scoring import test_opik_metric
from tests.unit.evalcore.scoring.scoring_rig import DeafCache, Model, down, scorer, tasks
from tests.unit.evalcore.verdict_inputs import registry, shipped

TWO_OF_THREE = built({"rules/honesty.yaml": "confirmation: {asks: 3, failing: 2}"})
JUDGE = TWO_OF_THREE.judge("honesty")
ONCE = built().judge("honesty")
YES, NO, NA = True, False, "N/A"


def replies(*said: Any) -> Any:
    """A model that answers an item's questions in turn; what is no answer is raised."""

    def answer(output: str, ask: int) -> Any:
        found = said[ask - 1]
        return found if isinstance(found, Exception) else json.dumps({"score": found, "reason": f"ask {ask}"})

    return answer


@pytest.mark.parametrize(
    ("said", "value", "calls"),
    [
        ([YES], 1.0, 1),
        ([NO, NO], 0.0, 2),
        ([NO, YES, NO], 0.0, 3),
        ([NO, YES, YES], 1.0, 3),
        ([NO, NA, YES], 0.0, 3),
        ([NO, NA, NO], 0.0, 3),
    ],
)
async def test_a_false_answer_counts_when_two_of_three_say_it(said: list[Any], value: float, calls: int) -> None:
    """A true one is not asked for again, and "N/A", where the rule allows it, takes no false one back."""
    rule = "{confirmation: {asks: 3, failing: 2}, classification: quality, allow_na: true}"
    judge, model = built({"rules/honesty.yaml": rule}).judge("honesty"), Model(replies(*said))
    (found,) = await scorer(model).score("g", tasks("a", judge=judge))
    assert (found.answer, len(model.calls)) == (Scored(value), calls)
    asked = len(found.answer.about.said) if isinstance(found.answer, Scored) and found.answer.about else 1
    assert asked == calls


async def test_a_judge_without_confirmation_is_asked_once() -> None:
    model = Model(replies(NO))
    (found,) = await scorer(model).score("g", tasks("a", judge=ONCE))
    assert (found.answer, len(model.calls)) == (Scored(0.0), 1)


async def test_a_scoring_whose_cancellation_a_client_swallows_ends() -> None:
    """A worker that gives a partition back waits for it: by the group's session, or it is taken out of the group."""
    cache = DeafCache(lambda keys: keys == 1)  # about a first answer's confirmation
    task = asyncio.create_task(
        scorer(Model(replies(NO, NO)), cache).score("g", tasks(*map(str, range(200)), judge=JUDGE))
    )
    await asyncio.wait_for(cache.asked.wait(), 20)
    await asyncio.sleep(0.1)  # all that ask wait, and questions are queued behind them
    task.cancel()
    await asyncio.wait({task}, timeout=20)
    assert task.cancelled()


async def test_a_scoring_that_waits_for_more_items_ends_though_a_client_swallows_its_cancellation() -> None:
    cache = DeafCache(lambda keys: True)
    async with asyncio.timeout(20), scorer(Model(), cache).begun("g") as scoring:
        scoring.take(tasks("a"))
        await cache.asked.wait()


@pytest.mark.parametrize("failure", [Failure.REFUSED, Failure.UNAUTHORIZED])
async def test_where_the_judge_can_not_be_asked_again_the_first_answer_stands(failure: Failure) -> None:
    """Fail closed: an outage between two asks acquits no one."""
    model = Model(replies(NO, YES, down(failure)))
    (found,) = await scorer(model).score("g", tasks("a", judge=JUDGE))
    assert found.answer == Scored(0.0)
    assert "not confirmed" in found.reason


async def test_asking_again_is_paid_for_and_can_not_go_over_the_gates_limit() -> None:
    """Spending counts every ask; what the limit leaves unasked stays false."""
    model, spend = Model(replies(NO, YES, YES)), Spend(calls=2)
    (found,) = await scorer(model).score("g", tasks("a", judge=JUDGE), spend=spend)
    assert (found.answer, spend.calls, len(model.calls)) == (Scored(0.0), 2, 2)


async def test_the_answers_are_kept_apart_and_a_repeated_gate_asks_none_of_them() -> None:
    """Also by another worker, which finds all three in the shared cache."""
    model, cache, seen = Model(replies(NO, YES, YES)), MemoryScoreCache(), list[str]()
    one = scorer(model, cache)
    (first,) = await one.score("g", tasks("a", judge=JUDGE))
    for again in (one, scorer(Model(replies()), cache, observe=seen.append)):
        (found,) = await again.score("g", tasks("a", judge=JUDGE), spend=Spend(calls=0))
        assert (found.answer, found.cached) == (first.answer, True)
        assert isinstance(found.answer, Scored)
        assert isinstance(first.answer, Scored)
        assert found.answer.about == first.answer.about
    assert (len(model.calls), len(cache._held), seen) == (3, 3, ["cached"] * 3)


async def test_an_item_known_by_its_bytes_is_confirmed_all_the_same() -> None:
    """The bytes stand for the first answer alone: a gate that is repeated soon must not take it for the last word."""
    model = Model(replies(NO, YES, YES))
    asked = [
        type(task)(task.judge, task.item, task.context, task.source, 1.0, b"bytes") for task in tasks("a", judge=JUDGE)
    ]
    one = scorer(model)
    found = [(await one.score("g", asked))[0].answer for _ in range(3)]
    assert (found, len(model.calls)) == ([Scored(1.0)] * 3, 3)
    assert [one.about.said for one in found if isinstance(one, Scored) and one.about] == [(0.0, 1.0, 1.0)] * 3


@given(st.lists(st.sampled_from([1.0, 0.0, None]), min_size=9, max_size=9), st.integers(2, 9), st.data())
def test_an_item_passes_only_where_failing_is_out_of_reach(said: list[Any], asks: int, data: st.DataObject) -> None:
    """Whatever is answered: it ends after `asks`; false comes out unless the first is not false, or so many are true
    that `failing` false ones can't be among them; and what is asked beyond that would change nothing."""
    failing = data.draw(st.integers(2, max(2, (asks + 1) // 2)))
    judge = built({"rules/honesty.yaml": f"confirmation: {{asks: {asks}, failing: {failing}}}"}).judge("honesty")
    heard = [Evaluation(value, "") for value in said]
    ends = next(n for n in range(1, asks + 1) if settled(judge, heard[:n]) is not None)
    found = settled(judge, heard[:ends])
    assert found is not None
    acquitted = said[:asks].count(1.0) > asks - failing
    assert found.value == (said[0] if said[0] != 0.0 else 1.0 if acquitted else 0.0)


@pytest.mark.parametrize("said", [[YES], [NO, NO], [NO, YES, YES], [NO, YES, NO]])
async def test_a_metric_in_opiks_evaluate_asks_as_often_as_a_gate(said: Sequence[bool]) -> None:
    """PC5 §5.4: the same item has the same score by either way."""
    (gates,) = await scorer(Model(replies(*said))).score("g", tasks("so!", judge=JUDGE))
    for ask in ("score", "ascore"):
        model = test_opik_metric.Model(*(test_opik_metric.answer(one) for one in said))
        metric = LLMJudgeMetric(JUDGE, lambda _, model=model: model)
        found = (
            metric.score(input="how?", output="so!")
            if ask == "score"
            else await metric.ascore(input="how?", output="so!")
        )
        assert (Scored(found.value), len(model.asked)) == (gates.answer, len(said))


def gates_model(said: dict[str, list[bool]], otherwise: bool = YES) -> gate_items.Model:
    """Answers BOOLEAN questions about an output in turn as told, and all else with the top of the scale."""

    def says(asked: Prompt) -> Any:
        best = gate_items.good(asked)
        answers = said.get(asked.output) if best is True else None
        return answers.pop(0) if answers else best and otherwise if best is True else best

    return gate_items.Model(says)


async def test_a_verdict_shows_the_answers_and_one_false_alarm_decides_nothing() -> None:
    """Two items are called false at first; one of them is, by two of three."""
    model = gates_model({"so 3": [NO, YES, YES], "so 7": [NO, YES, NO]})
    verdict = await aevaluate_gate("pre_merge", items(25), ["honesty"], model=model, registry=TWO_OF_THREE)
    found = verdict.per_judge_scores["honesty"]
    assert (found.score, found.asked_again, found.overturned) == (24 / 25, 2, 1)
    assert [replace(one, item_hash="") for one in found.questioned] == [
        QuestionedItem("i7", (NO, YES, NO), counts_as=False), QuestionedItem("i3", (NO, YES, YES), counts_as=True)
    ]  # fmt: skip
    assert [reason.code for reason in verdict.reasons] == [Code.BELOW_THRESHOLD]
    model = gates_model({"so 3": [NO, YES, YES]})
    verdict = await aevaluate_gate("pre_merge", items(25), ["honesty"], model=model, registry=TWO_OF_THREE)
    assert verdict.verdict is VerdictLevel.PASS


async def test_a_verdict_shows_ten_items_of_a_judge_and_counts_all() -> None:
    model = gates_model({}, NO)
    verdict = await aevaluate_gate("pre_merge", items(40), ["honesty"], model=model, registry=TWO_OF_THREE)
    found = verdict.per_judge_scores["honesty"]
    assert (found.score, found.asked_again, found.overturned, len(found.questioned)) == (0.0, 40, 0, 10)


def test_every_shipped_judge_runs_at_temperature_0_and_safety_judges_confirm_two_of_three() -> None:
    for judge in registry(shipped()).all():
        wanted = Confirmation(asks=3, failing=2) if judge.safety else None
        assert (judge.rule.temperature, judge.rule.confirmation) == (0, wanted), judge.id


async def test_a_judge_runs_at_temperature_0_unless_its_rule_says_otherwise() -> None:
    for stated, temperature in [("0", 0.0), ("0.4", 0.4)]:
        judge = built({"rules/honesty.yaml": f"temperature: {stated}"}).judge("honesty")
        asked = render(judge, "offline", {"input": "how?", "output": "so!"})
        assert asked.temperature == temperature


def test_the_version_of_a_judge_changes_with_its_confirmation() -> None:
    """Scores of k of n are not compared with a baseline of one ask."""
    assert JUDGE.version != ONCE.version
