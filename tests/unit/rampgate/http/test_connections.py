"""Connections that ask nothing keep no one out, and probes may have a port of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import ClientSession, web

from rampgate.http import connections, server
from rampgate.http.connections import bound
from rampgate.http.routes import Routes, Side
from rampgate.http.server import Listening, listen
from rampgate.settings import Settings, SettingsError
from schemas.answers import Health
from streams.metrics import Metrics

GOOD = Health(ok=True, reasons=[], checks={})
MOST = 8
HALF = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
Start = Callable[..., Coroutine[Any, Any, Listening]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    opened: list[Listening] = []

    async def begin(**settings: Any) -> Listening:
        opened.append(
            await listen(Settings(http="127.0.0.1:0", **settings), Side(Metrics(), lambda: GOOD, lambda: GOOD))
        )
        return opened[-1]

    yield begin
    for one in opened:
        await one.close()


async def half_open(url: str, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    out = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(HALF)
        out.append((reader, writer))
    await asyncio.sleep(0.05)
    return out


async def asked(url: str, seconds: float = 5.0) -> int:
    async with ClientSession() as client, asyncio.timeout(seconds), client.get(url) as answer:
        return answer.status


async def test_half_open_connections_do_not_starve_a_probe(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", MOST)
    listening = await start()
    held = await half_open(listening.url, 5 * MOST)
    for _ in range(3):
        assert await asked(f"{listening.url}/livez") == 200
    gone = [reader.at_eof() or reader.exception() is not None for reader, _ in held]
    assert gone.count(False) <= MOST
    assert not any(gone[-MOST // 2 :]), "the oldest make room"
    for _, writer in held:
        writer.close()


async def test_a_request_that_comes_too_slowly_is_ended(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time; the headers as a whole don't."""
    monkeypatch.setattr(server, "SECONDS_FOR_A_REQUEST", 0.3)
    listening = await start()
    ((reader, writer),) = await half_open(listening.url, 1)

    async def drip() -> None:
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    async with asyncio.timeout(30):
        with suppress(ConnectionResetError):  # closed while bytes of ours are unread
            assert await reader.read() == b""
    dripping.cancel()
    writer.close()


async def test_a_connection_that_is_worked_for_is_not_closed_for_another(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, waiting = asyncio.Event(), asyncio.Semaphore(0)

    def slow_routes(side: Side) -> Routes:
        async def slow(request: web.Request) -> web.Response:
            waiting.release()
            await release.wait()
            return web.Response(text="done")

        return [web.get("/slow", slow)]

    monkeypatch.setattr("rampgate.http.routes.ENDPOINTS", [slow_routes])
    monkeypatch.setattr(connections, "MOST", 2)
    listening = await start()
    working = [asyncio.create_task(asked(f"{listening.url}/slow")) for _ in range(2)]
    for _ in working:
        await waiting.acquire()
    ((reader, writer),) = await half_open(listening.url, 1)
    async with asyncio.timeout(5):
        with suppress(ConnectionResetError):
            assert await reader.read() == b"", "none is idle, so the new one is refused"
    writer.close()
    release.set()
    assert await asyncio.gather(*working) == [200, 200]
    assert waiting.locked(), "neither had to be asked again, as a client does whose connection was closed"


async def test_probes_have_a_port_of_their_own_where_one_is_named(start: Start) -> None:
    listening = await start(http_probes="127.0.0.1:0")
    assert listening.probes is not None
    assert listening.probes != listening.url
    assert await asked(f"{listening.probes}/livez") == 200
    assert await asked(f"{listening.probes}/readyz") == 200
    assert await asked(f"{listening.probes}/metrics") == 404
    assert await asked(f"{listening.url}/livez") == 200


async def test_a_port_for_probes_that_can_not_be_had_is_named(start: Start) -> None:
    taken = (await start()).url.removeprefix("http://")
    with pytest.raises(SettingsError, match=r"http_probes: can't listen on .*RAMPGATE_HTTP_PROBES"):
        await start(http_probes=taken)


def test_the_bound_leaves_descriptors_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    for allowed, most in ((64, 16), (1024, 256), (1 << 20, 256), (2, 1), (connections.resource.RLIM_INFINITY, 256)):
        monkeypatch.setattr(connections.resource, "getrlimit", lambda which, allowed=allowed: (allowed, allowed))
        assert bound() == most
