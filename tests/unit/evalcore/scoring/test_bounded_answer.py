"""An answer is read up to a bound, as it was sent and as it is inflated. Requests go the way that the environment
names, and carry nothing that no one gave them."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from aiohttp import web

from evalcore.scoring.calls import CallFailed, Failure
from evalcore.scoring.chat_model import ChatModel
from evalcore.scoring.http_client import LONGEST_ANSWER, HttpClient, TooLong, bounded, way_to
from streams.gates.candidate import CandidateClient
from tests.unit.evalcore.scoring.scoring_rig import asked

MOST = 1_000


async def parts(content: bytes, size: int = 100) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"x" * MOST, ""),
        (b"x" * MOST, "identity"),
        (gzip.compress(b"x" * MOST, mtime=0), "gzip"),
        (zlib.compress(b"x" * MOST), "Deflate"),
    ],
)
async def test_what_fits_is_read_whole(content: bytes, encoding: str) -> None:
    assert await bounded(parts(content), encoding, MOST) == b"x" * MOST


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"x" * (MOST + 1), ""),
        (gzip.compress(b"x" * (MOST + 1), mtime=0), "gzip"),
        (zlib.compress(b"x" * 10**8), "deflate"),
    ],
)
async def test_what_is_longer_is_not_read(content: bytes, encoding: str) -> None:
    with pytest.raises(TooLong):
        await bounded(parts(content), encoding, MOST if len(content) < 10_000 else 200_000)


@pytest.mark.parametrize(("content", "encoding"), [(b"x", "br"), (b"no gzip", "gzip"), (b"x", "gzip, gzip")])
async def test_an_encoding_that_can_not_be_read_is_an_error_of_the_answer(content: bytes, encoding: str) -> None:
    with pytest.raises(httpx.DecodingError):
        await bounded(parts(content), encoding, MOST)


async def test_no_more_is_asked_for_once_it_is_too_long() -> None:
    seen = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal seen
        while True:
            seen += 1
            yield b"x" * 100

    with pytest.raises(TooLong):
        await bounded(endless(), "", MOST)
    assert seen == 11


@pytest.fixture
async def flood() -> AsyncIterator[str]:
    """A server that answers a few bytes of gzip with 100 MB of text, or sends text without end."""
    bomb = gzip.compress(b" " * 100_000_000)

    async def inflates(request: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    async def runs(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b" " * 65_536)

    app = web.Application()
    app.add_routes([web.post("/inflates/{tail:.*}", inflates), web.post("/runs/{tail:.*}", runs)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize("kind", ["inflates", "runs"])
async def test_a_model_that_answers_without_end_gives_no_score_and_takes_no_memory(flood: str, kind: str) -> None:
    async with HttpClient(2, 20.0) as client:
        with pytest.raises(CallFailed, match=f"more than {LONGEST_ANSWER >> 20} MB") as raised:
            await ChatModel(client, f"{flood}/{kind}").complete(asked())
    assert raised.value.kind is Failure.SLIP


@pytest.mark.parametrize("kind", ["inflates", "runs"])
async def test_a_candidate_that_answers_without_end_gives_no_output(flood: str, kind: str) -> None:
    async with HttpClient(2, 20.0) as client:
        found = await CandidateClient(client, f"{flood}/{kind}/x").answer({"input": "hi"})
    assert f"more than {LONGEST_ANSWER >> 20} MB" in str(found)


ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"


class Server:
    """Answers everything, and keeps what was asked."""

    def __init__(self, answer: bytes = ANSWER) -> None:
        self.answer = answer
        self.heads: list[str] = []
        self.port = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(self.answer)
        await writer.drain()
        writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Server]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "NETRC"):
        monkeypatch.delenv(name, raising=False)


async def fetched(url: str) -> bytes:
    async with HttpClient(2, 5.0) as client:
        return (await client.post(url, content=b"?", headers={})).content


async def test_a_proxy_that_the_environment_names_gets_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Server().running() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:word@127.0.0.1:{proxy.port}")
        assert await fetched("http://model.invalid/v1/chat") == b"ok"
    assert proxy.heads[0].startswith("post http://model.invalid/v1/chat http/1.1")
    assert "proxy-authorization: basic dxnlcjp3b3jk" in proxy.heads[0]


async def test_an_address_that_the_environment_takes_out_is_asked_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Server().running() as proxy, Server().running() as model:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert await fetched(f"http://127.0.0.1:{model.port}/v1/chat") == b"ok"
    assert (len(proxy.heads), len(model.heads)) == (0, 1)
    assert model.heads[0].startswith("post /v1/chat http/1.1")


async def test_logins_that_lie_in_a_file_at_home_are_not_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another's `.netrc` would give a model's server a password that no one configured here."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password secret\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with Server().running() as model:
        assert await fetched(f"http://127.0.0.1:{model.port}/") == b"ok"
    assert "authorization" not in model.heads[0]


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async with Server().running() as elsewhere:
        moved = f"HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:{elsewhere.port}/\r\ncontent-length: 2\r\n\r\nno"
        async with Server(moved.encode()).running() as model:
            assert await fetched(f"http://127.0.0.1:{model.port}/") == b"no"
    assert (len(elsewhere.heads), len(model.heads)) == (0, 1)


def test_a_server_that_is_asked_by_https_proves_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:1")
    for url in ("https://model.invalid/v1", "https://other.invalid:8443/"):
        way = way_to(url)
        assert (way["ssl"].verify_mode, way["ssl"].check_hostname) == (ssl.CERT_REQUIRED, True)
        assert way["proxy"] == "http://proxy.invalid:1"
