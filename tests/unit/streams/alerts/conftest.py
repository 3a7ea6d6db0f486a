"""A server that takes notifications, and the client that they are sent with."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from evalcore.scoring.http_client import HttpClient
from tests.unit.streams.alerts.notifier_rig import Server


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    found, app = Server(), web.Application()
    app.router.add_post("/{tail:.*}", found.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield found
    await runner.cleanup()


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    async with HttpClient(8, 30.0, direct=True) as found:
        yield found
