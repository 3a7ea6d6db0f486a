"""Sends HTTP requests over aiohttp, with one set of habits for Opik, judges' models, candidates, GitHub and notices.

A call takes a third of the event loop's time that httpx takes (DECISIONS.md has the figures); httpx's errors say what
failed. Answers are read up to a bound, as they are sent and once inflated: another's server does not decide what memory
we take. An edge.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

if TYPE_CHECKING:
    import aiohttp

LONGEST_ANSWER: Final = 4 * 1024 * 1024
"""Bytes of one answer."""
LONGEST_ERROR: Final = 65_536
"""Bytes of an answer that is no 2xx; a longer one is cut off."""
PIECE: Final = 65_536
_INFLATES = frozenset({"gzip", "deflate"})
_ZLIB_OR_GZIP = zlib.MAX_WBITS | 32


class TooLong(httpx.TransportError):
    """The answer has more bytes than are read; another try would not mend it."""


@dataclass(frozen=True)
class BoundedAnswer:
    """`headers` finds names in any case."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes


class HttpClient:
    """Sends at most `connections` requests at once, each within `seconds`, and reads answers up to `longest` bytes. No
    redirect is followed, which would carry prompts and keys elsewhere. `direct`: through no proxy of the environment.

    Raises TooLong for a longer 2xx, and httpx's errors: ConnectError where nothing was sent. The caller closes it.
    """

    def __init__(
        self, connections: int, seconds: float, longest: int = LONGEST_ANSWER, *, direct: bool = False
    ) -> None:
        self._connections, self._seconds, self._longest, self._direct = connections, seconds, longest, direct
        self._session: aiohttp.ClientSession | None = None
        self._ways: dict[tuple[str, str], Mapping[str, Any]] = {}

    async def post(self, url: str, *, content: bytes, headers: Mapping[str, str]) -> BoundedAnswer:
        return await self.send("POST", url, content=content, headers=headers)

    async def send(
        self, method: str, url: str, *, content: bytes | None = None, headers: Mapping[str, str],
        query: Mapping[str, str | int] | None = None,
    ) -> BoundedAnswer:  # fmt: skip
        import aiohttp  # here, since a command that finds all answers kept asks no one

        if self._session is None:  # made at the first request, since it belongs to the loop that runs then
            self._session = _session(self._connections, self._seconds)
        address = urlsplit(url)
        origin = address.scheme, address.netloc
        if origin not in self._ways:
            self._ways[origin] = way_to(url, direct=self._direct)
        try:
            async with self._session.request(
                method, url, data=content, headers=headers, params=query, **self._ways[origin]
            ) as answer:
                return BoundedAnswer(answer.status, answer.headers, await self._content(answer))
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no answer within {self._seconds:g} s") from error
        except aiohttp.ClientConnectorError as error:
            raise httpx.ConnectError(_text(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise httpx.NetworkError(_text(error)) from error

    async def _content(self, answer: aiohttp.ClientResponse) -> bytes:
        """The content of a 2xx, or the beginning of another. Raises TooLong."""
        encoding, parts = answer.headers.get("content-encoding", ""), answer.content.iter_chunked(PIECE)
        if 200 <= answer.status < 300:
            return await bounded(parts, encoding, self._longest)
        head = bytearray()
        async for part in parts:
            head += part
            if len(head) >= LONGEST_ERROR:
                break
        return beginning(bytes(head[:LONGEST_ERROR]), encoding, LONGEST_ERROR)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _session(connections: int, seconds: float) -> aiohttp.ClientSession:
    import aiohttp

    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections),
        timeout=aiohttp.ClientTimeout(total=seconds),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        headers={"accept-encoding": "gzip"},
    )
    # aiohttp repeats a PUT by itself after a lost connection, and the first may be applied late, unseen.
    session._retry_connection = False
    return session


def way_to(url: str, *, direct: bool = False) -> Mapping[str, Any]:
    """Returns how an address is reached, as aiohttp's requests take it: through which of the environment's proxies, and
    by which authorities. Look it up once: aiohttp would for each request, on a thread, with a look into `.netrc`, which
    takes a third of what a call costs."""
    address = urlsplit(url)
    proxy = None if direct or proxy_bypass(address.hostname or "") else getproxies().get(address.scheme)
    secure = "https" in (address.scheme, urlsplit(proxy or "").scheme)
    return {"proxy": proxy, "ssl": _authorities() if secure else True, "allow_redirects": False}


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


@cache
def _authorities() -> ssl.SSLContext:
    """Reads all authorities, once for a process."""
    return httpx.create_ssl_context()


async def bounded(parts: AsyncIterable[bytes], encoding: str, most: int = LONGEST_ANSWER) -> bytes:
    """Returns the content of an answer, whose `parts` come as they were sent, in this Content-Encoding.

    Raises TooLong as soon as there is more, and httpx's DecodingError for an encoding that was not asked for.
    """
    read = bytearray()
    async for part in parts:
        read += part
        if len(read) > most:
            raise TooLong(f"more than {most} bytes")
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return bytes(read)
    if encoding not in _INFLATES:
        raise httpx.DecodingError("the answer has an encoding that was not asked for")
    try:
        content = zlib.decompressobj(_ZLIB_OR_GZIP).decompress(bytes(read), most + 1)
    except zlib.error as error:
        raise httpx.DecodingError("the answer is not what its encoding says") from error
    if len(content) > most:
        raise TooLong(f"more than {most} bytes once inflated")
    return content


def beginning(read: bytes, encoding: str, most: int) -> bytes:
    """Returns the first bytes of a content of which only the first bytes were read; none where they can't be told."""
    if encoding.strip().lower() not in _INFLATES:
        return read[:most]
    try:
        return zlib.decompressobj(_ZLIB_OR_GZIP).decompress(read, most)
    except zlib.error:
        return b""
