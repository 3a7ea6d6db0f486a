"""Where to read a partition from: the state's own watermark, which is gone when the state is (promise 1).

Kafka is the record of truth. Each partition's watermark lives beside the state it describes and moves with it in one
atomic step, so an emptied or older Redis shows itself, and the records it lacks are read again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog
from faust.types import TP

from agents.ports import Clock, Store
from agents.steps import FOREVER

log = structlog.get_logger(__name__)


class Log(Protocol):
    """What a consumer knows of the partitions it holds."""

    async def first_after(self, moments: dict[TP, int]) -> dict[TP, int | None]: ...
    async def bounds(self, tps: list[TP]) -> dict[TP, tuple[int, int]]: ...


class WatermarkStore(Store, Protocol):
    async def start_at(self, cell: str, value: bytes, expires: int, instead_of: bytes) -> bytes:
        """Put a watermark if the cell still holds `instead_of`; returns what it holds now."""
        ...


class Positions:
    """Start of each partition. `on_lost` is told when a partition that was read before has to be read again."""

    def __init__(
        self, store: WatermarkStore, clock: Clock, lookback_ms: int, on_lost: Callable[[TP], Awaitable[None]]
    ) -> None:
        self._store, self._clock, self._lookback, self._on_lost = store, clock, lookback_ms, on_lost
        self._stood: dict[TP, tuple[int, int]] = {}

    def doubtful_until(self, tp: TP, window: int) -> int:
        """Records from the watermark up to here may have been handled, but not recorded, by a worker that died: at
        most `window` were in flight, and none that were not there yet when we took over. 0 if there is no such."""
        mark, end = self._stood.get(tp, (0, 0))
        return min(mark + window, end)

    async def start(self, tp: TP, committed: int | None, log_of: Log) -> int:
        """The offset to read from: the watermark or the committed offset, whichever is lower; without a watermark,
        the start of the lookback window. A watermark beyond the log's end is of a topic that was made anew."""
        cell = f"w:{tp.topic}:{tp.partition}"
        (mark,) = await self._store.read([cell])
        first, end = (await log_of.bounds([tp]))[tp]
        if mark and int(mark) <= end:
            start = min(int(mark), committed if committed is not None else int(mark))
            # A watermark below the committed offset is of an older copy of the state: it knows no writes since then.
            self._stood[tp] = (max(int(mark), committed or 0), end)
        else:
            found = (await log_of.first_after({tp: self._clock.now_ms() - self._lookback}))[tp]
            if found is None and (await log_of.first_after({tp: 0}))[tp] is None:
                found = first  # the broker has no index by time (librdkafka's built-in one): older records get filtered
            start = end if found is None else found
            self._stood.pop(tp, None)
            if committed is not None and committed > first and start < committed:
                log.warning(
                    "state_lost", topic=tp.topic, partition=tp.partition, reading_again_from=start, to=committed
                )
                await self._on_lost(tp)
            start = min(start, int(await self._store.start_at(cell, str(start).encode(), FOREVER, mark)))
        return max(start, first)
