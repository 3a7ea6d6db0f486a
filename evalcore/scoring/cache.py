"""What judges answered before, so that a repeated or resumed gate costs nothing (contracts §5). No failure is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from evalcore.scores import NOT_APPLICABLE, Answer, Unscored, read
from evalcore.views import Judge
from schemas.judges import ScoreType

LARGEST = 16_384
"""Bytes of a value; what is larger is not kept."""


class ScoreCache(Protocol):
    """One cache for all judges. Either method may raise agents' Unavailable or any other error: who calls goes on
    without the cache."""

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """In the order asked for; None for what is not there, or no longer."""
        ...

    async def put(self, key: str, value: bytes) -> bytes | None:
        """Kept for the cache's own time from now on. Where a value is there already, that one stands and is returned,
        so that all who asked the same at one moment go by one answer. More than LARGEST bytes are not kept."""
        ...


class MemoryScoreCache:
    """In this process, for tests and single runs. `seconds`: how long values are kept; `clock` in seconds."""

    def __init__(self, seconds: float = 3_600.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._held: dict[str, tuple[bytes, float]] = {}

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return [self._get(key) for key in keys]

    async def put(self, key: str, value: bytes) -> bytes | None:
        if len(value) > LARGEST:
            return None
        if (earlier := self._get(key)) is None:
            self._held[key] = (value, self._clock() + self._seconds)
        return earlier

    def _get(self, key: str) -> bytes | None:
        value, until = self._held.get(key, (b"", 0.0))
        return value if until > self._clock() else None


def written(answer: Answer, judge: Judge) -> bytes:
    """The answer as the model might have given it: `kept` reads it back as strictly as the model's own."""
    content: dict[str, Any] = {"score": _said(answer.value, judge), "reason": answer.reason}
    if judge.dimensions:
        content["dimensions"] = {name: _said(value, judge) for name, value in answer.dimensions.items()}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def kept(value: bytes | None, judge: Judge) -> Answer | None:
    """None also for what is no answer of this judge, whoever put it there."""
    if value is None:
        return None
    try:
        return read(value.decode(), judge)
    except (Unscored, UnicodeDecodeError):
        return None


def _said(value: float | None, judge: Judge) -> Any:
    if value is None:
        return NOT_APPLICABLE
    if judge.score_type is ScoreType.BOOLEAN:
        return bool(value)
    return int(value) if judge.score_type is ScoreType.INTEGER else value
