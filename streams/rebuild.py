"""Rebuilds a lost state: one worker adopts what Opik holds, and all read their partitions again (promise 1).

Opik is asked at its own rate, so this may take hours. How far it is stands in the state after each page: whoever takes
over, after a crash or a long pause that Opik asked for, goes on there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

import msgspec
import structlog
from faust.types import TP

from agents.join.rebuilding import adopt
from agents.keys import ADOPTED, ADOPTING, FOREVER
from agents.policy import Policy
from agents.ports import Change, Ports, Unavailable
from schemas.dead_letters import clean
from streams.opik.traces import FIRST_PLACE, OpikTraces, SearchPlace
from streams.redis.lease import Lease, LeasingStore
from streams.stopping import heed_cancel

log = structlog.get_logger(__name__)
LEASE_MS = 30_000
PAUSE = 0.5
"""Seconds until a rebuild that could not go on is tried again."""
DONE = b"1"
"""What stands in the state once all is adopted."""


class Adoption(msgspec.Struct, frozen=True):
    """How far what Opik holds is adopted, as it stands in the state. `since`: scores of traces from then on are
    adopted; `began`: when the loss was noticed (both ms); `turns`: how many had scores so far."""

    since: int
    began: int
    place: SearchPlace = FIRST_PLACE
    turns: int = 0

    def seconds(self, now: int) -> tuple[int, int | None]:
        """How long it has been going on, and how long it will at this pace; None while nobody can tell."""
        taken, share = max(now - self.began, 0) // 1000, self.place.share
        return taken, round(taken / share - taken) if share > 0.0 else None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Adoption).decode


class Rebuild:
    """Adopts once after each loss. `ready` holds every batch back until this or another worker has adopted what Opik
    holds: without that, scores would be written twice.

    An error that ends the rebuild goes to `failed`, which must stop the worker; `ready` does not return then.
    `on_change` gets how far it is, and None once it is over.
    """

    def __init__(
        self,
        ports: Ports,
        policy: Policy,
        failed: Callable[[BaseException], None],
        on_change: Callable[[Adoption | None], None] = lambda adoption: None,
    ) -> None:
        self._ports, self._policy, self._failed, self._on_change = ports, policy, failed, on_change
        self._complete = asyncio.Event()
        self._complete.set()
        self.ready = self._complete.wait
        self._store = cast(LeasingStore, ports.store)
        self._task: asyncio.Task[None] | None = None
        self._seen: Adoption | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def told(self) -> str:
        """What an operator reads of it."""
        if not self.running or self._seen is None:
            return "rebuilding the join state from the topics"
        taken, left = self._seen.seconds(self._ports.clock.now_ms())
        return (
            f"rebuilding the join state: {self._seen.place.share:.0%} of what Opik holds is adopted, "
            f"{self._seen.turns} turns in {taken} s" + (f", about {left} s to go" if left is not None else "")
        )

    async def lost(self, partition: TP) -> None:
        """Begin to adopt, since the state of a partition is lost, unless that is under way or done.

        That it has begun stands in the state on return, before any watermark does. So a worker that gets the partition
        later, by a takeover in the middle, knows that it must not write yet, and goes on with the adoption.
        """
        now = self._ports.clock.now_ms()
        begun = _encode(Adoption(now - self._policy.lookback, now))
        await self._store.apply(Change(checks={ADOPTED.key(): b""}, sets={ADOPTED.key(): (begun, FOREVER)}))
        self._take_part()

    async def join(self) -> None:
        """Take part in a rebuild that another worker has begun, if there is one. Raises Unavailable."""
        if not self.running and await self._stand() not in (b"", DONE):
            self._take_part()

    def _take_part(self) -> None:
        if not self.running:
            self._complete.clear()
            self._task = asyncio.create_task(self._adopt(), name="rebuild")

    async def _stand(self) -> bytes:
        (stand,) = await self._store.read([ADOPTED.key()])
        return stand

    async def _adopt(self) -> None:
        now = self._ports.clock.now_ms()
        self._note(Adoption(now - self._policy.lookback, now))
        try:
            await self._adopt_once()
            self._complete.set()
        except Exception as error:
            self._failed(error)
        finally:
            self._on_change(None)

    async def _adopt_once(self) -> None:
        """Return once this or another worker has adopted all."""
        lease = self._store.lease(ADOPTING.key(), LEASE_MS)
        while True:
            try:
                stand = await self._stand()
                if stand == DONE:
                    return
                if stand:
                    self._note(_decode(stand))
                if await lease.acquire() and await self._adopt_all(lease):
                    return
            except Unavailable as error:
                log.warning("rebuild_waiting", reason=clean(str(error)))
            await asyncio.sleep(PAUSE)

    async def _adopt_all(self, lease: Lease) -> bool:
        """True once all is adopted; False where the lease is gone by then, since what was adopted is gone with it."""
        now = self._ports.clock.now_ms()
        stand = await self._stand()  # under the lease: another worker may have come further
        if stand == DONE:
            return True
        adoption = _decode(stand) if stand else Adoption(now - self._policy.lookback, now)
        if adoption.place != FIRST_PLACE:
            log.info("rebuild_goes_on", turns=adoption.turns, share=round(adoption.place.share, 3))
        async with renewed(lease):
            traces = cast(OpikTraces, self._ports.traces)
            async for page, place in traces.scored(adoption.since, adoption.place):
                turns = adoption.turns + await adopt(page, self._ports, self._policy)
                adoption = msgspec.structs.replace(adoption, place=place, turns=turns)
                if not await self._apply(lease, _encode(adoption)):
                    raise Unavailable("the state was lost again while it was rebuilt, or another worker goes on")
                self._note(adoption)
            if not await self._apply(lease, DONE):
                return False
        await lease.release()
        log.info("rebuild_adopted", turns=adoption.turns, seconds=adoption.seconds(self._ports.clock.now_ms())[0])
        return True

    async def _apply(self, lease: Lease, stand: bytes) -> bool:
        """Note how far it is; False, and nothing noted, where this worker no longer holds the lease."""
        return not await self._store.apply(
            Change(checks={lease.key: lease.value}, sets={ADOPTED.key(): (stand, FOREVER)})
        )

    def _note(self, adoption: Adoption) -> None:
        self._seen = adoption
        self._on_change(adoption)


@asynccontextmanager
async def renewed(lease: Lease) -> AsyncIterator[None]:
    """Renew the lease inside, however long a call takes: Opik may ask to wait for longer than the lease lasts."""

    async def renew() -> None:
        while True:
            await asyncio.sleep(LEASE_MS / 3_000)
            with suppress(Unavailable):
                await lease.renew()
            heed_cancel()

    task = asyncio.create_task(renew(), name="rebuild-lease")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
