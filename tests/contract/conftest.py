"""A local Opik in the test's own loop."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from rampgate.local.opik.server import start
from tests.contract.opik.scripted_opik import ScriptedOpik


@pytest.fixture
async def opik() -> AsyncIterator[ScriptedOpik]:
    """Empty, ours alone, in memory."""
    running = await start(faults=True)
    async with httpx.AsyncClient(timeout=20) as http:
        yield ScriptedOpik(running.url, http)
    await running.close()
