"""A safety judge reads an item that is too long to be shown at once in windows, of which the worst counts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from evalcore.judges.evaluator import Prompt
from evalcore.scoring.answers import Scored, Unscored
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import CallFailed, Failure, Reply
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.opik_metric import LLMJudgeMetric
from evalcore.scoring.runner import Scorer
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.scoring.opik_models import ChatOnly
from tests.unit.evalcore.scoring.scoring_rig import tasks

REGISTRY = built(
    {
        "rules/honesty.yaml": "{confirmation: {asks: 3, failing: 2}}",
    }
)
REFUSAL, HONESTY = REGISTRY.judge("refusal"), REGISTRY.judge("honesty")
LIMITS = CallLimits(judged_tokens=500, first_pause=0.001, longest_pause=0.004)
PART = "fine " * 300
LONG = f"{PART}{{}}{PART}{{}}{PART}"
"""4,500 characters, where a window shows 2,000."""


class Model:
    """Answers `says` of the first mark in what it is shown, and `otherwise` where there is none."""

    def source(self, model: str) -> str:
        return "test"

    def __init__(self, otherwise: Any, says: dict[str, Any] | None = None) -> None:
        self.otherwise, self.says, self.asked = otherwise, says or {}, list[str]()

    def reply(self, shown: str) -> str:
        self.asked.append(shown)
        found = next((said for mark, said in self.says.items() if mark in shown), self.otherwise)
        if isinstance(found, list):
            found = found.pop(0)
        if isinstance(found, Exception):
            raise found
        return json.dumps({"reason": "r", "score": found})

    async def complete(self, asked: Prompt) -> Reply:
        return Reply(self.reply(asked.turn), 100)


async def judged(model: Model, text: str, judge: Any = REFUSAL, cache: MemoryScoreCache | None = None) -> Any:
    scorer = Scorer(model, cache or MemoryScoreCache(), LIMITS)
    (found,) = await scorer.score("g", [replace(one, digest=b"d" * 16) for one in tasks(text, judge=judge)])
    return found


@pytest.mark.parametrize(
    ("says", "answer"),
    [
        ({}, Scored(0.9)),
        ({"HARM": 0.2}, Scored(0.2)),
        ({"HARM": 0.2, "WORSE": 0.1}, Scored(0.1)),
    ],
    ids=["none is bad", "one is bad", "two are bad"],
)
async def test_the_worst_window_counts(says: dict[str, Any], answer: Any) -> None:
    model = Model(0.9, says)
    assert (await judged(model, LONG.format("HARM", "WORSE"))).answer == answer
    assert len(model.asked) == 3


async def test_nobody_is_asked_about_more_once_a_window_has_the_lowest_score() -> None:
    model = Model(1.0, {"HARM": 0.0})
    assert (await judged(model, f"HARM{LONG}")).answer == Scored(0.0)
    assert len(model.asked) == 1


async def test_a_window_without_an_answer_leaves_the_item_unscored() -> None:
    found = await judged(Model(1.0, {"HARM": CallFailed(Failure.REFUSED, "no")}), LONG.format("", "HARM"))
    assert isinstance(found.answer, Unscored)
    assert found.failure is Failure.REFUSED


async def test_of_each_dimension_the_worst_window_counts() -> None:
    judge = built({"rules/refusal.yaml": "{dimensions: {tone: {description: T}}}"}).judge("refusal")

    class Dimensioned(Model):
        def reply(self, shown: str) -> str:
            answer = json.loads(super().reply(shown))
            return json.dumps({**answer, "dimensions": {"tone": 0.3 if "WORSE" in shown else 0.8}})

    found = await judged(Dimensioned(0.9, {"HARM": 0.0}), LONG.format("HARM", "WORSE"), judge)
    assert (found.answer, found.dimensions["tone"]) == (Scored(0.0), Scored(0.3))


async def test_a_windows_failing_answer_is_confirmed_as_any_other() -> None:
    """A false alarm about one of three windows fails nothing; a harm that the judge sees again does."""
    cleared = Model(True, {"HARM": [False, True, True]})
    assert (await judged(cleared, LONG.format("HARM", ""), HONESTY)).answer == Scored(1.0)
    upheld = Model(True, {"HARM": [False, True, False]})
    assert (await judged(upheld, LONG.format("HARM", ""), HONESTY)).answer == Scored(0.0)


async def test_windows_that_were_judged_before_take_no_call() -> None:
    model, cache = Model(0.9, {"HARM": 0.2}), MemoryScoreCache()
    first = await judged(model, LONG.format("", "HARM"), cache=cache)
    again = await judged(model, LONG.format("", "HARM"), cache=cache)
    assert (first.answer, again.answer) == (Scored(0.2), Scored(0.2))
    assert (first.cached, again.cached, len(model.asked)) == (False, True, 3)


async def test_a_process_that_knows_the_first_window_still_looks_at_the_others() -> None:
    model = Model(0.9, {"HARM": 0.2})
    scorer = Scorer(model, MemoryScoreCache(), LIMITS)
    asked = [replace(one, digest=b"d" * 16) for one in tasks(LONG.format("", "HARM"), judge=REFUSAL)]
    for _ in range(2):
        (found,) = await scorer.score("g", asked)
        assert found.answer == Scored(0.2)
    assert len(model.asked) == 3


async def test_an_item_longer_than_eight_windows_is_unscored_without_a_call() -> None:
    model = Model(1.0)
    found = await judged(model, "fine " * 4_000)
    assert isinstance(found.answer, Unscored)
    assert "longer than 8 windows" in found.answer.reason
    assert not model.asked


def test_a_metric_scores_a_long_item_as_a_gate_does() -> None:
    class Chat(ChatOnly):
        def __init__(self) -> None:
            super().__init__("fake")

        def generate_chat_completion(self, messages: Any, response_format: Any = None, **more: Any) -> Any:
            harm = "HARM" in str(messages)
            return {"content": json.dumps({"reason": "r", "score": 0.2 if harm else 0.9})}

    padding = "fine " * 20_000
    scored = LLMJudgeMetric(REFUSAL, lambda judge: Chat()).score(f"{padding}HARM{padding}", input="how?")
    assert scored.value == 0.2
