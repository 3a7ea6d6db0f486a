"""Makes the client of a Redis URL: of the server that it names, or of the master that its Sentinels name."""

from __future__ import annotations

from typing import Any

import redis.asyncio as aioredis
from redis.asyncio.retry import Retry as RedisRetry
from redis.asyncio.sentinel import Sentinel as RedisSentinel
from redis.backoff import NoBackoff

from schemas.settings import SentinelUrl, read_sentinel_url

HEALTH_CHECK_SECONDS = 30
Sentinel: Any = RedisSentinel
"""Its constructor is published without types."""


def client_of(url: str, timeout: float) -> Any:
    """A client that connects on first use, and anew to wherever the master is then."""
    waits: dict[str, Any] = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    address = read_sentinel_url(url)
    if address is None:
        return aioredis.Redis.from_url(url, **waits, health_check_interval=HEALTH_CHECK_SECONDS)
    return _master(address, waits)


async def close_client(client: Any) -> None:
    """Close its connections, and those to the Sentinels where there are some."""
    sentinel = getattr(client.connection_pool, "sentinel_manager", None)
    await client.aclose()
    if sentinel is not None:
        await sentinel.aclose()


def _master(address: SentinelUrl, waits: dict[str, Any]) -> Any:
    secured: dict[str, Any] = {"ssl": True} if address.tls else {}
    login = {"username": address.user, "password": address.password}
    # A Sentinel that is away is asked once: the next one is at hand, and the store's own tries follow.
    asking: dict[str, Any] = {**waits, **secured, "retry": RedisRetry(NoBackoff(), 0)}
    if address.sentinel_auth:
        asking |= login
    sentinel = Sentinel(address.sentinels, sentinel_kwargs=asking)
    return sentinel.master_for(
        address.service, db=address.database, health_check_interval=HEALTH_CHECK_SECONDS, **waits, **secured, **login
    )
