"""The notifiers' HTTP client: made when something is to be told, not at a worker's start."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from rampgate.worker.live_judging import AlertClient
from tests.root import ROOT


async def test_all_who_ask_get_one_client_which_follows_no_redirects_and_is_closed() -> None:
    client = AlertClient()
    await client.close()
    first, second = await asyncio.gather(client(), client())
    assert first is second
    assert not first.follow_redirects
    await client.close()
    assert first.is_closed


def test_without_a_message_httpx_loads_no_transport() -> None:
    program = "import sys; from rampgate.worker.live_judging import AlertClient; AlertClient(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "httpcore._async" not in done.stdout.split()
