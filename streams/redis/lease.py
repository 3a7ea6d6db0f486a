"""Leases: each has one holder at a time, until the holder releases it or it expires by Redis' own clock.

No worker's clock decides who holds a lease. An owner that asks twice gets the same answer, so a call whose answer was
lost may be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from agents.keys import Key
from agents.ports import Unavailable
from evalcore.stopping import heed_cancel
from streams.retry import Retry, TryAgain

SHORT_LEASE_MS = 3_000
"""Of work that must not stand still long after its worker died. It is renewed while the work lasts."""
LOOK_SECONDS = 0.02
"""Time from one look at another owner's lease to the next."""
TAKING: str = """
local function taken() local holder = redis.call('GET', KEYS[1]) return holder and holder ~= ARGV[1] end
local function take() redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
"""
"""Lua functions for scripts that take a lease and do more in the same step. KEYS[1]: the lease; ARGV: owner, ms."""
ACQUIRE = TAKING + "if taken() then return 0 end take() return 1"
RENEW = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"
RELEASE = """
local given = 0
for i = 1, #KEYS do
  if redis.call('GET', KEYS[i]) == ARGV[1] then given = given + redis.call('DEL', KEYS[i]) end
end
return given
"""


class Lease:
    """The right of one holder to do a thing. Every method raises Unavailable while Redis is out of reach.

    A change of the store that checks `key` for `value` is applied only while this owner holds the lease. `name` is the
    key with its prefix; `call` runs a command with the store's retries.
    """

    def __init__(
        self,
        redis: Any,
        call: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]],
        key: Key,
        name: str,
        milliseconds: int,
        owner: str,
    ) -> None:
        self._redis, self._call, self._name, self._milliseconds = redis, call, name, milliseconds
        self.key, self.value = key, owner.encode()

    async def acquire(self) -> bool:
        """Take the lease for its full duration, if it is free or this owner holds it. Returns True where it is
        taken."""
        return await self._run(ACQUIRE)

    async def renew(self) -> bool:
        """Hold it for its full duration from now; False where it expired, even if no other owner has taken it since."""
        return await self._run(RENEW)

    async def held(self) -> bool:
        """True while this owner holds it."""
        return bool(await self._call(lambda: self._redis.get(self._name)) == self.value)

    async def release(self) -> None:
        """Release it; changes nothing where another owner holds it."""
        await self._run(RELEASE)

    async def _run(self, script: str) -> bool:
        arguments = self.value, self._milliseconds
        return bool(await self._call(lambda: self._redis.eval(script, 1, self._name, *arguments)))


async def acquired(lease: Lease, seconds: float) -> bool:
    """Take the lease as soon as it is free; False where another owner keeps it for so many seconds. Raises
    Unavailable."""

    async def acquire() -> None:
        if not await lease.acquire():
            raise TryAgain("another owner holds the lease")

    try:
        await Retry(first=LOOK_SECONDS, longest=LOOK_SECONDS, seconds=seconds).call(acquire, TryAgain)
    except TryAgain:
        return False
    return True


@asynccontextmanager
async def renewed(lease: Lease, every: float) -> AsyncIterator[asyncio.Task[None]]:
    """Renew the lease every so many seconds inside, however long a call takes: Opik may ask to wait for longer than the
    lease lasts. Gives a task that ends where the lease was lost."""

    async def renew() -> None:
        held = True
        while held:
            await asyncio.sleep(every)
            with suppress(Unavailable):
                held = await lease.renew()
            heed_cancel()

    task = asyncio.create_task(renew(), name="renew-lease")
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
