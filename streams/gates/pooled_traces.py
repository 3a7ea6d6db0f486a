"""Traces drawn from the pools of an agent or of one version of it, and read back from the topic they came on; what an
event left out, its trace's input and output, is read from Opik (contracts §1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from agents.gates.pools import pool_key
from agents.join.counting import HOUR
from agents.ports import Clock, Records, Store
from evalcore.scoring.sampling import PooledTrace, draw
from schemas.dead_letters import Record

LOOKED_UP_AT_ONCE = 16
WORDS = ("input", "output")
"""What an event may leave out."""
InOpik = Callable[[str], Awaitable[Mapping[str, Any] | None]]
"""A trace by its id, None where Opik has none. Raises Unavailable."""
Whole = Callable[[], AbstractAsyncContextManager[None]]
"""What is read of the state inside is of a whole one; raises Unavailable (`streams.redis.state_completeness`)."""


@dataclass
class Drawn:
    """A trace as its judges read it. `digest` is the hash of its record, empty where Opik said more than that."""

    candidate: PooledTrace
    trace: dict[str, Any]
    digest: bytes


class PooledTraces:
    """Raises Unavailable."""

    def __init__(
        self,
        store: Store,
        records: Records,
        topic: str,
        clock: Clock,
        in_opik: InOpik,
        whole: Whole = nullcontext,
    ) -> None:
        """Nothing is drawn from half of the pools, while they are being made anew: the request waits."""
        self._store, self._records, self._topic = store, records, topic
        self._clock, self._in_opik, self._whole = clock, in_opik, whole
        self._room = asyncio.Semaphore(LOOKED_UP_AT_ONCE)

    async def drawn(
        self, vertical: str | None, agent: str, version: str | None, window: int, size: int
    ) -> list[PooledTrace]:
        """At most `size` that ended in the last `window` seconds. `version` None: of any version, from production."""
        now = self._clock.now_ms()
        since = now - window * 1000
        hours = range(since // HOUR, now // HOUR + 1)
        keys = [pool_key(vertical, agent, version, hour) for hour in hours]
        async with self._whole():
            pools = await self._store.pools(keys)
        return draw(pools, since, now, size)

    async def read(self, drawn: Sequence[PooledTrace]) -> list[Drawn]:
        """With each its trace. Those whose record is gone, that are without input and output there and in Opik, or are
        of a turn that has not ended are left out; of a turn with several traces all but the one that ended last."""
        places = [(self._topic, one.partition, one.offset) for one in drawn]
        records = await self._records.fetch(places)
        read = (_of_an_ended_turn(*pair) for pair in zip(drawn, records, strict=True))
        found = _one_of_each_turn([one for one in read if one is not None])
        await asyncio.gather(*(self._complete(one) for one in found if not one.trace.keys() >= {*WORDS}))
        return [one for one in found if _told(one.trace)]

    async def _complete(self, one: Drawn) -> None:
        async with self._room:
            read = await self._in_opik(str(one.trace.get("trace_id"))) or {}
        one.trace |= {name: read[name] for name in WORDS if name in read}
        one.digest = b""


def _of_an_ended_turn(candidate: PooledTrace, record: Record | None) -> Drawn | None:
    if record is None or record.value is None:
        return None
    found = orjson.loads(record.value)
    if not isinstance(found, dict) or found.get("ended_at") is None:
        return None
    return Drawn(candidate, found, blake2b(record.value, digest_size=16).digest())


def _one_of_each_turn(found: Sequence[Drawn]) -> list[Drawn]:
    latest: dict[object, Drawn] = {}
    for one in found:
        other = latest.setdefault(_turn(one), one)
        if _place(one) > _place(other):
            latest[_turn(one)] = one
    return [one for one in found if latest[_turn(one)] is one]


def _turn(one: Drawn) -> object:
    return one.trace.get("response_id") or one.candidate.trace


def _place(one: Drawn) -> tuple[int, int]:
    return one.candidate.ended, one.candidate.offset


def _told(trace: Mapping[str, Any]) -> bool:
    """An output of null is carried: the agent gave none, and a sample without such turns would be one of the good
    ones."""
    return trace.get("input") is not None and "output" in trace
