"""The worker's HTTP client for calls of a judges' model, over aiohttp: what `evalcore.scoring.chat_model` needs.

A call takes a third of the event loop's time that httpx takes (DECISIONS.md has the figures).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import httpx

from evalcore.scoring.bounded_answer import BoundedAnswer, bounded
from streams.http_session import open_session, way_to
from streams.retry import reason_of

if TYPE_CHECKING:
    import aiohttp

PIECE = 65_536


class ModelClient:
    """Sends at most `connections` requests at once. Raises httpx's errors. The caller closes it."""

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
