"""Opens what commands read of Opik: one vertical's traces, with that vertical's own key and workspace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiolimiter import AsyncLimiter

from agents.own_calls import own_key
from rampgate.registry.verticals import access_of
from rampgate.settings import Settings, revealed
from schemas.verticals import Vertical
from streams.opik.client import OpikClient
from streams.opik.traces import OpikTraces

RETRY_SECONDS = 5.0
"""Somebody waits for the answer, so an Opik that does not answer is told of soon."""


@asynccontextmanager
async def opened(
    settings: Settings,
    owner: Vertical | None,
    *,
    retry_seconds: float = RETRY_SECONDS,
    limiter: AsyncLimiter | None = None,
) -> AsyncIterator[OpikTraces]:
    """Traces, read with the vertical's key, else the operator's. Raises Unauthorized where its key can't be read. Long
    work gives more `retry_seconds`; the setting's bound them. `limiter`: one that it shares with other readers."""
    async with client_of(settings, owner) as client:
        yield OpikTraces(
            client,
            per_minute=settings.opik_lookups_per_minute,
            retry_seconds=min(settings.opik_retry_seconds, retry_seconds),
            own_key=own_key(revealed(settings.seal_key)),
            limiter=limiter,
        )


@asynccontextmanager
async def client_of(settings: Settings, owner: Vertical | None) -> AsyncIterator[OpikClient]:
    """A client with the vertical's key, else the operator's. Raises Unauthorized where its key can't be read."""
    key, workspace = access_of(owner, settings)
    client = OpikClient(settings.opik, workspace, key, settings.opik_timeout_seconds, 1)
    try:
        yield client
    finally:
        await client.close()
