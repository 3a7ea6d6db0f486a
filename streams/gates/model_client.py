"""The worker's HTTP client for calls of a judges' model, over aiohttp: what `evalcore.scoring.chat_model` needs.

A call takes a third of the event loop's time that httpx takes (DECISIONS.md has the figures).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

import httpx

from evalcore.scoring.bounded_answer import BoundedAnswer, bounded
from streams.retry import reason_of

if TYPE_CHECKING:
    import aiohttp

PIECE = 65_536


class ModelClient:
    """Sends at most `connections` requests at once. Follows no redirects: they would carry prompts and key elsewhere.
    Raises httpx's errors. The caller closes it."""

    def __init__(self, connections: int, seconds: float) -> None:
        self._connections, self._seconds = connections, seconds
        self._made: aiohttp.ClientSession | None = None

    async def post(self, url: str, *, content: bytes, headers: Mapping[str, str]) -> BoundedAnswer:
        import aiohttp  # here, since a command that finds all answers kept asks nobody

        try:
            async with self._session.post(url, data=content, headers=headers, allow_redirects=False) as answer:
                encoding = answer.headers.get("content-encoding", "")
                read = await bounded(answer.content.iter_chunked(PIECE), encoding)
                return BoundedAnswer(answer.status, answer.headers, read)
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no answer within {self._seconds:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise httpx.NetworkError(reason_of(error)) from error

    async def aclose(self) -> None:
        if self._made is not None:
            await self._made.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def _session(self) -> aiohttp.ClientSession:
        """The session, made at the first request, since it belongs to the loop that runs then."""
        import aiohttp

        if self._made is None:
            self._made = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections, ssl=httpx.create_ssl_context()),
                timeout=aiohttp.ClientTimeout(total=self._seconds),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                headers={"accept-encoding": "gzip"},
                trust_env=True,
            )
        return self._made
