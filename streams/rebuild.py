"""Rebuilds a lost state: one worker adopts what Opik holds, and all read their partitions again (promise 1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import structlog
from faust.types import TP

from agents.join.rebuilding import adopt
from agents.keys import ADOPTED, ADOPTING, FOREVER
from agents.policy import Policy
from agents.ports import Change, Ports, Unavailable
from streams.opik.traces import OpikTraces
from streams.redis.lease import Lease, LeasingStore

log = structlog.get_logger(__name__)
LEASE_MS = 30_000
PAUSE = 0.5
"""Seconds until a rebuild that could not go on is tried again."""


class Rebuild:
    """Adopts once after each loss. `ready` holds every batch back until this or another worker has adopted what Opik
    holds: without that, scores would be written twice.

    An error that ends the rebuild goes to `failed`, which must stop the worker; `ready` does not return then.
    """

    def __init__(
        self,
        ports: Ports,
        policy: Policy,
        failed: Callable[[BaseException], None],
        on_change: Callable[[bool], None] = lambda running: None,
    ) -> None:
        self._ports, self._policy, self._failed, self._on_change = ports, policy, failed, on_change
        self._complete = asyncio.Event()
        self._complete.set()
        self.ready = self._complete.wait
        self._store = cast(LeasingStore, ports.store)
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def lost(self, partition: TP) -> None:
        """Begin to adopt, since the state of a partition is lost, unless that is under way."""
        if not self.running:
            self._complete.clear()
            self._on_change(True)
            self._task = asyncio.create_task(self._adopt(), name="rebuild")

    async def _adopt(self) -> None:
        try:
            await self._adopt_once()
            self._complete.set()
        except Exception as error:
            self._failed(error)
        finally:
            self._on_change(False)

    async def _adopt_once(self) -> None:
        lease = self._store.lease(ADOPTING.key(), LEASE_MS)
        while True:
            try:
                if any(await self._store.read([ADOPTED.key()])):
                    return
                if await lease.acquire() and await self._adopt_all(lease):
                    return
            except Unavailable as error:
                log.warning("rebuild_waiting", reason=str(error))
            await asyncio.sleep(PAUSE)

    async def _adopt_all(self, lease: Lease) -> bool:
        """True once all is adopted; False where the lease is gone by then, since what was adopted is gone with it."""
        since = self._ports.clock.now_ms() - self._policy.lookback
        adopted = 0
        async for page in cast(OpikTraces, self._ports.traces).scored(since):
            adopted += await adopt(page, self._ports, self._policy)
            if not await lease.renew():
                raise Unavailable("the state was lost again while it was rebuilt: adopting anew")
        done = Change(checks={lease.key: lease.value}, sets={ADOPTED.key(): (b"1", FOREVER)})
        if await self._store.apply(done):
            return False
        await lease.release()
        log.info("rebuild_adopted", turns=adopted)
        return True
