"""Opik's own async REST client, with a fast way through it for batches of scores, and the rules for trying again.

The generated client turns each score into a model, a dict and a JSON-able dict, one by one; a thousand scores cost it
some 60 ms of the event loop. `EncodedScores` passes through it untouched and is put on the wire as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import aiohttp
import httpx
import structlog
from opik.rest_api.client import AsyncOpikApi
from opik.rest_api.core.api_error import ApiError

from agents.ports import Unauthorized
from streams.retry import RETRIED_STATUSES, Retry, TryAgain

log = structlog.get_logger(__name__)
T = TypeVar("T")
LONGEST_PAUSE = 60.0
"""Seconds: the longest hint that is waited out; Opik's limits are reset by the minute."""


class EncodedScores(str):
    """Stands for the list of scores in a call of Opik's client; `body` is the whole request body."""

    body: bytes

    def __new__(cls, body: bytes) -> EncodedScores:
        self = super().__new__(cls, "scores")
        self.body = body
        return self


class _Client(httpx.AsyncClient):
    """httpx, but scores go through aiohttp: a call there costs a third as much, and scores are most of what we send."""

    def __init__(self, connections: int, timeout: float) -> None:
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        super().__init__(timeout=httpx.Timeout(timeout), limits=limits, follow_redirects=False)
        self._connections, self._seconds = connections, timeout
        self._session: aiohttp.ClientSession | None = None

    async def request(self, method: str, url: Any, **options: Any) -> httpx.Response:
        body = options.get("json")
        if isinstance(body, dict) and isinstance(body.get("scores"), EncodedScores):
            return await self._send(method, str(url), body["scores"].body, options["headers"])
        return await super().request(method, url, **options)

    async def _send(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
        """Raises httpx's errors, like everything else here."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections, ssl=httpx.create_ssl_context()),
                timeout=aiohttp.ClientTimeout(total=self._seconds),
            )
        try:
            async with self._session.request(method, url, data=body, headers=headers, allow_redirects=False) as answer:
                content = await answer.read()
                return httpx.Response(answer.status, headers=list(answer.headers.items()), content=content)
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no answer within {self._seconds:g} s") from error
        except aiohttp.ClientError as error:
            raise httpx.NetworkError(f"{type(error).__name__}: {error}") from error

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
        await super().aclose()


class OutOfTries(Exception):
    """Opik gave no usable answer within the time allowed; `last` says what it gave."""

    def __init__(self, last: str) -> None:
        super().__init__(last)
        self.last = last


def make_client(url: str, workspace: str, api_key: str | None, timeout: float, connections: int) -> AsyncOpikApi:
    """An `AsyncOpikApi` that follows no redirects and keeps `connections` open."""
    http = _Client(connections, timeout)
    return AsyncOpikApi(base_url=url, workspace_name=workspace, api_key=api_key, httpx_client=http)


async def close_client(client: AsyncOpikApi) -> None:
    await client._client_wrapper.httpx_client.httpx_client.aclose()


async def persist(
    call: Callable[[], Awaitable[T]],
    *,
    seconds: float,
    observe: Callable[[str], None] = lambda outcome: None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    now: Callable[[], float] | None = None,
) -> T:
    """Call until it answers; other 4xx come out as the client's ApiError.

    429 and 5xx and broken connections are tried again, after the server's own hint where it gives one, else after
    growing pauses, for `seconds` in all; then OutOfTries. A hint is waited out also where it ends beyond that (by at
    most LONGEST_PAUSE): Opik's limits are reset by the minute, and giving up before would dead-letter whole batches
    for a moment's haste. 401 and 403 raise Unauthorized at once.
    """

    async def attempt() -> T:
        try:
            answer = await call()
        except ApiError as error:
            status = error.status_code or 0
            if status in (401, 403):
                observe("unauthorized")
                raise Unauthorized(f"Opik answers {status}: {reason(error)}; set RAMPGATE_OPIK_API_KEY") from error
            if status not in RETRIED_STATUSES:
                observe("rejected")
                raise
            observe("rate_limited" if status == 429 else "unavailable")
            raise TryAgain(f"{status}: {reason(error)}", hint(error.headers or {})) from error
        except (httpx.HTTPError, OSError) as error:
            observe("unavailable")
            raise TryAgain(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        observe("ok")
        return answer

    def noticed(error: BaseException, failures: int, pause: float) -> None:
        log.warning("opik_retry", after=str(error), attempt=failures, pause=pause)

    retry = Retry(first=0.2, longest=10.0, longest_hint=LONGEST_PAUSE, seconds=seconds)
    clock = now or asyncio.get_running_loop().time
    try:
        return await retry.call(attempt, TryAgain, noticed=noticed, sleep=sleep, clock=clock)
    except TryAgain as error:
        raise OutOfTries(str(error)) from error


def hint(headers: Mapping[str, str]) -> float:
    """Seconds the server asks us to wait: `Retry-After`, `RateLimit-Reset` or a bucket's time; 0 for none."""
    lower = {name.lower(): value for name, value in headers.items()}
    for name in ("retry-after", "ratelimit-reset", "x-ratelimit-reset"):
        value = lower.get(name, "")
        if value.replace(".", "", 1).isdecimal():
            return min(float(value), LONGEST_PAUSE)
    ttls = [
        float(value)
        for name, value in lower.items()
        if name.endswith("-remaining-limit-ttl-millis")
        and value.isdecimal()
        and lower.get(name.removesuffix("-ttl-millis"), "0") == "0"
    ]
    return min(max(ttls) / 1000, LONGEST_PAUSE) if ttls else 0.0


def reason(error: ApiError) -> str:
    """Opik's own words, of either error shape."""
    body = error.body
    if isinstance(body, dict):
        errors = body.get("errors")
        text = "; ".join(map(str, errors)) if isinstance(errors, list) else body.get("message")
        return str(text or body)[:300]
    return str(body)[:300]
