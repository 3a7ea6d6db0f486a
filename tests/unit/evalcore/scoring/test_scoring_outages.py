"""How long a gate waits for a judges' model that is down (PC5 §9.5)."""

from __future__ import annotations

import asyncio

import pytest

from evalcore.judges.evaluator import Evaluation
from evalcore.scoring.answers import Scored, Unscored
from evalcore.scoring.calls import CallFailed, CircuitBreaker, Failure, Spend
from evalcore.scoring.model_caller import CallLimits, GateCalls
from tests.unit.evalcore.scoring.scoring_rig import CALL, GOOD, Model, asked, down, many, scorer, tasks
from tests.virtual_time import loop_time, virtual_time
from tests.waiting import come

LIMITS = CallLimits(at_once=4, patience=20 * CALL, first_pause=0.0, longest_pause=0.001, jitter=0.0)


async def test_pc5_9_5_a_model_that_is_down_is_waited_for_once_and_not_item_by_item() -> None:
    """An outage fails the gate closed when its patience is over: what was not asked by then is not asked any more."""
    model = Model(down(Failure.UNREACHABLE))
    ours = scorer(model, limits=LIMITS)
    found = await ours.score("g", many(200))
    assert all(isinstance(one.answer, Unscored) for one in found)
    assert 20 <= len(model.calls) <= 30
    assert found[-1].failure is Failure.DOWN
    assert isinstance(found[-1].answer, Unscored)
    assert "has answered no call for" in found[-1].answer.reason
    assert "it is unreachable" in found[-1].answer.reason
    model.answers = GOOD
    healed = await ours.score("g", many(200))
    assert [one.answer for one in healed] == [Scored(4.0)] * 200, "each gate has patience of its own"


async def test_pc5_9_5_a_model_that_comes_back_in_time_is_asked_as_often_as_it_takes() -> None:
    model = Model(lambda *_: down(Failure.UNREACHABLE) if len(model.calls) <= 18 else GOOD)
    found = await scorer(model, limits=LIMITS).score("g", many(60))
    assert [one.answer for one in found] == [Scored(4.0)] * 60


async def test_half_of_the_calls_failing_is_no_outage() -> None:
    count = iter(range(10_000))
    model = Model(lambda *_: down() if next(count) % 2 else GOOD)
    limits = CallLimits(at_once=4, patience=8 * CALL, first_pause=0.0, longest_pause=0.001, jitter=0.0)
    found = await scorer(model, limits=limits).score("g", many(60))
    assert [one.answer for one in found] == [Scored(4.0)] * 60


@virtual_time
async def test_a_wait_that_the_server_asks_for_is_waited_out_also_past_the_patience_and_then_it_ends() -> None:
    limits = CallLimits(at_once=1, patience=0.05, first_pause=0.0, jitter=0.0)
    for answered, kind in ((1, None), (9, Failure.RATE_LIMITED)):
        model = Model(lambda _, attempt, n=answered: down(Failure.RATE_LIMITED, 0.15) if attempt <= n else GOOD)
        (found,) = await scorer(model, limits=limits, now=loop_time).score("g", tasks("a"))
        assert (found.failure, len(model.calls)) == (kind, 2)


async def test_a_gate_whose_patience_is_over_does_not_end_anothers() -> None:
    """Both ask the same at once, and share the call."""
    model = Model(lambda *_: down() if len(model.calls) <= 24 else GOOD, seconds=0.001)
    ours = scorer(model, limits=LIMITS)
    first = asyncio.create_task(ours.score("first", tasks("a")))
    while len(model.calls) < 15:  # noqa: ASYNC110 - the model has no event for it
        await asyncio.sleep(0)
    second = asyncio.create_task(ours.score("second", tasks("a")))
    assert [one.failure for one in await first] == [Failure.UNAVAILABLE]
    assert [one.answer for one in await second] == [Scored(4.0)]


@pytest.mark.timeout(10)
async def test_who_asks_in_the_moment_in_which_anothers_call_fails_asks_itself_and_holds_up_no_one() -> None:
    """The call has ended, and is still the one under way: to wait for it would be a loop without a pause."""
    ours = scorer(model := Model())
    (task,) = tasks("a")

    def ask(gate: str, calls: int | None) -> asyncio.Task[tuple[Evaluation | CallFailed, bool]]:
        return asyncio.create_task(ours.judge(GateCalls(gate, Spend(calls), ours.breaker()), task, "q", asked()))

    first = ask("spent", 0)
    await asyncio.sleep(0)  # it makes its call, which fails in the moment in which the other one begins
    second = ask("g", None)
    failed, _ = await first
    assert isinstance(failed, CallFailed)
    assert failed.kind is Failure.OVER_LIMIT
    assert isinstance((await second)[0], Evaluation)
    assert len(model.calls) == 1


@virtual_time
async def test_pc5_9_5_what_a_deadline_leaves_unscored_says_whether_the_model_was_down() -> None:
    """Of a model that answers, and is too slow, the time is to blame."""
    for answers, kind, seconds in (
        (down(Failure.UNREACHABLE), Failure.DOWN, 0.0),
        (GOOD, Failure.OUT_OF_TIME, 0.1),
    ):
        limits = CallLimits(at_once=2, first_pause=0.0, longest_pause=0.01, jitter=0.0)
        slow = scorer(Model(answers, seconds=seconds), limits=limits, now=loop_time)
        found = await slow.score("g", many(50), within=1.0)
        assert found[-1].failure is kind
        assert {one.failure for one in found} <= {kind, None}


@virtual_time
async def test_pc5_9_5_a_model_that_answers_nobody_until_the_deadline_is_to_blame_for_it() -> None:
    """It takes every call and ends none: no call has failed by then."""
    limits = CallLimits(at_once=2, first_pause=0.0, jitter=0.0)
    ours = scorer(Model(seconds=3600.0), limits=limits, now=loop_time)
    found = await ours.score("g", many(5), within=0.1)
    assert [one.failure for one in found] == [Failure.DOWN] * 5
    assert found[0].answer == Unscored("the model has answered no call for 0 s")


@pytest.mark.parametrize(("every", "kind"), [(2, Failure.DOWN), (4, Failure.DOWN), (100, Failure.OUT_OF_TIME)])
@virtual_time
async def test_pc5_9_5_a_model_that_fails_many_calls_is_to_blame_whatever_it_did_last(
    every: int, kind: Failure
) -> None:
    """Half down is down, wherever in its failures the deadline comes; a failure now and then is not."""
    count = iter(range(1, 10_000))
    model = Model(lambda *_: down() if next(count) % every == 0 else GOOD, seconds=0.02)
    limits = CallLimits(at_once=4, first_pause=0.0, longest_pause=0.001, jitter=0.0)
    found = await scorer(model, limits=limits, now=loop_time).score("g", many(2_000), within=1.0)
    assert {one.failure for one in found} == {None, kind}


async def test_how_long_a_model_is_silent_is_told_from_its_first_call() -> None:
    clock = [100.0]
    patience = CircuitBreaker(30.0, lambda: clock[0])
    patience.began()
    clock[0] = 160.0
    patience.failed(down(Failure.TIMEOUT))
    assert not patience.over, "it is waited for from the first failure"
    clock[0] = 190.0
    assert patience.over
    found = patience.down()
    assert found is not None
    assert "no call for 90 s" in found.message


@virtual_time
async def test_pc5_9_5_a_gate_that_got_no_place_beside_a_silent_models_calls_says_so() -> None:
    limits = CallLimits(at_once=2, first_pause=0.0, jitter=0.0)
    ours = scorer(Model(seconds=3600.0), limits=limits, now=loop_time)
    holder = asyncio.create_task(ours.score("holder", many(2)))
    await asyncio.sleep(0)
    found = await ours.score("late", many(3, "other"), within=1.2)
    assert [one.failure for one in found] == [Failure.DOWN] * 3
    holder.cancel()
    await asyncio.gather(holder, return_exceptions=True)


@virtual_time
async def test_a_gate_that_got_no_place_beside_calls_that_are_answered_was_too_slow() -> None:
    limits = CallLimits(at_once=1, first_pause=0.0, jitter=0.0)
    ours = scorer(Model(seconds=2.0), limits=limits, now=loop_time)
    holder = asyncio.create_task(ours.score("holder", many(40)))
    await come(lambda: ours.answered._held)
    found = await ours.score("late", many(3, "other"), within=0.05)
    assert {one.failure for one in found} == {Failure.OUT_OF_TIME}
    holder.cancel()
    await asyncio.gather(holder, return_exceptions=True)
