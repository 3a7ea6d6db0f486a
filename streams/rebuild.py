"""Rebuilds a lost state: one worker adopts what Opik holds, and all read their partitions again (promise 1).

Opik is asked at its own rate, so this may take hours. How far it is stands in the state after each page: whoever takes
over, after a crash or a long pause that Opik asked for, goes on there. The join goes on meanwhile: only scores wait
whose trace began before the loss, since of these no one knows yet whether Opik holds them (`Hold`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import msgspec
import structlog
from faust.types import TP

from agents.join.rebuilding import adopt
from agents.join.step import Hold, until_recorded
from agents.keys import ADOPTED, ADOPTING, FOREVER, READ_AGAIN, WATERMARK
from agents.policy import Policy
from agents.ports import Change, Ports, Store, Unavailable
from schemas.dead_letters import clean
from streams.opik.traces import FIRST_PLACE, OpikTraces, SearchPlace
from streams.redis.lease import Lease, renewed
from streams.redis.state import RedisStore

log = structlog.get_logger(__name__)
LEASE_MS = 30_000
PAUSE = 0.5
"""Seconds until a rebuild that could not go on is tried again."""
DONE = b"1"
"""What stands in the state once all is adopted."""
NEW_AFTER_MS = 60_000
"""A trace that began so long after a loss was noticed is new: no worker has scored it before. Clocks may differ by as
much."""


class Adoption(msgspec.Struct, frozen=True):
    """How far what Opik holds is adopted, as it stands in the state. `since`: scores of traces from then on are
    adopted; `began`: when the loss was noticed (both ms); `turns`: how many had scores so far."""

    since: int
    began: int
    place: SearchPlace = FIRST_PLACE
    turns: int = 0

    def seconds(self, now: int) -> tuple[int, int | None]:
        """How long it has been going on, and how long it will at this pace; None while no one can tell."""
        taken, share = max(now - self.began, 0) // 1000, self.place.share
        return taken, round(taken / share - taken) if share > 0.0 else None


class ReadAgain(msgspec.Struct, frozen=True):
    """What is read again after a loss: by "topic/partition" the offset up to which, and since when (ms)."""

    until: dict[str, int]
    since: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Adoption).decode
_decode_read_again = msgspec.json.Decoder(ReadAgain).decode


@dataclass(eq=False, repr=False)
class Rebuild:
    """Adopts once after each loss. `hold` is what all steps of this worker obey: while this or another worker adopts
    what Opik holds, or reads settled records again, scores of older traces are not written. Else they would be written
    twice, or one would be written that a later record has overruled long since.

    An error that ends the rebuild goes to `failed`, which must stop the worker; `hold` stays as it is then. `on_change`
    gets how far it is, and None once it is over.
    """

    ports: Ports
    policy: Policy
    failed: Callable[[BaseException], None]
    on_change: Callable[[Adoption | None], None] = lambda adoption: None
    hold: Hold = field(default_factory=Hold)

    def __post_init__(self) -> None:
        self._store = cast(RedisStore, self.ports.store)
        self._lost, self._asked = False, 0
        self._task: asyncio.Task[None] | None = None
        self._seen: Adoption | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def told(self) -> str:
        """What an operator reads of it."""
        if not self.running or self._seen is None:
            return "rebuilding the join state from the topics"
        if self._seen.place.share >= 1.0:
            return "rebuilding the join state from the topics: all that Opik holds is adopted"
        taken, left = self._seen.seconds(self.ports.clock.now_ms())
        return (
            f"rebuilding the join state: {self._seen.place.share:.0%} of what Opik holds is adopted, "
            f"{self._seen.turns} turns in {taken} s" + (f", about {left} s to go" if left is not None else "")
        )

    async def lost(self, partition: TP) -> None:
        """Begin to adopt, since the state of a partition is lost, unless that is under way or done. Raises Unavailable.

        That it has begun stands in the state on return, before any watermark does. So a worker that gets the partition
        later, by a takeover in the middle, knows that it must not write yet, and goes on with the adoption.
        """
        begun = _encode(self._new_adoption())
        await self._store.apply(Change(checks={ADOPTED.key(): b""}, sets={ADOPTED.key(): (begun, FOREVER)}))
        self._lost = True
        self._asked += 1
        self._take_part()

    async def read_again(self, partition: TP, until: int) -> None:
        """Note that records of a partition are read again up to an offset, 0 for none, before its watermark moves.

        Until they are read no worker writes a score of an older trace: one of these records may overrule it. Raises
        Unavailable.
        """

        async def attempt() -> bool | None:
            (held,) = await self._store.read([READ_AGAIN.key()])
            if not held and not until:
                return True
            before = _decode_read_again(held) if held else ReadAgain({}, 0)
            place = f"{partition.topic}/{partition.partition}"
            after = ReadAgain({**before.until, place: until}, self.ports.clock.now_ms())
            change = Change(checks={READ_AGAIN.key(): held}, sets={READ_AGAIN.key(): (_encode(after), FOREVER)})
            return None if await self._store.apply(change) else True

        await until_recorded(attempt)
        if until:
            self._asked += 1
            self._take_part()

    async def join(self) -> bool:
        """Take part in a rebuild that another worker has begun; False where there is none. Raises Unavailable."""
        if not self.running:
            stand, again = await self._store.read([ADOPTED.key(), READ_AGAIN.key()])
            if stand in (b"", DONE) and not (again and await self._waits()):
                return False
            self._take_part()
        return True

    def _take_part(self) -> None:
        """Hold scores of older traces back, from here on, and see the rebuild to its end."""
        self.hold.before, self.hold.project = self.ports.clock.now_ms() + NEW_AFTER_MS, ""
        if not self.running:
            self._task = asyncio.create_task(self._run(), name="rebuild")

    def _new_adoption(self, share: float = 0.0) -> Adoption:
        now = self.ports.clock.now_ms()
        return Adoption(now - self.policy.lookback, now, SearchPlace(share=share))

    async def _stand(self) -> bytes:
        (stand,) = await self._store.read([ADOPTED.key()])
        return stand

    async def _run(self) -> None:
        try:
            while True:
                asked, lost, self._lost = self._asked, self._lost, False
                self._note(self._new_adoption(0.0 if lost else 1.0), None)
                await self._adopt_once(lost)
                waits = await self._waits()
                while waits:
                    await asyncio.sleep(PAUSE)
                    waits = await self._waits()
                if asked == self._asked:
                    break
            self.hold.before = 0
        except Exception as error:
            self.failed(error)
        finally:
            self.on_change(None)

    async def _waits(self) -> bool:
        """Tells whether records are still read again; yes, where no one can tell."""
        try:
            return await self._reads_again() is not None
        except Unavailable as error:
            log.warning("rebuild_waiting", reason=clean(str(error)))
            return True

    async def _reads_again(self) -> ReadAgain | None:
        """What any worker has still to read again of settled records; None where nothing is left."""
        (held,) = await self._store.read([READ_AGAIN.key()])
        if not held:
            return None
        again = _decode_read_again(held)
        if await _unread(self._store, again):
            return again
        over = {READ_AGAIN.key(): (b"", self.ports.clock.now_ms())}
        return again if await self._store.apply(Change(checks={READ_AGAIN.key(): held}, sets=over)) else None

    async def _adopt_once(self, lost: bool) -> None:
        """Return once this or another worker has adopted all. `lost`: there is something to adopt even if the state
        does not say so, since it was lost once more."""
        lease = self._store.lease(ADOPTING.key(), LEASE_MS)
        while True:
            try:
                stand = await self._stand()
                if stand == DONE or not (stand or lost):
                    return
                lost = True
                if stand:
                    self._note(_decode(stand), await self._reads_again())
                if await lease.acquire() and await self._adopt_all(lease):
                    return
            except Unavailable as error:
                log.warning("rebuild_waiting", reason=clean(str(error)))
            await asyncio.sleep(PAUSE)

    async def _adopt_all(self, lease: Lease) -> bool:
        """True once all is adopted; False where the lease is gone by then, since what was adopted is gone with it."""
        stand = await self._stand()  # under the lease: another worker may have come further
        if stand == DONE:
            return True
        adoption = _decode(stand) if stand else self._new_adoption()
        if adoption.place.project:
            log.info("rebuild_goes_on", turns=adoption.turns, share=round(adoption.place.share, 3))
        async with renewed(lease, LEASE_MS / 3_000):
            traces = cast(OpikTraces, self.ports.traces)
            async for page, place in traces.scored(adoption.since, adoption.place):
                turns = adoption.turns + await adopt(page, self.ports, self.policy, adoption.began + NEW_AFTER_MS)
                adoption = msgspec.structs.replace(adoption, place=place, turns=turns)
                if not await self._apply(lease, _encode(adoption)):
                    raise Unavailable("the state was lost again while it was rebuilt, or another worker goes on")
                self._note(adoption, await self._reads_again())
            if not await self._apply(lease, DONE):
                return False
        await lease.release()
        log.info("rebuild_adopted", turns=adoption.turns, seconds=adoption.seconds(self.ports.clock.now_ms())[0])
        return True

    async def _apply(self, lease: Lease, stand: bytes) -> bool:
        """Note how far it is; False, and nothing noted, where this worker no longer holds the lease."""
        return not await self._store.apply(
            Change(checks={lease.key: lease.value}, sets={ADOPTED.key(): (stand, FOREVER)})
        )

    def _note(self, adoption: Adoption, again: ReadAgain | None) -> None:
        """Show how far it is. Turns of projects that are adopted may be written, once all records were read again."""
        self._seen = adoption
        self.hold.before = max(adoption.began, again.since if again is not None else 0) + NEW_AFTER_MS
        self.hold.project = adoption.place.project if again is None else ""
        self.on_change(adoption)


async def rebuilding(store: Store) -> str:
    """What workers have still to do to a lost state, in words; "" where it is whole. For processes that take no part in
    it, and must not write scores meanwhile. Raises Unavailable."""
    stand, again = await store.read([ADOPTED.key(), READ_AGAIN.key()])
    if stand not in (b"", DONE):
        return f"the join state is being rebuilt: {_decode(stand).place.share:.0%} of what Opik holds is adopted"
    if again and await _unread(store, _decode_read_again(again)):
        return "the join state is being rebuilt: workers read settled records again"
    return ""


async def _unread(store: Store, again: ReadAgain) -> bool:
    """Whether any partition is not yet read up to its offset."""
    marks = await store.read([WATERMARK.key(*place.rsplit("/", 1)) for place in again.until])
    return any(int(mark or 0) < at for mark, at in zip(marks, again.until.values(), strict=True))
