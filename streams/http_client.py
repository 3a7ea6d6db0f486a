"""Sends HTTP requests over aiohttp, with one set of habits for Opik, judges' models and candidates.

A call takes a third of the event loop's time that httpx takes (DECISIONS.md has the figures).
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from evalcore.scoring.bounded_answer import BoundedAnswer, bounded
from streams.retry import reason_of

if TYPE_CHECKING:
    import aiohttp

PIECE = 65_536


class ModelClient:
    """The client that `evalcore.scoring.chat_model` needs. Sends at most `connections` requests at once. Raises httpx's
    errors. The caller closes it."""

    def __init__(self, connections: int, seconds: float) -> None:
        self._connections, self._seconds = connections, seconds
        self._session: aiohttp.ClientSession | None = None
        self._ways: dict[tuple[str, str], Mapping[str, Any]] = {}

    async def post(self, url: str, *, content: bytes, headers: Mapping[str, str]) -> BoundedAnswer:
        import aiohttp  # here, since a command that finds all answers kept asks nobody

        if self._session is None:  # made at the first request, since it belongs to the loop that runs then
            self._session = open_session(self._connections, self._seconds)
        address = urlsplit(url)
        origin = address.scheme, address.netloc
        if origin not in self._ways:
            self._ways[origin] = way_to(url)
        try:
            async with self._session.post(url, data=content, headers=headers, **self._ways[origin]) as answer:
                encoding = answer.headers.get("content-encoding", "")
                read = await bounded(answer.content.iter_chunked(PIECE), encoding)
                return BoundedAnswer(answer.status, answer.headers, read)
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no answer within {self._seconds:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise httpx.NetworkError(reason_of(error)) from error

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def open_session(connections: int, seconds: float) -> aiohttp.ClientSession:
    """Returns a session of the running loop: at most `connections` requests at once, `seconds` for each. The caller
    closes it."""
    import aiohttp  # here, since a command that finds all answers kept asks nobody

    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections),
        timeout=aiohttp.ClientTimeout(total=seconds),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        headers={"accept-encoding": "gzip"},
    )
    # aiohttp repeats a PUT by itself after a lost connection, and nobody would know that the first may be applied late.
    session._retry_connection = False
    return session


def way_to(url: str) -> Mapping[str, Any]:
    """Returns how an address is reached, as aiohttp's requests take it: through which of the environment's proxies, and
    by which authorities; redirects, which would carry prompts and keys elsewhere, are not followed. Look it up once:
    aiohttp would for each request, on a thread, with a look into `.netrc`, which takes a third of what a call costs."""
    address = urlsplit(url)
    proxy = None if proxy_bypass(address.hostname or "") else getproxies().get(address.scheme)
    secure = "https" in (address.scheme, urlsplit(proxy or "").scheme)
    return {"proxy": proxy, "ssl": _authorities() if secure else True, "allow_redirects": False}


@cache
def _authorities() -> ssl.SSLContext:
    """Reads all authorities, once for a process."""
    return httpx.create_ssl_context()
