"""What judges answered before: in this process, or, out of the cache, in any."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeVar

from evalcore.scores import Answer
from evalcore.scoring.asking import Task
from evalcore.scoring.cache import ScoreCache, kept, written

log = logging.getLogger(__name__)
REMEMBERED = 4_096
"""Answers that a process has at hand; the oldest leave first."""

K = TypeVar("K")
_Item = tuple[str, str, str, bytes]


class Answered:
    """By the key of the question; and of what this process has at hand also by the item's bytes, so that a gate that is
    repeated needs not even make its prompts. Of one model; raises nothing: what the cache does not say is asked."""

    def __init__(self, cache: ScoreCache) -> None:
        self._cache, self._cache_works = cache, True
        self._by_key: OrderedDict[str, Answer] = OrderedDict()
        self._by_item: OrderedDict[_Item, Answer] = OrderedDict()

    def of_item(self, task: Task) -> Answer | None:
        return self._by_item.get(_item(task)) if task.digest else None

    def at_hand(self, key: str) -> Answer | None:
        return self._by_key.get(key)

    async def look_up(self, tasks: Sequence[Task], keys: Sequence[str]) -> list[Answer | None]:
        """What is at hand, and of the rest what the cache has."""
        found = {key: self._by_key.get(key) for key in keys}
        unknown = {key: task for key, task in zip(keys, tasks, strict=True) if found[key] is None}
        if unknown:
            try:
                held = await self._cache.get_many(list(unknown))
                self._cache_works = True
            except Exception as error:
                self._without_cache(error)
                held = [None] * len(unknown)
            found |= {key: kept(value, unknown[key].judge) for key, value in zip(unknown, held, strict=True)}
        for key, task in zip(keys, tasks, strict=True):
            if (answer := found[key]) is not None:
                self._remember(key, task, answer)
        return [found[key] for key in keys]

    async def keep(self, key: str, task: Task, answer: Answer) -> None:
        self._remember(key, task, answer)
        try:
            await self._cache.put(key, written(answer, task.judge))
        except Exception as error:
            self._without_cache(error)

    def _remember(self, key: str, task: Task, answer: Answer) -> None:
        _put(self._by_key, key, answer)
        if task.digest:
            _put(self._by_item, _item(task), answer)

    def _without_cache(self, error: Exception) -> None:
        if self._cache_works:
            log.warning("judge_cache_unavailable: %s", f"{type(error).__name__}: {error}"[:200])
        self._cache_works = False


def _item(task: Task) -> _Item:
    # A judge's version is the hash of all of the judge's own that decides a score.
    return task.judge.id, task.judge.version, task.context, task.digest


def _put(held: OrderedDict[K, Answer], key: K, answer: Answer) -> None:
    held[key] = answer
    if len(held) > REMEMBERED:
        held.popitem(last=False)
