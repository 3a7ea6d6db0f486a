"""Opens what commands read of Opik: one vertical's traces, with that vertical's own key and workspace."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiolimiter import AsyncLimiter

from agents.own_calls import own_key
from rampgate.registry.verticals import access_of
from rampgate.settings import Settings, hide_password, revealed
from schemas.dead_letters import clean
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
    tells: bool = False,
) -> AsyncIterator[OpikTraces]:
    """Traces, read with the vertical's key, else the operator's. Raises Unauthorized where its key can't be read. Long
    work gives more `retry_seconds`; the setting's bound them. `limiter`: one that it shares with other readers. With
    `tells`, people learn on stderr that it waits, and for what."""
    seconds = min(settings.opik_retry_seconds, retry_seconds)

    def waits(why: str) -> None:
        where = clean(hide_password(settings.opik), 200)
        with suppress(OSError):
            sys.stderr.write(f"waiting for Opik at {where}, up to {seconds:g} s: {clean(why, 300)}\n")
            sys.stderr.flush()

    async with client_of(settings, owner) as client:
        yield OpikTraces(
            client,
            per_minute=settings.opik_lookups_per_minute,
            retry_seconds=seconds,
            own_key=own_key(revealed(settings.seal_key)),
            limiter=limiter,
            waits=waits if tells else lambda why: None,
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
