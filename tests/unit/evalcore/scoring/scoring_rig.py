"""A model that answers what it is told, and the scorer in front of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from evalcore.judges.evaluator import Prompt, Task
from evalcore.judges.llm_judge import render
from evalcore.scoring.cache import MemoryScoreCache, ScoreCache
from evalcore.scoring.calls import CallFailed, Failure, Reply
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.nonce_key import nonce_key
from evalcore.scoring.runner import Scorer
from tests.unit.evalcore.registry.registry_disk import built

REGISTRY = built({"rules/brevity.yaml": "{dimensions: {tone-of-voice: {description: T}, facts: {description: F}}}"})
ITEM = {"input": "how?", "output": "so!", "expected_output": "thus"}
JUDGE = REGISTRY.judge("helpfulness")
CALL = 1_000.0
"""Seconds that a call takes by the scorer's clock, so that patience ends after a number of calls and not with the
machine's load."""
QUICK = CallLimits(at_once=4, patience=3 * CALL, first_pause=0.001, longest_pause=0.004, jitter=0.0, call_seconds=30.0)
GOOD = '{"reason": "fine", "score": 4}'


class Model:
    """Answers what it is told: a text, an error, or what a function makes of (the output judged, the try's number).
    `calls` are the outputs asked about and `asked` the questions, in order."""

    def __init__(self, answers: Any = GOOD, seconds: float = 0.0, tokens: int | None = 100) -> None:
        self.answers, self.seconds, self.tokens = answers, seconds, tokens
        self.calls: list[str] = []
        self.asked: list[Prompt] = []
        self.now = self.busiest = 0
        self.elsewhere: dict[str, str] = {}

    def source(self, model: str) -> str:
        return self.elsewhere.get(model, "test")

    async def complete(self, asked: Prompt) -> Reply:
        self.calls.append(asked.output)
        self.asked.append(asked)
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


def asked(judge: str = "helpfulness") -> Prompt:
    known = REGISTRY.judge(judge)
    return render(known, "offline", ITEM).sealed(nonce_key(), known)


def tasks(*outputs: str, judge: Any = JUDGE, weight: float = 1.0) -> list[Task]:
    return [Task(judge, out, "offline", {"input": "how?", "output": out}, weight) for out in outputs]


def many(count: int, start: str = "o") -> list[Task]:
    return tasks(*(f"{start}{number}" for number in range(count)))


class DeafCache(MemoryScoreCache):
    """A cache whose answer comes as its question is cancelled, as `asyncio.wait_for` in a Redis client may have it: to
    questions of so many keys, until the first was cancelled."""

    def __init__(self, to: Callable[[int], bool]) -> None:
        super().__init__()
        self.asked, self._to, self._cancelled = asyncio.Event(), to, False

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        if self._to(len(keys)) and not self._cancelled:
            self.asked.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self._cancelled = True
        return await super().get_many(keys)


def scorer(model: Model, cache: ScoreCache | None = None, limits: CallLimits = QUICK, **more: Any) -> Scorer:
    more = {"now": lambda: time.monotonic() + CALL * len(model.calls), **more}
    return Scorer(model, MemoryScoreCache() if cache is None else cache, limits, **more)


def down(kind: Failure = Failure.UNAVAILABLE, wait: float = 0.0) -> CallFailed:
    return CallFailed(kind, f"it is {kind}", wait)
