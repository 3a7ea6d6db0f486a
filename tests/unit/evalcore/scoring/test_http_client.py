"""Requests go the way that the environment names, and carry nothing that nobody gave them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evalcore.scoring.http_client import HttpClient, way_to

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


async def asked(url: str) -> bytes:
    async with HttpClient(2, 5.0) as client:
        return (await client.post(url, content=b"?", headers={})).content


async def test_a_proxy_that_the_environment_names_gets_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Server().running() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:word@127.0.0.1:{proxy.port}")
        assert await asked("http://model.invalid/v1/chat") == b"ok"
    assert proxy.heads[0].startswith("post http://model.invalid/v1/chat http/1.1")
    assert "proxy-authorization: basic dxnlcjp3b3jk" in proxy.heads[0]


async def test_an_address_that_the_environment_takes_out_is_asked_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Server().running() as proxy, Server().running() as model:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert await asked(f"http://127.0.0.1:{model.port}/v1/chat") == b"ok"
    assert (len(proxy.heads), len(model.heads)) == (0, 1)
    assert model.heads[0].startswith("post /v1/chat http/1.1")


async def test_logins_that_lie_in_a_file_at_home_are_not_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another's `.netrc` would give a model's server a password that nobody configured here."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password secret\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with Server().running() as model:
        assert await asked(f"http://127.0.0.1:{model.port}/") == b"ok"
    assert "authorization" not in model.heads[0]


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async with Server().running() as elsewhere:
        moved = f"HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:{elsewhere.port}/\r\ncontent-length: 2\r\n\r\nno"
        async with Server(moved.encode()).running() as model:
            assert await asked(f"http://127.0.0.1:{model.port}/") == b"no"
    assert (len(elsewhere.heads), len(model.heads)) == (0, 1)


def test_a_server_that_is_asked_by_https_proves_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:1")
    for url in ("https://model.invalid/v1", "https://other.invalid:8443/"):
        way = way_to(url)
        assert (way["ssl"].verify_mode, way["ssl"].check_hostname) == (ssl.CERT_REQUIRED, True)
        assert way["proxy"] == "http://proxy.invalid:1"
