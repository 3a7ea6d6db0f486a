"""A suite is scored in portions, so that memory does not grow with it, and no one can tell from the results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from evalcore.judges.evaluator import Prompt
from evalcore.scoring.calls import Failure, Reply, Spend
from evalcore.scoring.model_caller import CallLimits
from rampgate.suite import scoring
from rampgate.suite.generation import Generated
from rampgate.suite.scoring import Numbered, Rubric, ScoredSample
from rampgate.suite.suite_files import SuiteCase
from tests.unit.evalcore.scoring.scoring_rig import CALL, GOOD, JUDGE, Model, down, scorer

RUBRIC = Rubric([JUDGE], {}, {})
PORTION = 8


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "PORTION", PORTION)
    monkeypatch.setattr(scoring, "PORTIONS", 3)


def wanted(count: int) -> list[Numbered]:
    cases = [SuiteCase(f"c{number:03}", {"input": f"{number}?"}, (), None) for number in range(count)]
    return [(case, 1) for case in cases]


class Answering:
    """Gives each case its answer, and says which are under way: asked for and not yet judged."""

    def __init__(self, seconds: Callable[[int], float] = lambda number: 0.0) -> None:
        self.seconds = seconds
        self.ready: list[str] = []
        self.begun: list[str] = []

    async def __call__(self, some: Sequence[Numbered]) -> list[Callable[[], Awaitable[Generated]]]:
        self.ready += [case.id for case, _ in some]
        return [self._of(case, sample) for case, sample in some]

    def _of(self, case: SuiteCase, sample: int) -> Callable[[], Awaitable[Generated]]:
        async def answer() -> Generated:
            self.begun.append(case.id)
            await asyncio.sleep(self.seconds(int(case.id[1:])))
            return Generated(case.id, sample, {"output": f"answer {case.id}"})

        return answer


class Counting(Model):
    """Notes, of each question, how many cases were got ready and not yet asked about."""

    def __init__(self, answering: Answering) -> None:
        super().__init__(GOOD, seconds=0.001)
        self.answering, self.most = answering, 0

    async def complete(self, asked: Prompt) -> Reply:
        reply = await super().complete(asked)
        self.most = max(self.most, len(self.answering.ready) - len(self.calls) + self.now)
        return reply


async def test_each_sample_comes_once_and_in_order_and_only_some_portions_are_under_way() -> None:
    answering = Answering()
    model = Counting(answering)
    found = await RUBRIC.score(wanted(100), answering, scorer(model, limits=CallLimits(at_once=4)), Spend())
    assert [one.case.id for one in found] == [case.id for case, _ in wanted(100)]
    assert [one.scores["helpfulness"] for one in found] == [4.0] * 100
    assert sorted(model.calls) == sorted(f"answer {case.id}" for case, _ in wanted(100))
    assert PORTION < model.most <= 4 * PORTION, "three portions at most, and what just ended"


async def test_a_model_that_is_down_is_waited_for_once_and_not_portion_by_portion() -> None:
    model = Model(down(Failure.UNREACHABLE))
    limits = CallLimits(at_once=4, patience=20 * CALL, first_pause=0.0, longest_pause=0.001, jitter=0.0)
    found = await RUBRIC.score(wanted(200), Answering(), scorer(model, limits=limits), Spend())
    assert [one.scores["helpfulness"] for one in found] == [None] * 200
    assert 20 <= len(model.calls) <= 40


async def test_which_samples_a_limit_leaves_over_does_not_depend_on_what_is_answered_first() -> None:
    async def left(seconds: Callable[[int], float]) -> list[ScoredSample]:
        ours = scorer(Model(GOOD), limits=CallLimits(at_once=4))
        return await RUBRIC.score(wanted(40), Answering(seconds), ours, Spend(calls=20))

    early = await left(lambda number: 0.05 if number < PORTION else 0.0)
    late = await left(lambda number: 0.0 if number < PORTION else 0.05)
    assert [one.case.id for one in early if not one.left] == [case.id for case, _ in wanted(20)]
    assert [one.left for one in early] == [one.left for one in late]


async def test_without_a_scorer_every_sample_is_there_all_the_same() -> None:
    answering = Answering()
    found = await RUBRIC.score(wanted(30), answering, None, Spend())
    assert [one.case.id for one in found] == answering.ready
    assert [one.generated.answer for one in found] == [{"output": f"answer {one.case.id}"} for one in found]
