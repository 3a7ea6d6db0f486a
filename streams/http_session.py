"""Sends HTTP requests over aiohttp, with one set of habits for Opik, judges' models and candidates."""

from __future__ import annotations

import ssl
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    import aiohttp


class HttpSession:
    """Sends at most `connections` requests at once and waits at most `seconds` for each. Follows no redirects: they
    would carry prompts and keys elsewhere. Raises aiohttp's errors. The caller closes it.

    It goes through the proxies that the environment names, which aiohttp would look up on a thread for each request,
    with a look into `.netrc`: a third of what a call costs.
    """

    def __init__(self, connections: int, seconds: float) -> None:
        self._connections, self._seconds = connections, seconds
        self._made: aiohttp.ClientSession | None = None
        self._ways: dict[tuple[str, str], Mapping[str, Any]] = {}

    def request(self, method: str, url: str, **more: Any) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """The answer, as long as the context lasts; `more` as aiohttp takes it."""
        return self._session.request(method, url, allow_redirects=False, **self._way(url), **more)

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()

    @property
    def _session(self) -> aiohttp.ClientSession:
        """The session, made at the first request, since it belongs to the loop that runs then, and a command that asks
        nobody need not import what it takes."""
        import aiohttp

        if self._made is None:
            self._made = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                timeout=aiohttp.ClientTimeout(total=self._seconds),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                headers={"accept-encoding": "gzip"},
            )
            # aiohttp repeats a PUT by itself after a lost connection, and nobody would know that the first may be
            # applied late.
            self._made._retry_connection = False
        return self._made

    def _way(self, url: str) -> Mapping[str, Any]:
        address = urlsplit(url)
        origin = address.scheme, address.netloc
        if origin not in self._ways:
            proxy = None if proxy_bypass(address.hostname or "") else getproxies().get(address.scheme)
            secure = "https" in (address.scheme, urlsplit(proxy or "").scheme)
            self._ways[origin] = {"proxy": proxy, "ssl": _authorities() if secure else True}
        return self._ways[origin]


@cache
def _authorities() -> ssl.SSLContext:
    """Reads all authorities, once for a process."""
    return httpx.create_ssl_context()
