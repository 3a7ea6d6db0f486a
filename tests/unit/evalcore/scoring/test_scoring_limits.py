"""Limits on the calls of judges: at once, a minute, in all and in time, shared fairly by gates (PC5 §9.5). How long
gates may take, with the limits as shipped and a model that answers in two seconds (PC5 NFR-2, NFR-3). By the number of
calls, and not by the clock: calls × latency ÷ calls at once. How near to that a gate comes is what
`benchmarks/judges.py` measures."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from evalcore.gates.gate import prepare
from evalcore.gates.golden import GoldenSet, golden_sample
from evalcore.judges.evaluator import Prompt
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import Registry, build
from evalcore.scoring.answers import Scored, Unscored
from evalcore.scoring.assignments import assign, score_assignments
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import CallFailed, Failure, Reply, Spend
from evalcore.scoring.items import Item
from evalcore.scoring.model_caller import CallLimits, SharedPause
from evalcore.scoring.runner import Scorer
from evalcore.validation import checked
from rampgate.settings import Settings
from schemas.judges import Milestone
from streams.gates.candidate import CandidateLimits
from tests.unit.evalcore.scoring.scoring_rig import CALL, GOOD, QUICK, Model, down, many, scorer, tasks
from tests.virtual_time import loop_time, virtual_time


async def test_no_more_calls_at_once_than_allowed_over_all_gates() -> None:
    model = Model(seconds=0.002)
    ours = scorer(model)
    await asyncio.gather(*(ours.score(f"g{gate}", many(10, f"{gate}-")) for gate in range(5)))
    assert (model.busiest, len(model.calls)) == (4, 50)


async def test_gates_share_the_limit_fairly() -> None:
    """Ten gates at once: one that comes late with few items does not wait for all who came before it."""
    model, ended = Model(seconds=0.002), {}
    ours = scorer(model)

    async def gate(name: str, count: int, after: float) -> None:
        await asyncio.sleep(after)
        await ours.score(name, many(count, f"{name}-"))
        ended[name] = len(model.calls)

    await asyncio.gather(*(gate(f"g{n}", 60, 0.0) for n in range(9)), gate("late", 6, 0.03))
    began = next(place for place, output in enumerate(model.calls) if output.startswith("late"))
    assert ended["late"] - began <= 6 * 10 + 20
    assert next(iter(ended)) == "late"
    half = model.calls[: len(model.calls) // 2]
    shares = [sum(output.startswith(f"g{n}-") for output in half) for n in range(9)]
    assert max(shares) - min(shares) <= 5, shares


@virtual_time
async def test_a_limit_on_calls_a_minute_is_kept_and_spread() -> None:
    limits = CallLimits(at_once=50, calls_per_minute=60 * 50)
    model, began = Model(), loop_time()
    await scorer(model, limits=limits).score("g", many(75))
    assert loop_time() - began >= 0.4, "fifty at once, the other 25 in half a second"


@virtual_time
async def test_what_a_server_asks_to_wait_all_calls_wait() -> None:
    began, at = loop_time(), []

    def limited(output: str, attempt: int) -> Any:
        at.append(loop_time() - began)
        return down(Failure.RATE_LIMITED, 0.25) if len(at) == 1 else GOOD

    limits = CallLimits(at_once=1, first_pause=0.001, jitter=0.0)
    found = await scorer(Model(limited), limits=limits, now=loop_time).score("g", tasks("a", "b", "c"))
    assert [one.answer for one in found] == [Scored(4.0)] * 3
    assert at[1] >= 0.25


async def test_what_is_over_the_limit_of_calls_is_unscored_and_says_so() -> None:
    model, spend = Model(), Spend(calls=7)
    found = await scorer(model).score("g", many(20), spend=spend)
    assert len(model.calls) == spend.calls == 7
    over = [one for one in found if one.failure is Failure.OVER_LIMIT]
    assert len(over) == 13
    assert over[0].answer == Unscored("the gate's limit of 7 model calls is spent")


async def test_a_limit_of_tokens_is_not_overspent_by_calls_at_once() -> None:
    model, spend = Model(tokens=600, seconds=0.002), Spend(tokens=6_000)
    found = await scorer(model).score("g", many(40), spend=spend)
    assert 8 <= len(model.calls) <= 10
    assert spend.tokens <= 6_000
    assert sum(one.failure is Failure.OVER_LIMIT for one in found) == 40 - len(model.calls)


async def test_a_limit_of_tokens_holds_where_replies_cost_far_more_than_is_set_aside_at_first() -> None:
    """Each call costs 2,000 tokens, and the places of all gates would let sixteen begin before the first reply."""
    limits = replace(QUICK, at_once=16)
    model, spend = Model(tokens=2_000, seconds=0.002), Spend(tokens=20_000)
    found = await scorer(model, limits=limits).score("g", many(40), spend=spend)
    assert len(model.calls) * 2_000 <= 20_000
    assert 9 <= len(model.calls) <= 10, "the limit is used, though more is set aside than some call costs"
    assert (spend.calls, spend.tokens) == (len(model.calls), 2_000 * len(model.calls))
    assert sum(one.failure is Failure.OVER_LIMIT for one in found) == 40 - len(model.calls)


async def test_one_dear_reply_does_not_end_a_gate_whose_limit_is_not_spent() -> None:
    """A hundred times as dear as the others: calls wait for one another, and are all made."""

    class Uneven(Model):
        async def complete(self, asked: Prompt) -> Reply:
            self.tokens = 4_000 if not self.calls else 40
            return await super().complete(asked)

    model, spend = Uneven(seconds=0.001), Spend(tokens=9_000)
    found = await scorer(model, limits=replace(QUICK, at_once=16)).score("g", many(20), spend=spend)
    assert [one.answer for one in found] == [Scored(4.0)] * 20
    assert spend.tokens == 4_000 + 19 * 40


async def test_calls_that_were_not_answered_are_not_charged_as_tokens() -> None:
    spend = Spend(tokens=100_000)
    model = Model(down(Failure.UNREACHABLE))
    await scorer(model).score("g", many(3), spend=spend)
    assert (spend.calls, spend.tokens) == (len(model.calls), 0)
    assert spend.calls > 3


async def test_one_gates_empty_purse_is_not_anothers() -> None:
    ours = scorer(Model(seconds=0.01))
    poor = ours.score("poor", tasks("a"), spend=Spend(calls=0))
    rich = ours.score("rich", tasks("a"))
    (broke,), (found,) = await asyncio.gather(poor, rich)
    assert broke.failure is Failure.OVER_LIMIT
    assert found.answer == Scored(4.0)


@virtual_time
async def test_a_gate_whose_time_is_over_has_what_was_scored_by_then() -> None:
    class Stuck(Model):
        """Answers four calls and no other."""

        async def complete(self, asked: Prompt) -> Reply:
            if len(self.calls) >= 4:
                self.seconds = 3600.0
            return await super().complete(asked)

    model, limits = Stuck(), replace(QUICK, call_seconds=3600.0, patience=100 * CALL)
    found = await scorer(model, limits=limits).score("g", many(40), within=2.0)
    assert [one.answer for one in found[:4]] == [Scored(4.0)] * 4
    assert {one.failure for one in found[4:]} == {Failure.OUT_OF_TIME}
    assert found[4].answer == Unscored("not scored within the gate's 2 s")
    assert (len(model.calls), model.now) == (4 + QUICK.at_once, 0)


async def test_a_call_that_ran_out_of_time_is_charged_since_it_may_have_been_answered() -> None:
    limits = CallLimits(at_once=1, call_seconds=0.01, patience=0.0, first_pause=0.0, longest_pause=0.001, jitter=0.0)
    model, spend = Model(seconds=30.0), Spend(tokens=100_000)
    (found,) = await scorer(model, limits=limits).score("g", tasks("a"), spend=spend)
    assert isinstance(found.answer, Unscored)
    assert spend.tokens >= 500 * len(model.calls) > 0


async def test_no_server_makes_all_calls_wait_for_longer_than_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waits = 1_000.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        now += seconds

    pause = SharedPause(lambda: now)
    monkeypatch.setattr("evalcore.scoring.model_caller.asyncio.sleep", sleep)
    pause.prolong(3_600.0)
    pause.prolong(5.0)
    await pause.wait()
    assert waits == [60.0], "a shorter wait does not end the longer one"
    await pause.wait()
    assert waits == [60.0]


async def test_a_limit_on_calls_is_met_exactly_and_one_on_tokens_never_passed() -> None:
    spend = Spend(calls=2)
    assert [spend.reserve(10), spend.reserve(10)] == [510, 510]
    with pytest.raises(CallFailed):
        spend.reserve(10)
    exact = Spend(tokens=1_020)
    exact.reserve(10)
    exact.reserve(10)
    with pytest.raises(CallFailed):
        exact.reserve(0)
    exact.charge(510, 100)
    assert exact.tokens == 610


LATENCY = 2.0
AT_ONCE = Settings().model_calls_at_once


@pytest.fixture(scope="module")
def registry() -> Registry:
    return build(checked(read_tree(Path("configs")), date(2026, 11, 21))[0])


def seconds(calls: int) -> float:
    return calls * LATENCY / AT_ONCE


def traces(count: int) -> list[Item]:
    texts = [{"input": {"messages": [{"content": f"{n}?"}]}, "output": {"messages": [{"content": [{"text": f"{n}"}]}]}}
             for n in range(count)]  # fmt: skip
    return [Item(f"t{number}", "online", text) for number, text in enumerate(texts)]


def test_pc5_nfr_2_the_shipped_datasets_345_items_need_few_enough_calls_for_five_minutes(registry: Registry) -> None:
    """Items of all categories alike, each scored by its category's judges."""
    categories, count = sorted(registry.category_files), registry.manifest["dataset"]["items"]
    rows = [
        {"input": "?", "metadata": {"id": f"{n}", "category": categories[n % len(categories)]}} for n in range(count)
    ]
    answers = {f"{n}": {"output": "so"} for n in range(count)}
    sample = golden_sample(GoldenSet(rows, "golden", "golden", 1), answers, registry, None)
    gate = prepare(Milestone.PRE_MERGE, *sample, registry, None)
    assert count == len(gate.items) == 345
    assert len(gate.assignments) > count * sum(judge.safety for judge in gate.judges.values())
    assert seconds(len(gate.assignments)) < 300


def test_pc5_nfr_2_a_candidate_that_takes_three_seconds_an_answer_has_answered_them_all_by_then(
    registry: Registry,
) -> None:
    """As many at once as are asked by default. Its time is not the judges': they score meanwhile
    (tests/unit/evalcore/gates/test_side_by_side.py)."""
    assert registry.manifest["dataset"]["items"] / CandidateLimits().at_once * 3.0 < 300


def test_pc5_nfr_3_a_hundred_traces_by_every_judge_there_is_need_few_enough_calls_for_ten_minutes(
    registry: Registry,
) -> None:
    judges, items = registry.all(), traces(100)
    most = len(judges) * len(items)
    assert 0 < len(assign(judges, items)) <= most, "filters and rates leave some out"
    assert seconds(most) < 600


async def test_pc5_nfr_3_a_gate_makes_one_call_for_each_trace_and_judge_and_uses_every_place(
    registry: Registry,
) -> None:
    """What the figures above stand on."""
    judges = [registry.judge(name) for name in ("jailbreaking", "safety_restricted", "sensitive_topics")]
    model = Model('{"score": true, "reason": "r"}', seconds=0.001)
    ours = Scorer(model, MemoryScoreCache(), CallLimits(AT_ONCE))
    pairs = assign(judges, traces(100))
    async with ours.begun("g") as scoring:
        found = await asyncio.wait_for(score_assignments(scoring, pairs), 60)
    assert (len(model.calls), model.busiest) == (len(pairs), AT_ONCE) == (300, 20)
    assert not [one.failure for one in found if one.failure]
