"""Calls Opik's REST API, repeats what may succeed later, and writes feedback scores in batches (PF-9 §5.4).

Opik's own client takes a process 2.5 s of CPU to import, because its package imports the whole SDK (Decision 14).
Rampgate calls a dozen endpoints; a contract test holds that each request is what Opik's client sends.

In reading order: `OpikClient` sends one request, `persist` repeats it, the functions after it read lists page by page,
and `OpikScores` writes scores.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec
import orjson
import structlog

from agents.codec import loads
from agents.ports import UNSURE, Outcome, Refusal, Unauthorized, Unavailable, Unsure, Write
from evalcore.scoring.http_client import HttpClient, TooLong
from schemas.foreign_words import foreign_words
from schemas.outcomes import Cause
from streams.retry import RETRIED_STATUSES, Retry, TryAgain, reason_of

log = structlog.get_logger(__name__)
T = TypeVar("T")
Query = Mapping[str, str | int]
MOST = 1_000
"""Scores in one request."""
LONGEST_ANSWER = 32 * 1024 * 1024
"""Bytes of one answer, as they are sent and once inflated: some ten times a full page of a search."""
LONGEST_PAUSE = 60.0
"""Seconds: a longer hint is cut to this; Opik resets its limits every minute."""
_encode = msgspec.json.Encoder().encode


class ApiError(Exception):
    """Opik's answer is an error: its status, headers and body (JSON, or else text)."""

    def __init__(self, status_code: int, body: Any = None, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"Opik answers {status_code}")  # without the body, which may quote what was sent
        self.status_code, self.body, self.headers = status_code, body, headers or {}


class LongAnswer(ApiError):
    """Opik's answer is a good one by its status, and has more bytes than are read."""

    def __init__(self, status_code: int) -> None:
        super().__init__(status_code, f"more than {LONGEST_ANSWER >> 20} MB")


class Refused(Exception):
    """Opik takes the key and refuses the request; the message says which one and why."""


class OpikClient:
    """Sends one request at a time on each of up to `connections`. Follows no redirects: they would carry the key
    elsewhere. Raises ApiError for every answer but a 2xx, and httpx's errors where no answer comes within `timeout`
    seconds, ConnectError where nothing was sent. The caller closes it."""

    def __init__(self, url: str, workspace: str, api_key: str | None, timeout: float, connections: int) -> None:
        address = httpx.URL(url)
        login = address.username, address.password
        root = str(address.copy_with(username="", password="") if any(login) else address).rstrip("/")
        self._root = f"{root}/v1/private/"
        self._headers = {"Comet-Workspace": workspace} | ({} if api_key is None else {"Authorization": api_key})
        if any(login):
            # A login in the URL takes the place of the key, as in Opik's own client; aiohttp refuses both together.
            self._headers["Authorization"] = f"Basic {b64encode(':'.join(login).encode('latin1')).decode()}"
        self._http = HttpClient(connections, timeout, LONGEST_ANSWER)

    async def call(self, method: str, path: str, body: object = None, query: Query | None = None) -> dict[str, Any]:
        """The JSON object that Opik answers, empty where the answer has no content. `path` is below `/v1/private/`;
        `body` is sent as JSON."""
        content = await self.send(method, path, None if body is None else orjson.dumps(body), query)
        if not content:
            return {}
        try:
            answer = read(content)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise ApiError(200, f"no JSON object: {content[:300].decode(errors='replace')}")
        return answer

    async def lines(self, path: str, body: object) -> list[dict[str, Any]]:
        """The JSON objects that Opik answers to a POST, one on each line."""
        content = await self.send("POST", path, orjson.dumps(body))
        try:
            found = [read(line) for line in content.split(b"\n") if line.strip()]
        except orjson.JSONDecodeError as error:
            raise ApiError(200, f"no lines of JSON: {error.msg}") from error
        if found and "id" not in found[-1]:
            raise ApiError(500, found[-1])  # an error may end the lines
        return found

    async def send(self, method: str, path: str, body: bytes | None = None, query: Query | None = None) -> bytes:
        """The content of the answer; `body` is JSON already."""
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            answer = await self._http.send(method, self._root + path, content=body, headers=headers, query=query)
        except TooLong as error:
            raise LongAnswer(200) from error
        if 200 <= answer.status_code < 300:
            return answer.content
        try:
            problem = orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            problem = answer.content.decode(errors="replace")
        raise ApiError(answer.status_code, problem, dict(answer.headers))

    async def close(self) -> None:
        await self._http.aclose()


def read(content: bytes) -> Any:
    """The JSON of an answer. Bytes that are no UTF-8 and halves of surrogate pairs, which no text can carry on, become
    U+FFFD: one trace with such a text must not hide all others of its page. Raises orjson.JSONDecodeError."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return loads(content.decode(errors="replace").encode())


class OutOfTries(Unavailable):
    """Opik gave no usable answer within the time allowed; `last` is the last error."""

    def __init__(self, last: str) -> None:
        super().__init__(f"Opik: {last}")
        self.last = last


async def persist(
    call: Callable[[], Awaitable[T]],
    *,
    seconds: float,
    observe: Callable[[str], None] = lambda outcome: None,
    waits: Callable[[str], None] = lambda why: None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    now: Callable[[], float] | None = None,
) -> T:
    """The result of `call`, which is repeated for `seconds` in all.

    Repeats after 408, 425, 429, 5xx and broken connections: after the server's hint where it gives one, else after
    growing pauses. A hint is waited out even where it ends later (by at most LONGEST_PAUSE): Opik resets its limits
    every minute, and giving up before would send whole batches to the dead letters. Raises OutOfTries when the time is
    over, Unauthorized at once for 401 and 403, ApiError at once for every other error. `observe` is told how each try
    ended, `waits` why a first one was in vain, before the pause.
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
            raise TryAgain(reason_of(error)) from error
        observe("ok")
        return answer

    def noticed(error: BaseException, failures: int, pause: float) -> None:
        log.warning("opik_retry", after=str(error), attempt=failures, pause=pause)
        if failures == 1:
            waits(str(error))

    retry = Retry(first=0.2, longest=10.0, longest_hint=LONGEST_PAUSE, seconds=seconds)
    clock = now or asyncio.get_running_loop().time
    try:
        return await retry.call(attempt, TryAgain, noticed=noticed, sleep=sleep, clock=clock)
    except TryAgain as error:
        raise OutOfTries(str(error)) from error


def hint(headers: Mapping[str, str]) -> float:
    """Seconds that the server asks to wait: `Retry-After`, `RateLimit-Reset` or a bucket's time; 0 for none."""
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
    """What Opik says about its error, in either form in which it says it, as far as it may be shown."""
    body = error.body
    text = body
    if isinstance(body, dict):
        errors = body.get("errors")
        text = "; ".join(map(str, errors)) if isinstance(errors, list) else body.get("message")
    return foreign_words(str(text)) if text else "no reason"


async def or_none(call: Awaitable[T]) -> T | None:
    """The call's result; None where Opik answers 404."""
    try:
        return await call
    except ApiError as error:
        if error.status_code == 404:
            return None
        raise


async def numbered_pages(ask: Callable[[Query], Awaitable[dict[str, Any]]], size: int) -> AsyncIterator[list[Any]]:
    """The pages of a list that Opik numbers; `ask` gets the query of each."""
    page, more = 0, True
    while more:
        page += 1
        answer = await ask({"page": page, "size": size})
        content = answer.get("content") or []
        more = bool(content) and page * size < (answer.get("total") or 0)
        yield content


async def cursor_pages(
    ask: Callable[[dict[str, Any]], Awaitable[list[dict[str, Any]]]],
    limit: int,
    last: str = "",
    limited_by: str = "limit",
    too_long: Callable[[dict[str, Any]], Awaitable[list[dict[str, Any]]]] | None = None,
) -> AsyncIterator[list[dict[str, Any]]]:
    """The pages of a search, none of them empty; `ask` gets what each request adds to the search. `last`: the id after
    which to go on; `limited_by`: the name of the limit. A page that is too long to be read is asked for in smaller
    ones; `too_long` asks for less of what is too long alone."""
    after: dict[str, Any] = {"last_retrieved_id": last} if last else {}
    first_limit = limit
    while True:
        try:
            page = await ask({limited_by: limit} | after)
        except LongAnswer:
            if limit == 1 and too_long is not None:
                if not (page := await too_long({limited_by: 1} | after)):
                    return
                yield page
                limit, after = first_limit, {"last_retrieved_id": str(page[-1]["id"])}
                continue
            if limit == 1:
                raise
            limit = max(limit // 4, 1)
            log.warning("opik_page_too_long", smaller=limit)
            continue
        if page:
            yield page
        if len(page) < limit:
            return
        after = {"last_retrieved_id": str(page[-1]["id"])}


@dataclass(eq=False, repr=False)
class OpikScores:
    """The agents' `Scores`: writes feedback scores in batches, each score with its own outcome.

    The request is the one under the SDK's `log_traces_feedback_scores`; here its answer is awaited. A batch that Opik
    refuses is halved until the refused score is alone, so that it does not take the others with it. At most `in_flight`
    requests run at once over all batches; `observe` gets operation and outcome of each.

    No try begins later than `send_seconds` after the call of `write`: other workers reckon with that (`Policy.doubt`).
    """

    client: OpikClient
    _: KW_ONLY
    in_flight: int
    retry_seconds: float
    send_seconds: float = 200.0
    observe: Callable[[str, str], None] = lambda operation, outcome: None

    def __post_init__(self) -> None:
        self._room = asyncio.Semaphore(self.in_flight)

    async def write(self, writes: Sequence[Write]) -> list[Outcome]:
        """The outcome of each write in order. Raises Unauthorized, and Unavailable where it is too late to send."""
        out: list[Outcome] = [None] * len(writes)
        until = asyncio.get_running_loop().time() + self.send_seconds
        others = [i for i, w in enumerate(writes) if w.value is None or w.trace_id[14:15] != "7"]
        places: Sequence[int] = range(len(writes))
        puts = writes
        if others:
            places = sorted(set(places).difference(others))
            puts = [writes[index] for index in places]
        starts = range(0, len(puts), MOST)
        jobs = [self._put(puts[at : at + MOST], places[at : at + MOST], out, until) for at in starts]
        for index in others:
            write = writes[index]
            if write.trace_id[14:15] != "7":
                out[index] = Refusal(Cause.OPIK_REJECTED, f"trace id {write.trace_id} is no UUID version 7")
            else:
                jobs.append(self._delete(index, write, out, until))
        if len(jobs) == 1:
            await jobs[0]
        else:
            # Not a TaskGroup: it would hide Unauthorized in an exception group, and the worker must see it to stop.
            for error in await asyncio.gather(*jobs, return_exceptions=True):
                if error is not None:
                    raise error
        return out

    async def _put(
        self, writes: Sequence[Write], places: Sequence[int], out: list[Outcome], until: float, unsure: bool = False
    ) -> None:
        """Put a batch; `places` are the writes' places in `out`. `unsure`: they were part of a larger batch of which a
        try got no answer."""
        outcome = await self._call(
            "put", lambda: self.client.send("PUT", "traces/feedback-scores", encode(writes)), until, unsure
        )
        if outcome is None:
            return
        if isinstance(outcome, Unsure) or outcome.cause is Cause.OPIK_UNAVAILABLE or len(writes) == 1:
            for place in places:
                out[place] = outcome
            return
        middle = len(writes) // 2
        await self._put(writes[:middle], places[:middle], out, until, outcome.unsure)
        await self._put(writes[middle:], places[middle:], out, until, outcome.unsure)

    async def _delete(self, index: int, write: Write, out: list[Outcome], until: float) -> None:
        out[index] = await self._call(
            "delete",
            lambda: self.client.call(
                "POST", f"traces/{quote(write.trace_id, '')}/feedback-scores/delete", {"name": write.name}
            ),
            until,
        )

    async def _call(
        self, operation: str, call: Callable[[], Awaitable[object]], until: float, unsure: bool = False
    ) -> Outcome:
        """The outcome of a call. It is unsure after a try that may have been applied, or may yet be: no answer came, or
        one of a server that had begun. Raises Unavailable where the time to send is over: that is so after a stop of
        this process, or a long queue, and the step must read the state again."""
        now = asyncio.get_running_loop().time

        async def attempt() -> None:
            nonlocal unsure
            if now() > until:
                raise Unavailable("Opik: the time in which a step may write is over; it begins again")
            try:
                await call()
            except LongAnswer:
                return  # stored; what else it says does not matter
            except ApiError as error:
                unsure |= error.status_code >= 500 or error.status_code == 408
                raise
            except httpx.ConnectError:
                raise
            except (httpx.HTTPError, OSError):
                unsure = True
                raise

        async with self._room:
            try:
                await persist(
                    attempt,
                    seconds=self.retry_seconds,
                    observe=lambda outcome: self.observe(operation, outcome),
                )
            except ApiError as error:
                why = f"Opik answers {error.status_code}: {reason(error)}"
                return Refusal(Cause.OPIK_REJECTED, why, unsure)
            except OutOfTries as error:
                why = f"no usable answer in {self.retry_seconds:g} s, the last: {error.last}"
                return Refusal(Cause.OPIK_UNAVAILABLE, why, unsure)
            return UNSURE if unsure else None


def encode(writes: Sequence[Write]) -> bytes:
    """The body of a request that puts scores."""
    return _encode({"scores": writes})
