"""Judges that run: every item comes to an answer, within limits that gates share (PC5 §9.5; issue of the gates)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from registry_disk import built

from evalcore.gates.answers import NotApplicable, Scored, Unscored
from evalcore.scoring import (
    CallFailed,
    CallLimits,
    Failure,
    MemoryScoreCache,
    Reply,
    ScoreCache,
    Scorer,
    Spend,
    Task,
    by_name,
)
from evalcore.scoring.asking import Ask

REGISTRY = built({"rules/brevity.yaml": "{dimensions: {tone-of-voice: {description: T}, facts: {description: F}}}"})
JUDGE = REGISTRY.judge("helpfulness")
QUICK = CallLimits(at_once=4, tries=4, first_pause=0.001, longest_pause=0.004, jitter=0.0, call_seconds=0.5)
GOOD = '{"score": 4, "reason": "fine"}'


class Model:
    """Answers what it is told: a text, an error, or what a function makes of (the output judged, the try's number).
    `calls` are the outputs asked about, in order."""

    source = "test"

    def __init__(self, answers: Any = GOOD, seconds: float = 0.0, tokens: int | None = 100) -> None:
        self.answers, self.seconds, self.tokens = answers, seconds, tokens
        self.calls: list[str] = []
        self.now = self.busiest = 0

    async def complete(self, asked: Ask) -> Reply:
        self.calls.append(asked.output)
        self.now += 1
        self.busiest = max(self.busiest, self.now)
        try:
            await asyncio.sleep(self.seconds)
            found = (
                self.answers(asked.output, self.calls.count(asked.output)) if callable(self.answers) else self.answers
            )
            if isinstance(found, Exception):
                raise found
            return Reply(found, self.tokens)
        finally:
            self.now -= 1


def tasks(*outputs: str, judge: Any = JUDGE, weight: float = 1.0) -> list[Task]:
    return [Task(judge, out, "offline", {"input": "how?", "output": out}, weight) for out in outputs]


def many(count: int, start: str = "o") -> list[Task]:
    return tasks(*(f"{start}{number}" for number in range(count)))


def scorer(model: Model, cache: ScoreCache | None = None, limits: CallLimits = QUICK, **more: Any) -> Scorer:
    return Scorer(model, MemoryScoreCache() if cache is None else cache, limits, **more)


def down(kind: Failure = Failure.UNAVAILABLE, wait: float = 0.0) -> CallFailed:
    return CallFailed(kind, f"it is {kind}", wait)


async def test_answers_come_in_the_order_of_the_tasks_with_their_weights() -> None:
    def judged(output: str, _: int) -> str:
        return json.dumps({"score": int(output[-1]), "reason": f"because {output}"})

    model = Model(judged)
    found = await scorer(model).score("g", tasks("o5", "o1", "o3", weight=2.5))
    assert [one.answer for one in found] == [Scored(5.0, 2.5), Scored(1.0, 2.5), Scored(3.0, 2.5)]
    assert [one.reason for one in found] == ["because o5", "because o1", "because o3"]
    assert not any(one.cached or one.failure for one in found)
    assert await scorer(model).score("g", []) == []


async def test_not_applicable_is_an_answer_and_is_kept_like_one() -> None:
    model, cache = Model('{"score": "N/A", "reason": "a greeting"}'), MemoryScoreCache()
    for cached in (False, True):
        (found,) = await scorer(model, cache).score("g", tasks("hi"))
        assert (found.answer, found.cached) == (NotApplicable(), cached)
    assert len(model.calls) == 1


async def test_dimensions_have_scores_of_their_own_also_out_of_the_cache_and_when_unscored() -> None:
    judge, cache = REGISTRY.judge("brevity"), MemoryScoreCache()
    scale = judge.score_range[1]
    text = json.dumps({"score": scale, "reason": "r", "dimensions": {"tone-of-voice": "N/A", "facts": scale}})
    text = text if judge.score_type == "FLOAT" else text.replace(str(scale), str(int(scale)))
    for _ in range(2):
        found = await scorer(Model(text), cache).score("g", tasks("a", judge=judge))
        assert by_name(tasks("a", judge=judge), found) == {
            "brevity": [Scored(scale)], "brevity.tone_of_voice": [NotApplicable()], "brevity.facts": [Scored(scale)]
        }  # fmt: skip
    (lost,) = await scorer(Model(down(Failure.REFUSED))).score("g", tasks("b", judge=judge))
    assert {type(answer) for answer in lost.dimensions.values()} == {Unscored}
    assert set(lost.dimensions) == {"tone_of_voice", "facts"}


@pytest.mark.parametrize("kind", [Failure.TIMEOUT, Failure.RATE_LIMITED, Failure.UNAVAILABLE, Failure.UNREACHABLE])
async def test_what_passes_by_itself_is_tried_again(kind: Failure) -> None:
    model = Model(lambda _, attempt: down(kind) if attempt < 4 else GOOD)
    (found,) = await scorer(model).score("g", tasks("a"))
    assert (found.answer, len(model.calls)) == (Scored(4.0), 4)


@pytest.mark.parametrize("kind", [Failure.REFUSED, Failure.UNAUTHORIZED])
async def test_a_refusal_is_not_tried_again(kind: Failure) -> None:
    """400, 401, 403, 404: nothing changes by asking once more."""
    model = Model(down(kind))
    (found,) = await scorer(model).score("g", tasks("a", weight=3.0))
    assert (found.answer, found.failure, len(model.calls)) == (Unscored(f"it is {kind}", 3.0), kind, 1)


async def test_tries_are_bounded_and_the_last_reason_is_told() -> None:
    model = Model(down())
    (found,) = await scorer(model).score("g", tasks("a"))
    assert (found.answer, len(model.calls)) == (Unscored("it is unavailable"), 4)


@pytest.mark.parametrize(
    "text",
    [
        "I would give this a 5", '{"score": 6, "reason": "r"}', '{"score": "4", "reason": "r"}', "", "null",
        '{"score": NaN, "reason": "r"}', '{"score": 1e999, "reason": "r"}', '{"score": true, "reason": "r"}',
        '{"score": 4.5, "reason": "r"}', '{"score": 4}',
    ],
)  # fmt: skip
async def test_an_answer_that_is_no_score_is_asked_for_once_more_and_then_unscored(text: str) -> None:
    """PC5 §9.5: prose, a 6 on a 1 to 5 scale and numbers that are none fail closed."""
    model = Model(text)
    cache = MemoryScoreCache()
    (found,) = await scorer(model, cache).score("g", tasks("a"))
    assert isinstance(found.answer, Unscored)
    assert (found.failure, len(model.calls)) == (Failure.SLIP, 2)
    assert cache._held == {}, "a failure is never kept"
    mended = Model(lambda _, attempt: text if attempt == 1 else GOOD)
    assert [one.answer for one in await scorer(mended).score("g", tasks("a"))] == [Scored(4.0)]


async def test_a_call_that_takes_too_long_is_given_up() -> None:
    limits = CallLimits(at_once=2, tries=2, call_seconds=0.02, first_pause=0.0, jitter=0.0)
    model = Model(seconds=60)
    (found,) = await asyncio.wait_for(scorer(model, limits=limits).score("g", tasks("a")), 2)
    assert (found.failure, len(model.calls), model.now) == (Failure.TIMEOUT, 2, 0)
    assert isinstance(found.answer, Unscored)
    assert "0.02 s" in found.answer.reason


async def test_a_defect_or_a_missing_field_costs_one_answer_and_no_error_comes_out() -> None:
    model = Model(lambda output, _: RuntimeError("secret prompt text") if output == "bad" else GOOD)
    mixed = [*tasks("good", "bad"), Task(JUDGE, "no output", "offline", {"input": "x"}), *tasks("too")]
    found = await scorer(model).score("g", mixed)
    assert [one.failure for one in found] == [None, Failure.BROKEN, Failure.UNBOUND, None]
    assert isinstance(found[1].answer, Unscored)
    assert "secret" not in found[1].answer.reason
    assert isinstance(found[2].answer, Unscored)
    assert "output" in found[2].answer.reason
    strange = [Task(JUDGE, "x", "nowhere", {"input": "x", "output": "y"})]  # type: ignore[arg-type]
    assert [one.failure for one in await scorer(model).score("g", strange)] == [Failure.BROKEN]


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


async def test_a_limit_on_calls_a_minute_is_kept_and_spread() -> None:
    limits = CallLimits(at_once=50, calls_per_minute=60 * 50)
    model, began = Model(), time.monotonic()
    await scorer(model, limits=limits).score("g", many(75))
    assert 0.4 <= time.monotonic() - began < 2.0, "fifty at once, the other 25 in half a second"


async def test_what_a_server_asks_to_wait_all_calls_wait() -> None:
    began, at = time.monotonic(), []

    def limited(output: str, attempt: int) -> Any:
        at.append(time.monotonic() - began)
        return down(Failure.RATE_LIMITED, 0.25) if len(at) == 1 else GOOD

    limits = CallLimits(at_once=1, tries=3, first_pause=0.001, jitter=0.0)
    found = await scorer(Model(limited), limits=limits).score("g", tasks("a", "b", "c"))
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


async def test_calls_that_were_not_answered_are_not_charged_as_tokens() -> None:
    spend = Spend(tokens=100_000)
    await scorer(Model(down(Failure.UNREACHABLE))).score("g", many(3), spend=spend)
    assert (spend.calls, spend.tokens) == (12, 0)


async def test_a_repeated_gate_costs_nothing() -> None:
    """Contracts §5: answers are kept by judge and version, model, parameters, prompt and output."""
    model, cache, seen = Model(), MemoryScoreCache(), []
    first = await scorer(model, cache).score("g", many(30))
    again = await scorer(model, cache, observe=seen.append).score("other", many(30), spend=Spend(calls=0))
    assert [one.answer for one in again] == [one.answer for one in first]
    assert all(one.cached for one in again)
    assert (len(model.calls), seen) == (30, ["cached"] * 30)


async def test_a_gate_that_was_cut_short_is_resumed_and_not_restarted() -> None:
    model, cache = Model(seconds=0.005), MemoryScoreCache()
    running = asyncio.create_task(scorer(model, cache).score("g", many(40)))
    while len(model.calls) < 20:  # noqa: ASYNC110 - a fake model counts
        await asyncio.sleep(0.001)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.now == 0, "no call goes on for a gate that is gone"
    lost = len(model.calls) - len(cache._held)
    assert lost <= QUICK.at_once
    found = await scorer(model, cache).score("g", many(40))
    assert [one.answer for one in found] == [Scored(4.0)] * 40
    assert len(model.calls) == 40 + lost


def changed(field: str) -> Any:
    return built({"rules/helpfulness.yaml": f"{{{field}}}"}).judge("helpfulness")


@pytest.mark.parametrize(
    ("other", "cached"),
    [
        (tasks("a", judge=changed("name: Other Name")), True),
        (tasks("a", judge=changed("floor: 2.0")), True),
        (tasks("a", judge=changed("model: other")), False),
        (tasks("a", judge=changed("temperature: 0.5")), False),
        (tasks("a", judge=changed("task_introduction: You judge otherwise.")), False),
        ([Task(JUDGE, "a", "offline", {"input": "other", "output": "a"})], False),
        (tasks("b"), False),
        ([Task(JUDGE, "another item with the same text", "offline", {"input": "how?", "output": "a"})], True),
    ],
)
async def test_what_decides_a_score_is_in_its_key_and_nothing_else(other: Sequence[Task], cached: bool) -> None:
    cache = MemoryScoreCache()
    await scorer(Model(), cache).score("g", tasks("a"))
    (found,) = await scorer(Model(), cache).score("g", other)
    assert found.cached is cached


async def test_one_endpoints_answers_are_not_taken_for_anothers() -> None:
    """A stand-in's scores in the cache must not be there when the model that it stands for is asked."""
    model, cache = Model(), MemoryScoreCache()
    await scorer(model, cache).score("g", tasks("a"))
    model.source = "elsewhere"
    (found,) = await scorer(model, cache).score("g", tasks("a"))
    assert not found.cached


async def test_equal_questions_at_one_moment_are_asked_once() -> None:
    model = Model(seconds=0.01)
    ours = scorer(model)
    found = await asyncio.gather(*(ours.score(f"g{gate}", many(8)) for gate in range(5)))
    assert len(model.calls) == 8
    assert sum(not one.cached for gate in found for one in gate) == 8
    assert sorted(await scorer_calls(model, tasks("same", "same", "same"))) == ["same"]


async def scorer_calls(model: Model, wanted: Sequence[Task]) -> list[str]:
    before = len(model.calls)
    await scorer(model).score("g", wanted)
    return model.calls[before:]


async def test_a_shared_call_outlives_the_gate_that_made_it() -> None:
    model = Model(seconds=0.05)
    ours = scorer(model)
    first = asyncio.create_task(ours.score("first", tasks("a")))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(ours.score("second", tasks("a")))
    await asyncio.sleep(0.01)
    first.cancel()
    assert [one.answer for one in await second] == [Scored(4.0)]
    assert len(model.calls) == 1


async def test_one_gates_empty_purse_is_not_anothers() -> None:
    ours = scorer(Model(seconds=0.01))
    poor = ours.score("poor", tasks("a"), spend=Spend(calls=0))
    rich = ours.score("rich", tasks("a"))
    (broke,), (found,) = await asyncio.gather(poor, rich)
    assert broke.failure is Failure.OVER_LIMIT
    assert found.answer == Scored(4.0)


async def test_a_gate_whose_time_is_over_has_what_was_scored_by_then() -> None:
    model = Model(seconds=0.05)
    found = await scorer(model).score("g", many(40), within=0.12)
    assert [one.answer for one in found[:4]] == [Scored(4.0)] * 4
    late = [one for one in found if one.failure is Failure.OUT_OF_TIME]
    assert len(late) >= 28
    assert late[0].answer == Unscored("not scored within the gate's 0.12 s")
    assert model.now == 0


class Broken:
    """A cache out of reach, or one that answers nonsense."""

    def __init__(self, held: Any = None) -> None:
        self.held = held

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        if self.held is None:
            raise ConnectionError("no Redis")
        return [self.held] * len(keys)

    async def put(self, key: str, value: bytes) -> None:
        raise ConnectionError("no Redis")


@pytest.mark.parametrize("held", [None, b'{"score": 9, "reason": "planted"}', b"\xff", b"5", b"", b"[]"])
async def test_a_cache_that_fails_or_holds_nonsense_costs_calls_and_no_answer(held: bytes | None) -> None:
    model = Model()
    ours = scorer(model, Broken(held))
    for _ in range(2):
        found = await ours.score("g", many(5))
        assert [one.answer for one in found] == [Scored(4.0)] * 5
    assert len(model.calls) == 5, "what this process was told lately it still knows"


async def test_a_model_that_is_down_is_soon_not_asked_any_more_and_asked_again_later() -> None:
    """PC5 §9.5: an outage fails the gate closed, and soon: not item by item, each with all its tries."""
    clock = [1_000.0]
    limits = CallLimits(at_once=4, tries=3, first_pause=0.0, jitter=0.0, outage_seconds=30.0)

    def dead(_: str, __: int) -> Any:
        clock[0] += 4.0
        return down(Failure.UNREACHABLE)

    model = Model(dead)
    ours = scorer(model, limits=limits, now=lambda: clock[0])
    found = await ours.score("g", many(200))
    assert all(isinstance(one.answer, Unscored) for one in found)
    assert len(model.calls) < 20
    assert found[-1].failure is Failure.DOWN
    model.answers, clock[0] = GOOD, clock[0] + 60.0
    healed = await ours.score("g", many(200, "later"))
    assert [one.answer for one in healed] == [Scored(4.0)] * 200, "one call finds out, and the others wait for it"


async def test_half_of_the_calls_failing_is_no_outage() -> None:
    count = iter(range(10_000))
    model = Model(lambda *_: down() if next(count) % 2 else GOOD)
    limits = CallLimits(at_once=4, tries=12, first_pause=0.0, jitter=0.0, outage_seconds=0.0)
    found = await scorer(model, limits=limits).score("g", many(60))
    assert [one.answer for one in found] == [Scored(4.0)] * 60


async def test_a_probe_that_is_cut_short_or_may_not_be_paid_keeps_nobody_waiting() -> None:
    clock = [1_000.0]
    limits = CallLimits(at_once=2, tries=1, outage_seconds=1.0)

    def dead(_: str, __: int) -> Any:
        clock[0] += 4.0
        return down(Failure.UNREACHABLE)

    model = Model(dead)
    ours = scorer(model, limits=limits, now=lambda: clock[0])
    await ours.score("g", many(20))
    clock[0] += 60.0
    (broke,) = await ours.score("poor", tasks("x"), spend=Spend(calls=0))
    assert broke.failure is Failure.OVER_LIMIT
    model.answers, model.seconds = GOOD, 60.0
    probing = asyncio.create_task(ours.score("probing", tasks("y")))
    await asyncio.sleep(0.01)
    waiting = asyncio.create_task(ours.score("waiting", tasks("z"), spend=Spend(calls=1)))
    await asyncio.sleep(0.01)
    probing.cancel()
    (found,) = await asyncio.wait_for(waiting, 2)
    assert found.failure is Failure.DOWN
    model.seconds, clock[0] = 0.0, clock[0] + 60.0
    assert [one.answer for one in await ours.score("later", many(5, "later"))] == [Scored(4.0)] * 5
