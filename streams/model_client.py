"""The worker's HTTP client for calls to a judges' model: httpx, as evalcore.scoring.chat wants it, over aiohttp.

A call costs the event loop a quarter of what httpx's own connections cost it (DECISIONS.md has the figures); a worker's
loop has other things to do.
"""

from __future__ import annotations

import aiohttp
import httpx


def make_client(connections: int, seconds: float) -> httpx.AsyncClient:
    """For at most so many calls at once. Follows no redirects: they would carry prompts and key elsewhere. The caller
    closes it."""
    return httpx.AsyncClient(transport=_Aiohttp(connections, seconds), follow_redirects=False)


class _Aiohttp(httpx.AsyncBaseTransport):
    """Whole answers. Raises httpx's errors, like httpx's own."""

    def __init__(self, connections: int, seconds: float) -> None:
        self._connections, self._seconds = connections, seconds
        self._made: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            async with self._session.request(
                request.method, str(request.url), data=request.content, headers=request.headers, allow_redirects=False
            ) as answer:
                content = await answer.read()
                headers = list(answer.headers.items())
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no answer within {self._seconds:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise httpx.NetworkError(f"{type(error).__name__}: {error}") from error
        return httpx.Response(answer.status, headers=headers, stream=httpx.ByteStream(content))

    @property
    def _session(self) -> aiohttp.ClientSession:
        """Made at the first call: it belongs to the loop that runs then."""
        if self._made is None:
            self._made = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections, ssl=httpx.create_ssl_context()),
                timeout=aiohttp.ClientTimeout(total=self._seconds),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # httpx does
                trust_env=True,
            )
        return self._made

    async def aclose(self) -> None:
        if self._made is not None:
            await self._made.close()
