"""Opens HTTP sessions of aiohttp, with one set of habits for Opik, judges' models and candidates."""

from __future__ import annotations

import ssl
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp


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
