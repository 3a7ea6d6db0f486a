"""Keeps judges' answers: recent ones in this process, all in a cache that processes share.

A repeated or resumed gate makes no call for what is kept (contracts §5). Failures are not kept.
"""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from evalcore.judges.bindings import layout_of
from evalcore.judges.evaluator import Evaluation, NoScore, Task
from evalcore.judges.score_parsing import NOT_APPLICABLE, read
from evalcore.registry.judge import Judge
from schemas.judges import ScoreType
from schemas.verticals import TraceLayout

log = logging.getLogger(__name__)
REMEMBERED = 8_192
"""Answers that a process remembers; the oldest leave first. A gate that repeats more than these finds none of them."""
SECONDS = 600.0
"""How long a process remembers. Then it asks the shared cache, which forgets in its own time."""
LARGEST = 16_384
"""Bytes of a value; what is larger is not kept."""
NO_WORDS = "answered before; the judge's words are not kept"
"""The reason of an answer that comes from the cache."""
K = TypeVar("K")
V = TypeVar("V")
_Item = tuple[str, str, str, bytes, TraceLayout | None]


class ScoreCache(Protocol):
    """One cache for all judges. Either method may raise agents' Unavailable or any other error: the caller then goes on
    without the cache."""

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Returns the values in the order of the keys; None for what is not kept, or no longer."""
        ...

    async def put(self, key: str, value: bytes) -> bytes | None:
        """Keeps the value for the cache's own time. Where the key has a value already, that one stays and is returned,
        so that simultaneous askers use one answer. More than LARGEST bytes are not kept."""
        ...


class MemoryScoreCache:
    """A cache in this process, for tests and single runs. Values are kept for `seconds` by `clock`, in seconds."""

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


def written(answer: Evaluation, judge: Judge, *, words: bool = False) -> bytes:
    """Returns what a gate needs of an answer: its score and those of its dimensions, in the judge's order. The judge's
    `words`, which may quote the turn, are most of an answer and decide nothing; where they are kept they come after the
    first line."""
    values = [answer.value, *(answer.dimensions[name] for name in judge.dimensions)]
    scores = ",".join([_written_score(value, judge) for value in values])
    return f"{scores}\n{answer.reason}".encode() if words else scores.encode()


def kept(value: bytes | None, judge: Judge) -> Evaluation | None:
    """Reads a kept value as strictly as an LLM judge's answer, whatever the form of this judge's own; None for what is
    no answer of this judge, too."""
    if value is None:
        return None
    try:
        scores, with_words, words = value.decode().partition("\n")
        score, *rest = scores.split(",")
        dimensions = dict(zip(judge.dimensions, rest, strict=True))
        return read(_reply(score, dimensions, words if with_words else NO_WORDS), judge)
    except (NoScore, ValueError):
        return None


def _reply(score: str, dimensions: Mapping[str, str], words: str) -> str:
    """Returns the model's reply that these scores, written as JSON, would be."""
    reply = f'"reason":{json.dumps(words)},"score":{score}'
    if dimensions:
        scores = ",".join([f"{json.dumps(name)}:{part}" for name, part in dimensions.items()])
        reply += f',"dimensions":{{{scores}}}'
    return f"{{{reply}}}"


def _written_score(value: float | None, judge: Judge) -> str:
    if value is None:
        return json.dumps(NOT_APPLICABLE)
    if judge.score_type is ScoreType.BOOLEAN:
        return json.dumps(bool(value))
    return json.dumps(int(value) if judge.score_type is ScoreType.INTEGER else value)


class RememberedAnswers:
    """One model's answers by the prompt's key, and by the item's bytes, so that a repeated gate does not even render
    its prompts. Its methods raise nothing: the model is asked for what the cache can't give. With `words` the judge's
    reasons are kept in the cache, too."""

    def __init__(self, cache: ScoreCache, now: Callable[[], float] = time.monotonic, *, words: bool = False) -> None:
        self._cache, self._cache_works, self._now, self._words = cache, True, now, words
        self._held: OrderedDict[str, tuple[Evaluation, float]] = OrderedDict()
        self._keys: OrderedDict[_Item, str] = OrderedDict()

    def of_item(self, task: Task) -> Evaluation | None:
        key = self._keys.get(_item(task)) if task.digest else None
        return self.at_hand(key) if key is not None else None

    def at_hand(self, key: str) -> Evaluation | None:
        answer, until = self._held.get(key, (None, 0.0))
        return answer if until > self._now() else None

    async def look_up(self, tasks: Sequence[Task], keys: Sequence[str]) -> list[Evaluation | None]:
        """Answers in the order of the keys: remembered ones, the rest from the cache; None where there is none."""
        found = {key: self.at_hand(key) for key in keys}
        unknown = {key: task for key, task in zip(keys, tasks, strict=True) if found[key] is None}
        if unknown:
            try:
                held = await self._cache.get_many(list(unknown))
                self._cache_works = True
            except Exception as error:
                self._without_cache(error)
                held = [None] * len(unknown)
            read: dict[tuple[bytes, int], Evaluation | None] = {}  # a judge gives few answers, and many times
            for (key, task), value in zip(unknown.items(), held, strict=True):
                if value is None:
                    continue
                said = value, id(task.judge)
                if said not in read:
                    read[said] = kept(value, task.judge)
                if (answer := read[said]) is not None:
                    found[key] = self._remember(key, answer)
        for key, task in zip(keys, tasks, strict=True):
            if task.digest and found[key] is not None:
                _put(self._keys, _item(task), key)
        return [found[key] for key in keys]

    async def keep(self, key: str, task: Task, answer: Evaluation) -> Evaluation:
        """Keep the answer, and return the one that holds: this one, or the one that another process got first."""
        try:
            value = written(answer, task.judge, words=self._words)
            earlier = kept(await self._cache.put(key, value), task.judge)
            # Where words are kept, all who ask tell the same ones, now and later.
            if earlier is not None and (self._words or replace(earlier, reason=answer.reason) != answer):
                answer = earlier
        except Exception as error:
            self._without_cache(error)
        if task.digest:
            _put(self._keys, _item(task), key)
        return self._remember(key, answer)

    def _remember(self, key: str, answer: Evaluation) -> Evaluation:
        self._held.pop(key, None)
        _put(self._held, key, (answer, self._now() + SECONDS))
        return answer

    def _without_cache(self, error: Exception) -> None:
        if self._cache_works:
            log.warning("judge_cache_unavailable: %s", f"{type(error).__name__}: {error}"[:200])
        self._cache_works = False


def _item(task: Task) -> _Item:
    # A judge's version is the hash of all of the judge's own that decides a score; where a trace's texts are isn't.
    layout = layout_of(task.judge, task.source) if task.judge.layouts else None
    return task.judge.id, task.judge.version, task.context, task.digest, layout


def _put(held: OrderedDict[K, V], key: K, value: V) -> None:
    held[key] = value
    if len(held) > REMEMBERED:
        held.popitem(last=False)
