"""What was answered is kept: a repeated or resumed gate costs nothing (contracts §5). An item that is known by its
bytes is answered from memory, without a prompt; nothing else is taken for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from evalcore import framing
from evalcore.judges.evaluator import Evaluation, Task
from evalcore.scoring import cache
from evalcore.scoring import cache as answered
from evalcore.scoring.answers import Scored
from evalcore.scoring.cache import NO_WORDS, MemoryScoreCache, RememberedAnswers, kept, written
from evalcore.scoring.calls import Spend
from evalcore.scoring.runner import Scorer
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.scoring.scoring_rig import JUDGE, QUICK, REGISTRY, Model, many, scorer, tasks


async def test_a_repeated_gate_costs_nothing() -> None:
    """Contracts §5: answers are kept by judge and version, model, parameters, prompt and output."""
    model, cache, seen = Model(), MemoryScoreCache(), []
    first = await scorer(model, cache).score("g", many(30))
    again = await scorer(model, cache, observe=seen.append).score("other", many(30), spend=Spend(calls=0))
    assert [one.answer for one in again] == [one.answer for one in first]
    assert all(one.cached for one in again)
    assert (len(model.calls), seen) == (30, ["cached"] * 30)


async def test_what_this_process_knows_it_does_not_look_up_again() -> None:
    """Also what it had from the cache, where another worker put it."""

    class Watched(MemoryScoreCache):
        looked_up: list[int]

        async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
            self.looked_up.append(len(keys))
            return await super().get_many(keys)

    cache = Watched()
    cache.looked_up = []
    await scorer(Model(), cache).score("another worker's", many(5))
    model = Model()
    ours = scorer(model, cache)
    for count, looked_up in [(5, [5, 5]), (7, [5, 5, 2]), (7, [5, 5, 2])]:
        found = await ours.score("g", many(count))
        assert ([one.answer for one in found], cache.looked_up) == ([Scored(4.0)] * count, looked_up)
    assert len(model.calls) == 2


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
    another = tasks("a", judge=changed("model: other"))
    await scorer(model, cache).score("g", another)
    model.elsewhere[JUDGE.rule.model] = "elsewhere"
    found = await scorer(model, cache).score("g", [*tasks("a"), *another])
    assert [one.cached for one in found] == [False, True], "the other model is where it was"


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


@pytest.mark.parametrize("held", [None, b'{"score": 5, "reason": "an older form"}', b"\xff", b"9", b"5,5", b"", b"[]"])
async def test_a_cache_that_fails_or_holds_nonsense_costs_calls_and_no_answer(held: bytes | None) -> None:
    model = Model()
    ours = scorer(model, Broken(held))
    for _ in range(2):
        found = await ours.score("g", many(5))
        assert [one.answer for one in found] == [Scored(4.0)] * 5
    assert len(model.calls) == 5, "what this process was told lately it still knows"


@pytest.mark.parametrize(
    ("judge", "value", "dimensions", "stored"),
    [
        ("helpfulness", 4.0, {}, b"4"),
        ("helpfulness", None, {}, b'"N/A"'),
        ("honesty", 1.0, {}, b"true"),
        ("refusal", 0.25, {}, b"0.25"),
        ("brevity", 4.0, {"tone_of_voice": 5.0, "facts": None}, b'4,5,"N/A"'),
    ],
)
def test_what_a_gate_needs_is_kept_and_the_judges_words_are_not(
    judge: str, value: float | None, dimensions: dict[str, float | None], stored: bytes
) -> None:
    """A judge's words may quote the turn, and take most of the bytes."""
    asked = REGISTRY.judge(judge)
    answer = Evaluation(value, "the user said that ...", dimensions)
    assert written(answer, asked) == stored
    read = kept(stored, asked)
    assert read == Evaluation(value, NO_WORDS, dimensions)


async def test_who_asked_the_model_keeps_its_words_where_another_had_the_same_answer_first() -> None:
    cache = MemoryScoreCache()
    first, second = scorer(Model(seconds=0.02), cache), scorer(Model(seconds=0.02), cache)
    answers = await asyncio.gather(first.score("g", tasks("a")), second.score("g", tasks("a")))
    assert [one.reason for (one,) in answers] == [answers[0][0].reason] * 2
    assert answers[0][0].reason != NO_WORDS


async def test_a_judges_kept_answers_are_read_once_for_each_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate's 800 answers are a handful of different ones, and each is read as strictly as the model's own."""
    held, reads, read = MemoryScoreCache(), list[bytes | None](), cache.kept

    def counted(value: bytes | None, judge: Any) -> Evaluation | None:
        reads.append(value)
        return read(value, judge)

    model = Model(lambda output, _: f'{{"score": {4 if output < "o5" else 5}, "reason": "r"}}')
    first = await scorer(model, held).score("g", many(100))
    monkeypatch.setattr(cache, "kept", counted)
    again = await scorer(model, held).score("g", many(100))
    assert [one.answer for one in again] == [one.answer for one in first]
    assert sorted(reads, key=str) == [b"4", b"5"]


@pytest.mark.parametrize("words", ["it helps", "", 'two\nlines, and a "quote" ✓', "5,5"])
def test_words_that_are_to_be_kept_come_back_as_they_were(words: str) -> None:
    asked = REGISTRY.judge("brevity")
    answer = Evaluation(4.0, words, {"tone_of_voice": 5.0, "facts": None})
    assert kept(written(answer, asked, words=True), asked) == answer


async def test_where_words_are_kept_all_who_asked_at_one_moment_tell_the_same_ones() -> None:
    cache = MemoryScoreCache()
    quick, slow = Model('{"score": 4, "reason": "first"}'), Model('{"score": 4, "reason": "second"}', seconds=0.05)
    both = [Scorer(model, cache, words=True) for model in (quick, slow)]
    answers = await asyncio.gather(*(one.score("g", tasks("a")) for one in both))
    later = await Scorer(Model(), cache, words=True).score("g", tasks("a"))
    assert [one.reason for (one,) in [*answers, later]] == ["first"] * 3


ONE = Task(JUDGE, "one", "offline", {"input": "how?", "output": "one"}, digest=b"1" * 16)


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Made since then."""
    made: list[str] = []

    def turn_json(texts: Any, tokens: int) -> str:
        made.append(texts["output"])
        return framing.turn_json(texts, tokens)

    monkeypatch.setattr("evalcore.judges.llm_judge.turn_json", turn_json)
    return made


@pytest.mark.parametrize(
    ("before", "reason"),
    [("asked here", "fine"), ("asked here of other bytes", "fine"), ("in the cache", answered.NO_WORDS)],
)
async def test_an_item_that_was_scored_before_needs_no_prompt(before: str, reason: str, prompts: list[str]) -> None:
    """The judge's words are there in the process that asked, and nowhere else."""
    cache, model = MemoryScoreCache(), Model()
    ours = scorer(model, cache)
    first = scorer(model, cache) if before == "in the cache" else ours
    await first.score("g", [replace(ONE, digest=b"2" * 16) if before == "asked here of other bytes" else ONE])
    await ours.score("g", [ONE])
    prompts.clear()
    (found,) = await ours.score("g", [replace(ONE, weight=3.0)])
    assert (found.cached, found.answer, found.reason) == (True, Scored(4.0, 3.0), reason)
    assert (prompts, len(model.calls)) == ([], 1)


@pytest.mark.parametrize(
    "other",
    [
        replace(ONE, digest=b"2" * 16, source={"input": "how?", "output": "two"}),
        replace(ONE, digest=b"", source={"input": "how?", "output": "two"}),
        replace(ONE, judge=changed("model: other")),
        replace(ONE, judge=changed("task_introduction: You judge otherwise.")),
        replace(ONE, judge=changed("variables: {offline: {input: output, output: input}}")),
        replace(ONE, judge=built().judge("refusal")),
        replace(ONE, context="online", source={"input": {"messages": [{"content": "how?"}]}, "output": {}}),
    ],
)
async def test_what_else_decides_a_score_is_never_passed_over(other: Task) -> None:
    ours = scorer(Model())
    await ours.score("g", [ONE])
    (found,) = await ours.score("g", [other])
    assert not found.cached


async def test_of_very_many_items_the_first_are_forgotten(monkeypatch: pytest.MonkeyPatch, prompts: list[str]) -> None:
    monkeypatch.setattr(answered, "REMEMBERED", 3)
    ours = scorer(Model())
    many = [replace(ONE, source={"input": "how?", "output": str(n)}, digest=bytes([n]) * 16) for n in range(5)]
    await ours.score("g", many)
    prompts.clear()
    assert all(one.cached for one in await ours.score("g", many))
    assert prompts[:2] == ["0", "1"]
    assert len(ours.answered._held) == len(ours.answered._keys) == 3


async def test_workers_that_asked_at_one_moment_go_by_the_answer_that_was_there_first() -> None:
    """Else the same evidence would make two verdicts, one a decider."""
    cache = MemoryScoreCache()
    slow = Model('{"score": 1, "reason": "slow"}', seconds=0.05)
    workers = [scorer(Model('{"score": 5, "reason": "quick"}'), cache), scorer(slow, cache)]
    for _ in range(2):
        found = await asyncio.gather(*(worker.score("g", [ONE]) for worker in workers))
        assert [one.answer for (one,) in found] == [Scored(5.0)] * 2
    assert len(slow.calls) == 1


async def test_what_is_at_hand_is_so_for_a_time_and_then_the_caches_matter() -> None:
    """A judge's words about a turn must not outlive the time that the cache keeps them."""
    time, model, cache = [0.0], Model(), MemoryScoreCache(seconds=100.0, clock=lambda: time[0])
    ours = scorer(model, cache)
    ours.answered = RememberedAnswers(cache, now=lambda: time[0])
    for now, calls in [(0.0, 1), (99.0, 1), (answered.SECONDS - 1.0, 1), (answered.SECONDS, 2)]:
        time[0] = now
        await ours.score("g", [ONE])
        assert len(model.calls) == calls, now
