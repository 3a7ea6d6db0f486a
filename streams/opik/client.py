"""Calls of Opik's REST API, what is tried again, and feedback scores by the batch (PF-9 §5.4, Decision 14).

Opik's own client takes a process 2.5 s of CPU to import, because its package imports the whole SDK. Rampgate calls a
dozen endpoints; a contract test holds that each request is what Opik's client sends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
import httpx
import msgspec
import orjson
import structlog

from agents.ports import Refusal, Unauthorized, Write
from schemas.outcomes import Cause
from streams.retry import RETRIED_STATUSES, Retry, TryAgain

log = structlog.get_logger(__name__)
T = TypeVar("T")
MOST = 1_000
"""Scores in one call."""
LONGEST_PAUSE = 60.0
"""Seconds: the longest hint that is waited out; Opik's limits are reset by the minute."""


class ApiError(Exception):
    """Opik answered, and not with what was asked for: the status, the headers and the body (JSON, or else text)."""

    def __init__(self, status_code: int, body: Any = None, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status_code}: {body}")
        self.status_code, self.body, self.headers = status_code, body, headers or {}


class OpikClient:
    """Keeps up to `connections` open and follows no redirects: they would carry the key elsewhere. Raises ApiError for
    every answer but a 2xx, and httpx's errors where no answer comes within `timeout` seconds. The caller closes it."""

    def __init__(self, url: str, workspace: str, api_key: str | None, timeout: float, connections: int) -> None:
        address = httpx.URL(url)
        login = address.username, address.password
        root = str(address.copy_with(username="", password="") if any(login) else address).rstrip("/")
        self._root, self._connections, self._seconds = f"{root}/v1/private/", connections, timeout
        self._headers = {"Comet-Workspace": workspace} | ({} if api_key is None else {"Authorization": api_key})
        if any(login):
            # A login in the URL takes the place of the key, as in Opik's own client; aiohttp refuses both together.
            self._headers["Authorization"] = aiohttp.BasicAuth(*login).encode()
        self._session: aiohttp.ClientSession | None = None

    async def call(
        self, method: str, path: str, body: object = None, query: Mapping[str, str | int] | None = None
    ) -> dict[str, Any]:
        """The JSON object of the answer, empty where there is none. `path` is below `/v1/private/`; `body` goes out as
        JSON."""
        content = await self.send(method, path, None if body is None else orjson.dumps(body), query)
        if not content:
            return {}
        try:
            answer = orjson.loads(content)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise ApiError(200, f"no JSON object: {content[:300].decode(errors='replace')}")
        return answer

    async def send(
        self, method: str, path: str, body: bytes | None = None, query: Mapping[str, str | int] | None = None
    ) -> bytes:
        """The bytes of the answer; `body` is JSON already."""
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            async with self._open.request(
                method, self._root + path, params=query, data=body, headers=headers, allow_redirects=False
            ) as answer:
                content = await answer.read()
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no answer within {self._seconds:g} s") from error
        except aiohttp.ClientError as error:
            raise httpx.NetworkError(f"{type(error).__name__}: {error}") from error
        if 200 <= answer.status < 300:
            return content
        try:
            said = orjson.loads(content)
        except orjson.JSONDecodeError:
            said = content.decode(errors="replace")
        raise ApiError(answer.status, said, dict(answer.headers))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def _open(self) -> aiohttp.ClientSession:
        """Made at the first call: it belongs to the loop that runs then."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections, ssl=httpx.create_ssl_context()),
                timeout=aiohttp.ClientTimeout(total=self._seconds),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=True,
            )
        return self._session


class OutOfTries(Exception):
    """Opik gave no usable answer within the time allowed; `last` says what it gave."""

    def __init__(self, last: str) -> None:
        super().__init__(last)
        self.last = last


async def persist(
    call: Callable[[], Awaitable[T]],
    *,
    seconds: float,
    observe: Callable[[str], None] = lambda outcome: None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    now: Callable[[], float] | None = None,
) -> T:
    """Call until it answers; other 4xx come out as ApiError.

    429 and 5xx and broken connections are tried again, after the server's own hint where it gives one, else after
    growing pauses, for `seconds` in all; then OutOfTries. A hint is waited out also where it ends beyond that (by at
    most LONGEST_PAUSE): Opik's limits are reset by the minute, and giving up before would dead-letter whole batches
    for a moment's haste. 401 and 403 raise Unauthorized at once.
    """

    async def attempt() -> T:
        try:
            answer = await call()
        except ApiError as error:
            status = error.status_code
            if status in (401, 403):
                observe("unauthorized")
                raise Unauthorized(f"Opik answers {status}: {reason(error)}; set RAMPGATE_OPIK_API_KEY") from error
            if status not in RETRIED_STATUSES:
                observe("rejected")
                raise
            observe("rate_limited" if status == 429 else "unavailable")
            raise TryAgain(f"{status}: {reason(error)}", hint(error.headers)) from error
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


class OpikScores:
    """The agents' `Scores`: feedback scores by the batch, each with its own outcome.

    The call is the one under the SDK's `log_traces_feedback_scores`; here its answer is awaited. A batch that Opik
    refuses is halved until the refused score stands alone, so that it does not take the others with it. At most
    `in_flight` calls go at once over all batches; `observe(operation, outcome)`.
    """

    def __init__(
        self,
        client: OpikClient,
        *,
        in_flight: int,
        retry_seconds: float,
        observe: Callable[[str, str], None] = lambda operation, outcome: None,
    ) -> None:
        self._client = client
        self._room = asyncio.Semaphore(in_flight)
        self._seconds = retry_seconds
        self._observe = observe

    async def write(self, writes: Sequence[Write]) -> list[Refusal | None]:
        out: list[Refusal | None] = [None] * len(writes)
        others = [i for i, w in enumerate(writes) if w.value is None or w.trace_id[14:15] != "7"]
        places: Sequence[int] = range(len(writes))
        puts = writes
        if others:
            places = sorted(set(places).difference(others))
            puts = [writes[index] for index in places]
        jobs = [self._put(puts[at : at + MOST], places[at : at + MOST], out) for at in range(0, len(puts), MOST)]
        for index in others:
            write = writes[index]
            if write.trace_id[14:15] != "7":
                out[index] = Refusal(Cause.OPIK_REJECTED, f"trace id {write.trace_id} is no UUID version 7")
            else:
                jobs.append(self._delete(index, write, out))
        if len(jobs) == 1:
            await jobs[0]
        else:
            # Not a TaskGroup: it would hide Unauthorized in a group, and the worker has to see that to stop.
            for error in await asyncio.gather(*jobs, return_exceptions=True):
                if error is not None:
                    raise error
        return out

    async def _put(self, writes: Sequence[Write], places: Sequence[int], out: list[Refusal | None]) -> None:
        refusal = await self._call("put", lambda: self._client.send("PUT", "traces/feedback-scores", encode(writes)))
        if refusal is None:
            return
        if refusal.cause is Cause.OPIK_UNAVAILABLE or len(writes) == 1:
            for place in places:
                out[place] = refusal
            return
        middle = len(writes) // 2
        await self._put(writes[:middle], places[:middle], out)
        await self._put(writes[middle:], places[middle:], out)

    async def _delete(self, index: int, write: Write, out: list[Refusal | None]) -> None:
        out[index] = await self._call(
            "delete",
            lambda: self._client.call(
                "POST", f"traces/{quote(write.trace_id, '')}/feedback-scores/delete", {"name": write.name}
            ),
        )

    async def _call(self, operation: str, call: Callable[[], Awaitable[object]]) -> Refusal | None:
        async with self._room:
            try:
                await persist(
                    call,
                    seconds=self._seconds,
                    observe=lambda outcome: self._observe(operation, outcome),
                )
            except ApiError as error:
                return Refusal(Cause.OPIK_REJECTED, f"Opik answers {error.status_code}: {reason(error)}")
            except OutOfTries as error:
                return Refusal(
                    Cause.OPIK_UNAVAILABLE, f"no usable answer in {self._seconds:g} s, the last: {error.last}"
                )
            return None


_encode = msgspec.json.Encoder().encode


def encode(writes: Sequence[Write]) -> bytes:
    """The request body."""
    return _encode({"scores": writes})
