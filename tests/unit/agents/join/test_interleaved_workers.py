"""Batches, look-ups and the writing of what was withheld run at once, and workers die: in whatever order their reads,
writes and records fall, Opik ends as the events say (promises 1 and 2)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import zlib
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from agents.join.batches import Batch, handle
from agents.join.turn import decode_turn, has_withheld
from agents.keys import FOREVER
from schemas.outcomes import Kind
from tests.unit.agents.builders import MINUTE, NOW, SECOND, found_trace, reroll, thumb, trace
from tests.unit.agents.join.recounting import recount
from tests.unit.agents.join.world import AGENTS, World

PLACES = [(kind, partition) for kind in (Kind.THUMBS, Kind.REROLL, Kind.TRACE) for partition in (0, 1)]
Event = tuple[Kind, dict[str, Any]]


class Slow:
    """A port whose every call lets others run before and after it, for a seeded number of turns of the loop."""

    def __init__(self, part: Any, dice: random.Random) -> None:
        self._part, self._dice = part, dice

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)
        return method if name == "turns" else lambda *args: self._within(partial(method, *args))

    async def _within(self, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        try:
            await pause(self._dice)
        except asyncio.CancelledError:
            if self._dice.random() < 0.5:  # sent by a worker that died before it had the answer
                with contextlib.suppress(StopIteration):
                    call().send(None)
            raise
        answer = await call()
        await pause(self._dice)
        return answer


async def pause(dice: random.Random) -> None:
    for _ in range(dice.choice((0, 1, 2, 3, 12, 40))):
        await asyncio.sleep(0)


def traffic(dice: random.Random) -> list[Event]:
    """The events of a few turns, some twice, in an order of arrival."""
    placed: list[tuple[float, Event]] = []
    for number in range(dice.randint(1, 6)):
        rid, session = f"r{number}", {"session": f"s{number}", "said": f"question {number}"}
        judges = ("helpfulness",) if number % 2 else ()
        events = [(Kind.TRACE, trace(rid, NOW + 5 * SECOND, started=NOW, judges=judges, **session))]
        for sequence in range(1, dice.choice((1, 2, 2, 3))):
            events.append((Kind.THUMBS, thumb(rid, dice.choice(("up", "down")), NOW + sequence * SECOND)))
        if (roll := dice.random()) < 0.6:
            events.append((Kind.TRACE, trace(f"{rid}-again", NOW + MINUTE, **session)))
        elif roll < 0.75:
            events.append((Kind.REROLL, reroll(rid)))
        events += [event for event in events if dice.random() < 0.4]
        placed += [(number * 2 + dice.random() * 10, event) for event in events]
    return [event for _, event in sorted(placed, key=lambda one: one[0])]


class Workers:
    """A world of two partitions a topic, and one worker after the other."""

    def __init__(self, seed: int) -> None:
        self.dice, self.world = random.Random(seed), World()
        ports = self.world.ports
        slow: dict[str, Any] = {name: Slow(getattr(ports, name), self.dice) for name in ("store", "scores", "traces")}
        self.world.ports = replace(ports, **slow)
        self.doubted: dict[tuple[Kind, int], int] = {}
        for kind, partition in PLACES:
            self.world.logs[kind, partition] = []
            self.world.store.values[self._batch(kind, partition, 0, 1).watermark_key] = (b"0", FOREVER)

    def send(self, events: list[Event]) -> None:
        for kind, event in events:
            self.world.send(kind, event, partition=zlib.crc32(event["response_id"].encode()) % 2)

    def _batch(self, kind: Kind, partition: int, base: int, count: int) -> Batch:
        topic, log = self.world.topics.of(kind), self.world.logs[kind, partition]
        return Batch(topic, partition, base, log[base : base + count])

    async def lane(self, kind: Kind, partition: int) -> None:
        """Handle a partition's batches, several at once; each is recorded after the one before."""
        world, agent, flights, before = self.world, AGENTS[kind], [], None
        at = floor = int(world.store.values[self._batch(kind, partition, 0, 1).watermark_key][0])
        while at < len(world.logs[kind, partition]):
            batch = self._batch(kind, partition, at, self.dice.choice((1, 2, 3, 8)))
            doubtful = at < self.doubted.get((kind, partition), 0)

            async def handle_one(
                batch: Batch = batch, before: asyncio.Task[None] | None = before, doubtful: bool = doubtful
            ) -> None:
                async def earlier_recorded() -> None:
                    if before is not None:
                        await asyncio.shield(before)

                decoded = agent.decode(batch.records, world.clock.ms, world.policy)
                more: dict[str, Any] = {"doubtful": doubtful, "floor": floor, "earlier_recorded": earlier_recorded}
                await handle(batch, decoded, agent, world.ports, world.policy, world.topics, **more)

            before = asyncio.create_task(handle_one())
            flights.append(before)
            at = batch.end
            await pause(self.dice)
        await asyncio.gather(*flights)

    async def look_ups(self) -> None:
        while True:
            await pause(self.dice)
            self.world.clock.ms += self.dice.choice((0, 100, 300))
            await self.world.due()

    async def write_withheld(self) -> None:
        while self.world.policy.write:
            await pause(self.dice)
            async for page in self.world.store.turns():
                if rids := [rid for rid, stored in page if has_withheld(decode_turn(stored))]:
                    await self.world.revisit(*rids)

    async def work(self, write: bool, steps: int | None) -> None:
        """A worker that dies after so many turns of the loop, or that ends what there is."""
        self.world.switch(write=write)
        lanes = asyncio.gather(*(self.lane(*place) for place in PLACES))
        others = [asyncio.create_task(self.look_ups()), asyncio.create_task(self.write_withheld())]
        if steps is None:
            await lanes
        for _ in range(2_000 if steps is None else steps):
            await asyncio.sleep(0)
        alive = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        failed = [task.exception() for task in others if task.done()]
        for task in alive:
            task.cancel()
        await asyncio.gather(lanes, *alive, return_exceptions=True)
        assert not any(failed), failed
        self.doubted = {place: len(log) for place, log in self.world.logs.items()}


SEEDS = [range(at, at + 50) for at in range(0, 4_000, 50)]


@pytest.mark.parametrize("writing_workers_die", [False, True])
@pytest.mark.parametrize(
    "seeds", [SEEDS[0], *(pytest.param(some, marks=pytest.mark.slow) for some in SEEDS[1:])], ids=str
)
async def test_whatever_runs_at_once_and_dies_opik_ends_as_the_events_say(
    seeds: range, writing_workers_die: bool
) -> None:
    """At once where only workers died that write nothing; once no late write can come where others died, too."""
    for seed in seeds:
        workers = Workers(seed)
        dice, world, events = workers.dice, workers.world, traffic(random.Random(seed))
        rids = {event["response_id"] for kind, event in events if kind is Kind.TRACE}
        world.traces.known |= {
            rid: found_trace(rid, NOW + 5 * SECOND) for rid in rids if dice.random() < 0.7 and "again" not in rid
        }
        cuts = sorted(dice.randint(0, len(events)) for _ in range(dice.randint(0, 3)))
        for start, end in zip([0, *cuts], cuts, strict=False):
            workers.send(events[start:end])
            await workers.work(writing_workers_die and dice.random() < 0.5, dice.randint(1, 300))
        workers.send(events[cuts[-1] if cuts else 0 :])
        await workers.work(True, None)
        if writing_workers_die:
            await world.age(world.policy.doubt + MINUTE)
        assert world.scores.held == recount(events).scores, f"seed {seed}"
