"""Traces drawn from the pools of an agent or of one version of it, and read back from the topic they came on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import orjson

from agents.counting import HOUR
from agents.pools import pool_cell
from agents.ports import Clock, Records, Store
from evalcore.gates.sampling import Candidate, draw

Whole = Callable[[], AbstractAsyncContextManager[None]]
"""What is read of the state inside is of a whole one; raises Unavailable (`streams.wholeness`)."""


class PooledTraces:
    """Raises Unavailable."""

    def __init__(
        self,
        store: Store,
        records: Records,
        topic: str,
        clock: Clock,
        whole: Whole = nullcontext,
    ) -> None:
        """Nothing is drawn from half of the pools, while they are being made anew: the request waits."""
        self._store, self._records, self._topic = store, records, topic
        self._clock, self._whole = clock, whole

    async def drawn(
        self, vertical: str | None, agent: str, version: str | None, window: int, size: int
    ) -> list[Candidate]:
        """At most `size` that ended in the last `window` seconds. `version` None: of any version, from production."""
        now = self._clock.now_ms()
        since = now - window * 1000
        hours = range(since // HOUR, now // HOUR + 1)
        cells = [pool_cell(vertical, agent, version, hour) for hour in hours]
        async with self._whole():
            pools = await self._store.pools(cells)
        return draw(pools, since, now, size)

    async def read(self, drawn: Sequence[Candidate]) -> list[tuple[Candidate, dict[str, Any]]]:
        """With each its trace. Those whose record is gone, carries no input and no output, or is of a turn that has not
        ended are left out."""
        places = [(self._topic, one.partition, one.offset) for one in drawn]
        found = zip(drawn, await self._records.fetch(places), strict=True)
        traces = ((one, _trace(record.value if record is not None else None)) for one, record in found)
        return [(one, trace) for one, trace in traces if trace is not None]


def _trace(value: bytes | None) -> dict[str, Any] | None:
    """An output of null is carried: the agent gave none, and a sample without such turns would be one of the good
    ones."""
    found = orjson.loads(value) if value is not None else None
    if not isinstance(found, dict) or found.get("input") is None or "output" not in found:
        return None
    return found if found.get("ended_at") is not None else None
