"""An item that is known by its bytes is answered from memory, without a prompt; nothing else is taken for it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from evalcore import framing
from evalcore.judges.evaluator import Task
from evalcore.scoring import cache as answered
from evalcore.scoring.answers import Scored
from evalcore.scoring.cache import MemoryScoreCache, RememberedAnswers
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.scoring.scoring_rig import JUDGE, Model, scorer

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


def changed(field: str) -> Any:
    return built({"rules/helpfulness.yaml": f"{{{field}}}"}).judge("helpfulness")


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
    """Else the same evidence would make two verdicts, by whoever decides."""
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
