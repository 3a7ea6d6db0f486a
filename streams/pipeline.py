"""Batches in flight: several at once, recorded and acknowledged in order per partition (promises 1 and 6)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog
from faust.types import TP

from agents.codec import Bad, Decoded
from agents.join.steps import Agent, Batch, handle
from agents.join.work import Report
from agents.policy import Policy
from agents.ports import Ports, StateLost, Unauthorized, Unavailable
from schemas.dead_letters import Record, clean, replay_id_of
from schemas.outcomes import Cause
from schemas.topics import Topics
from streams.retry import Retry

log = structlog.get_logger(__name__)


class TooManyBad(Exception):
    """So many undecodable records came in a row that the producer, not a record, is at fault."""


class Abandoned(Exception):
    """The batch is no longer ours, or an earlier one of its partition failed; it will be read again."""


class Consumer(Protocol):
    flow_active: bool

    def current(self, batch: Batch) -> bool: ...
    def abandon(self, batch: Batch) -> None: ...


@dataclass
class Flight:
    batch: Batch
    done: asyncio.Future[None]


class Pipeline:
    """One for each topic. `submit` returns as soon as there is room; `fatal` is told what stops the worker."""

    def __init__(
        self,
        agent: Agent,
        ports: Ports,
        policy: Policy,
        topics: Topics,
        *,
        in_flight: int,
        bad_in_a_row: int,
        consumer: Callable[[], Consumer],
        observe: Callable[[Agent, Report, Batch], None],
        lost: Callable[[StateLost, Batch], Awaitable[None]],
        fatal: Callable[[BaseException], None],
        ready: Callable[[], Awaitable[None]],
    ) -> None:
        self.agent, self.ports, self.policy, self.topics = agent, ports, policy, topics
        self._room = asyncio.Semaphore(in_flight)
        self._lanes: dict[TP, deque[Flight]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._bad: dict[TP, tuple[int, int, int]] = {}
        self._stopping = False
        self._bad_limit = bad_in_a_row
        self._consumer, self._observe, self._lost, self._fatal, self._ready = consumer, observe, lost, fatal, ready

    @property
    def bad_in_a_row(self) -> int:
        return max((streak for _, _, streak in self._bad.values()), default=0)

    @property
    def in_flight(self) -> int:
        return len(self._tasks)

    async def stop(self, grace: float) -> None:
        """Let what is in flight end within `grace` seconds; abandon the rest, which will be read again."""
        self._stopping = True
        if self._tasks:
            _, late = await asyncio.wait(set(self._tasks), timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=5.0)

    async def submit(self, batch: Batch, ack: Callable[[], Any]) -> None:
        """Take a batch; `ack` is called once it and the partition's earlier ones are settled."""
        await self._ready()
        lane = self._lanes.setdefault(TP(batch.topic, batch.partition), deque())
        while lane and lane[-1].batch.generation != batch.generation and self._consumer().current(batch):
            # What was read before a rewind may be writing yet, and ours has to be the last word. It ends by itself: it
            # waits for nothing that comes after it, and no longer being current it is given up when its call returns.
            await asyncio.wait([lane[-1].done])
        await self._recall(batch)
        await self._room.acquire()
        if self._stopping or not self._consumer().current(batch):
            self._consumer().abandon(batch)
            self._room.release()
            return
        before = lane[-1] if lane else None
        flight = Flight(batch, asyncio.get_running_loop().create_future())
        lane.append(flight)

        async def turn() -> None:
            if before is not None:
                await asyncio.shield(before.done)
            if not self._consumer().current(batch):
                raise Abandoned

        # Under another name: rebound, the batch would hold the function that holds it, and its records would stay in
        # memory until the collector comes by.
        ordered = replace(batch, floor=lane[0].batch.base, turn=turn)
        task = asyncio.create_task(self._fly(ordered, flight, lane, ack), name=f"{batch.watermark_key}@{batch.base}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fly(self, batch: Batch, flight: Flight, lane: deque[Flight], ack: Callable[[], Any]) -> None:
        try:
            await self._settle(batch)
            flight.done.set_result(None)
            ack()
        except (Abandoned, asyncio.CancelledError):
            pass
        except StateLost as lost:
            asyncio.get_running_loop().call_soon(self._recover, lost, batch)
        except Exception as error:
            self._fatal(error)
        finally:
            if not flight.done.done():
                self._consumer().abandon(batch)
                flight.done.set_exception(Abandoned())
                flight.done.exception()
            lane.remove(flight)
            self._room.release()

    def _recover(self, lost: StateLost, batch: Batch) -> None:
        task = asyncio.ensure_future(self._lost(lost, batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, batch: Batch) -> None:
        """Handle a batch, waiting out a part that is unavailable for as long as the partition is ours."""
        failures = 0
        while True:
            try:
                report = await handle(batch, self._counting(batch), self.ports, self.policy, self.topics)
            except (StateLost, Unauthorized, Abandoned, TooManyBad):
                raise
            except Unavailable as error:
                failures += 1
                pause = round(Retry().pause(failures), 2)
                log.warning(
                    "waiting", batch=batch.watermark_key, base=batch.base, reason=clean(str(error)), seconds=pause
                )
                await asyncio.sleep(pause)
                batch = replace(batch, again=True)
                consumer = self._consumer()
                if self._stopping or not consumer.flow_active or not consumer.current(batch):
                    raise Abandoned from error
            except Exception:
                log.exception("step_failed", batch=batch.watermark_key, base=batch.base, records=len(batch.records))
                await self._divide(batch)
                return
            else:
                self._observe(self.agent, report, batch)
                return

    async def _recall(self, batch: Batch) -> None:
        """The first batch since we took the partition: if it begins with bad records, those right before it count too.
        Else a worker that is started again and again would drain the topic after all, a few records each time."""
        tp = TP(batch.topic, batch.partition)
        if tp in self._bad and self._bad[tp][0] == batch.generation:
            return
        streak = 0
        now = self.ports.clock.now_ms()
        if batch.base and self._tail(batch.records[:1], self.agent.decode(batch.records[:1], now, self.policy)):
            offsets = range(max(batch.base - self._bad_limit, 0), batch.base)
            with suppress(Unavailable):
                found = await self.ports.records.fetch([(tp.topic, tp.partition, offset) for offset in offsets])
                before = [record for record in found if record is not None]
                streak = self._tail(before, self.agent.decode(before, now, self.policy))
        self._bad[tp] = (batch.generation, batch.base, streak)

    @staticmethod
    def _tail(records: Sequence[Record], out: Decoded[Any]) -> int:
        """How many at the end are bad; replayed dead letters left out."""
        good = max((one.index for one in (*out.items, *out.dropped)), default=-1)
        return sum(replay_id_of(record.headers) is None for record in records[good + 1 :])

    def _counting(self, batch: Batch) -> Agent:
        """The agent with a codec that stops the worker when undecodable records come without end.

        A batch that is repeated counts once. Replayed dead letters don't count: an operator sent them, knowing what
        they are, and a thousand of them must not stop every worker.
        """

        def decode(records: Any, now: int, policy: Policy) -> Decoded[Any]:
            out = self.agent.decode(records, now, policy)
            tp = TP(batch.topic, batch.partition)
            generation, counted, streak = self._bad.get(tp, (batch.generation, -1, 0))
            if generation == batch.generation and batch.end <= counted:
                return out
            if generation != batch.generation or not out.bad:
                streak = 0
            if out.bad:
                tail = self._tail(records, out)
                streak = tail if out.items or out.dropped else streak + tail
            if streak >= self._bad_limit:
                raise TooManyBad(
                    f"{batch.topic}/{batch.partition}: {streak} records in a row can't be decoded, the last at offset "
                    f"{batch.end - 1} ({out.bad[-1].detail}). Stopping rather than draining the topic: mend the "
                    "producer, or raise bad_records_in_a_row"
                )
            self._bad[tp] = (batch.generation, batch.end, streak)
            return out

        return replace(self.agent, decode=decode)

    async def _divide(self, batch: Batch) -> None:
        """Something in the batch breaks us: halve it until one record stands alone, and dead-letter that one."""
        if len(batch.records) > 1:
            middle = len(batch.records) // 2
            first, second = batch.records[:middle], batch.records[middle:]
            for base, part in ((batch.base, first), (first[-1].offset + 1, second)):
                await self._settle(replace(batch, base=base, records=part, floor=min(batch.floor or base, base)))
            return
        agent = replace(self.agent, decode=_broken)
        report = await handle(batch, agent, self.ports, self.policy, self.topics)
        self._observe(agent, report, batch)


def _broken(records: Any, now: int, policy: Policy) -> Decoded[Any]:
    """A codec that can make nothing of anything."""
    found: list[Record] = list(records)
    detail = "handling it failed; the worker's log has the error"
    return Decoded(bad=[Bad(index, Cause.INTERNAL_ERROR, detail) for index in range(len(found))])
