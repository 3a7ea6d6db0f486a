"""What judges answered before: in this process lately, or, out of the cache, in any."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeVar

from evalcore.scores import Answer
from evalcore.scoring.asking import Task
from evalcore.scoring.cache import ScoreCache, kept, written

log = logging.getLogger(__name__)
REMEMBERED = 8_192
"""Answers that a process has at hand; the oldest leave first. Each in turn, more than that find nothing at hand."""
SECONDS = 600.0
"""For so long. Then the cache is asked again, which all processes share and which forgets in its own time."""

K = TypeVar("K")
V = TypeVar("V")
_Item = tuple[str, str, str, bytes]


class Answered:
    """By the key of the question; what is at hand also by the item's bytes, so that a gate that is repeated needs not
    even make its prompts. Of one model; raises nothing: what the cache does not say is asked."""

    def __init__(self, cache: ScoreCache, now: Callable[[], float] = time.monotonic) -> None:
        self._cache, self._cache_works, self._now = cache, True, now
        self._held: OrderedDict[str, tuple[Answer, float]] = OrderedDict()
        self._keys: OrderedDict[_Item, str] = OrderedDict()

    def of_item(self, task: Task) -> Answer | None:
        key = self._keys.get(_item(task)) if task.digest else None
        return self.at_hand(key) if key is not None else None

    def at_hand(self, key: str) -> Answer | None:
        answer, until = self._held.get(key, (None, 0.0))
        return answer if until > self._now() else None

    async def look_up(self, tasks: Sequence[Task], keys: Sequence[str]) -> list[Answer | None]:
        """What is at hand, and of the rest what the cache has."""
        found = {key: self.at_hand(key) for key in keys}
        unknown = {key: task for key, task in zip(keys, tasks, strict=True) if found[key] is None}
        if unknown:
            try:
                held = await self._cache.get_many(list(unknown))
                self._cache_works = True
            except Exception as error:
                self._without_cache(error)
                held = [None] * len(unknown)
            for (key, task), value in zip(unknown.items(), held, strict=True):
                if (answer := kept(value, task.judge)) is not None:
                    found[key] = self._remember(key, answer)
        for key, task in zip(keys, tasks, strict=True):
            if task.digest and found[key] is not None:
                _put(self._keys, _item(task), key)
        return [found[key] for key in keys]

    async def keep(self, key: str, task: Task, answer: Answer) -> Answer:
        """The answer that stands: this one, or the one that another process was given first."""
        try:
            earlier = await self._cache.put(key, written(answer, task.judge))
            answer = kept(earlier, task.judge) or answer
        except Exception as error:
            self._without_cache(error)
        if task.digest:
            _put(self._keys, _item(task), key)
        return self._remember(key, answer)

    def _remember(self, key: str, answer: Answer) -> Answer:
        self._held.pop(key, None)
        _put(self._held, key, (answer, self._now() + SECONDS))
        return answer

    def _without_cache(self, error: Exception) -> None:
        if self._cache_works:
            log.warning("judge_cache_unavailable: %s", f"{type(error).__name__}: {error}"[:200])
        self._cache_works = False


def _item(task: Task) -> _Item:
    # A judge's version is the hash of all of the judge's own that decides a score.
    return task.judge.id, task.judge.version, task.context, task.digest


def _put(held: OrderedDict[K, V], key: K, value: V) -> None:
    held[key] = value
    if len(held) > REMEMBERED:
        held.popitem(last=False)
