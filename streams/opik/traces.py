"""Reads traces from Opik: those that never came as an event, judge scores that came later, and, for a rebuild, the
scores that Opik already holds. Opik allows 30 searches a minute, so each page of a search answers for many turns."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import repeat
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
import orjson
import structlog
from aiolimiter import AsyncLimiter

from agents.codec import TraceFacts
from agents.gates.pools import PRODUCTION
from agents.join.join import latest_first
from agents.join.turn import code_of, trace_began
from agents.join.versions import Came
from agents.own_calls import is_own
from agents.ports import Unauthorized, Unavailable
from agents.traces import input_hash, is_judge_score, trace_bytes
from schemas.signals import DECLARED
from streams.opik.client import (
    ApiError,
    LongAnswer,
    OpikClient,
    Query,
    cursor_pages,
    numbered_pages,
    or_none,
    persist,
    reason,
)

log = structlog.get_logger(__name__)
T = TypeVar("T")
PAGE = 2_000
WHOLE_PAGE = 500
"""Traces in a page that brings texts."""
TEXTS = ("input", "output")
"""Fields of a trace that hold what was said."""
SINGLY = 4
"""So many traces are sought one by one; of more, a search reads pages."""
COMPARED = 50
"""So many traces are read to compare their scores. Two scores of a thousand are one request to write."""
PROJECTS_SECONDS = 60.0
"""How long the list of projects is remembered."""
PROJECTS_PAGE = 100
SLACK_MS = 3_600_000
"""How far a trace's time may be from the time that we know of its turn."""
SINGLE_TRACES_PER_MINUTE = 600
"""Opik has a limit of its own for reads of one trace by its id (800 a minute), far above that of searches."""


def _where(field: str, key: str, operator: str = "is_not_empty", value: str = "") -> dict[str, str]:
    """One filter of a search in Opik."""
    return {"field": field, "operator": operator, "key": key, "value": value}


TELLS_OF_A_RESPONSE = _where("metadata", "response_id")


class SearchPlace(msgspec.Struct, frozen=True):
    """Up to where `OpikTraces.scored` has read: it goes on with this search of this project, after the trace whose id
    is `after`. `share`: how much of all has been read, 0 to 1."""

    project: str = ""
    search: int = 0
    after: str = ""
    share: float = 0.0


FIRST_PLACE = SearchPlace()


def limit_of(per_minute: float) -> AsyncLimiter:
    """Lets so many searches a minute through, also fewer than one."""
    return AsyncLimiter(max(per_minute, 1.0), 60.0 * max(1.0, 1.0 / per_minute))


class OpikTraces:
    """The agents' `Traces`. `projects` are searched besides those that Opik lists. Raises Unauthorized where Opik
    refuses the key and Unavailable where it can't be searched."""

    def __init__(
        self,
        client: OpikClient,
        *,
        per_minute: float,
        retry_seconds: float,
        projects: tuple[str, ...] = (),
        observe: Callable[[str, str], None] = lambda operation, outcome: None,
        own_key: bytes = b"",
        limiter: AsyncLimiter | None = None,
        waits: Callable[[str], None] = lambda why: None,
    ) -> None:
        """`own_key` signs traces of our own judge calls. `limiter`: one that several readers share. `waits` is told why
        a search is asked for again."""
        self._waits = waits
        self._client, self._seconds, self._observe, self._own_key = client, retry_seconds, observe, own_key
        self._limiter = limiter or limit_of(per_minute)
        self._single = AsyncLimiter(SINGLE_TRACES_PER_MINUTE, 60.0)
        self._named = projects
        self._projects: tuple[float, list[str]] = (0.0, [])

    async def find(self, since_ms: Mapping[str, int]) -> dict[str, TraceFacts]:
        """The traces of these responses, as far as they are found now. A few are sought one by one, however old their
        traces are. Of many, pages are read of all traces since the earliest time, then a few of the rest are sought one
        by one; the next search goes on with the others."""
        found: dict[str, TraceFacts] = {}
        wanted = set(since_ms)
        if len(wanted) > SINGLY:
            await self._seek([TELLS_OF_A_RESPONSE], min(since_ms.values()), wanted, found)
        for response_id in random.sample(sorted(wanted), min(SINGLY, len(wanted))):
            exact = _where("metadata", "response_id", "=", response_id)
            await self._seek([exact], None, {response_id}, found)
        return found

    async def _seek(
        self, filters: list[dict[str, str]], since: int | None, wanted: set[str], found: dict[str, TraceFacts]
    ) -> None:
        """Move what is found, in any project, from `wanted` to `found`."""
        for project in await self.projects():
            async for page in self._pages(project, filters, since, None):
                known = filter(None, map(facts_of, page, repeat(project)))
                for response_id, (facts, *_) in latest_first(known).items():
                    if response_id in wanted:
                        found[response_id] = facts
                        wanted.discard(response_id)
                if not wanted:
                    return

    async def judged(self, turns: Mapping[str, tuple[str, str, int]]) -> set[str]:
        """The response ids whose traces carry a judge's score. Reads by project and span of time; a trace is known by
        its id, since its metadata may lack the response id."""
        out: set[str] = set()
        by_project: dict[str, dict[str, list[tuple[str, int]]]] = {}
        for response_id, (trace_id, project, at) in turns.items():
            by_project.setdefault(project, {}).setdefault(trace_id, []).append((response_id, at))
        for project, traces in by_project.items():
            if len(traces) <= SINGLY:
                for trace_id, known in traces.items():
                    trace = await self.get(trace_id)
                    if trace is not None and has_judge_score(trace):
                        out.update(response_id for response_id, _ in known)
                continue
            times = [at for known in traces.values() for _, at in known]
            since, until = min(times) - SLACK_MS, max(times) + SLACK_MS
            async for page in self._pages(project, [], since, until):
                for trace in page:
                    if has_judge_score(trace):
                        out.update(response_id for response_id, _ in traces.get(str(trace.get("id")), ()))
        return out

    async def held(self, trace_ids: Mapping[str, str]) -> dict[str, dict[str, float]]:
        """The scores by name on these traces, by response id, without traces that Opik lacks; nothing for more than
        COMPARED of them, which are written sooner than read."""
        if len(trace_ids) > COMPARED:
            return {}
        out = {}
        for response_id, trace_id in trace_ids.items():
            trace = await self.get(trace_id)
            if trace is not None:
                scores = trace.get("feedback_scores") or ()
                out[response_id] = {str(score.get("name")): float(score.get("value") or 0) for score in scores}
        return out

    async def scored(
        self, since_ms: int, place: SearchPlace = FIRST_PLACE
    ) -> AsyncIterator[tuple[list[TraceFacts], SearchPlace]]:
        """Every trace since `since_ms` that carries a signal's score, once, in pages; for a rebuild (promise 2).

        Beside each page comes the place behind it, from which another call goes on. Projects are read by name, so a
        project that is made meanwhile may be passed over: it has no score from before.
        """
        projects, searches = sorted(await self.projects()), _scored_searches()
        for number, project in enumerate(projects):
            if project < place.project:
                continue
            going_on = project == place.project
            for search in range(place.search if going_on else 0, len(searches)):
                last = place.after if going_on and search == place.search else ""
                async for page in self._pages(project, searches[search], since_ms - SLACK_MS, None, last=last):
                    facts = list(filter(None, map(facts_of, page, repeat(project))))
                    read = number + (search + _part_since(str(page[-1]["id"]), since_ms)) / len(searches)
                    yield facts, SearchPlace(project, search, str(page[-1]["id"]), read / len(projects))
                read = number + (search + 1) / len(searches)
                yield [], SearchPlace(project, search + 1, "", read / len(projects))

    async def turns(self, since_ms: int) -> AsyncIterator[list[TraceFacts]]:
        """Every turn that began since `since_ms`, with its session and the hash of its input, in pages; for a sweep."""
        for project in await self.projects():
            async for page in self._pages(project, [TELLS_OF_A_RESPONSE], since_ms, None, texts=("input",)):
                yield [facts for trace in page if (facts := told(trace, project, self._own_key)) is not None]

    async def window(
        self,
        project: str,
        since_ms: int,
        until_ms: int,
        *,
        whole: bool = False,
        having: Sequence[str] = (),
        after: str = "",
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """The project's traces that began from `since_ms` to before `until_ms` and tell of a response, in pages, newest
        first, without our own judges' calls. `whole` brings input and output, but for a trace that is too long with
        them; `having`: scores that a trace has to carry; `after`: the id of the trace behind which to go on."""
        filters = [TELLS_OF_A_RESPONSE, *(_where("feedback_scores", name) for name in having)]
        texts = TEXTS if whole else ()
        async for page in self._pages(project, filters, since_ms, until_ms, texts=texts, last=after):
            yield [
                trace
                for trace in page
                if since_ms <= began(trace) < until_ms and told(trace, project, self._own_key) is not None
            ]

    async def newest(self, project: str, metadata: Mapping[str, str], most: int) -> list[dict[str, Any]]:
        """The project's newest traces, at most so many, whose metadata has all of these values; without input and
        output. Empty where there is no such project."""
        filters = [_where("metadata", key, "=", value) for key, value in metadata.items()]
        found: list[dict[str, Any]] = []
        async for page in self._pages(project, filters, None, None, most=most):
            found += page
            if len(found) >= most:
                break
        return found[:most]

    async def get(self, trace_id: str) -> dict[str, Any] | None:
        """One trace, whole; None where Opik has no trace of this id, or one that is too long to be read."""
        ask = partial(self._client.call, "GET", f"traces/{quote(trace_id, '')}")
        try:
            return await or_none(self._call(ask, self._single))
        except LongAnswer as error:
            log.warning("opik_trace_too_long", trace_id=trace_id, reason=str(error.body))
            return None
        except ApiError as error:
            raise Unavailable(f"Opik refuses to show a trace: {error.status_code}: {reason(error)}") from error

    async def update(self, trace_id: str, project: str, changes: Mapping[str, Any]) -> None:
        """Change fields of a trace, each as a whole. What Opik refuses is counted and logged: another try would end
        alike. Raises Unavailable and Unauthorized."""
        body = {"project_name": project, **changes}
        ask = partial(self._client.send, "PATCH", f"traces/{quote(trace_id, '')}", orjson.dumps(body))
        async with self._single:
            try:
                await persist(ask, seconds=self._seconds, observe=partial(self._observe, "update"), waits=self._waits)
            except ApiError as error:
                log.warning("opik_update_refused", trace_id=trace_id, status=error.status_code, reason=reason(error))

    async def authorized(self) -> None:
        """Return where Opik takes our key. Raises Unauthorized, or Unavailable where it can't be asked; tries once."""
        try:
            await persist(lambda: self._client.send("POST", "auth", b""), seconds=0.0)
        except ApiError as error:
            if error.status_code == 404 and "workspace" in str(error.body).lower():
                raise Unauthorized(f"Opik has no such workspace: {reason(error)}") from error
            # Only 401 and 403 refuse the key: not every release of Opik has this endpoint.

    async def projects(self) -> list[str]:
        """Names of all projects, Opik's and the registered ones; remembered for a minute."""
        read_at, names = self._projects
        if not names or time.monotonic() - read_at > PROJECTS_SECONDS:

            async def ask(page: Query) -> dict[str, Any]:
                return await self._call(partial(self._client.call, "GET", "projects", query=page))

            try:
                listed = [str(project["name"]) async for page in numbered_pages(ask, PROJECTS_PAGE) for project in page]
            except ApiError as error:
                raise Unavailable(f"Opik refuses to list projects: {error.status_code}: {reason(error)}") from error
            names = list(dict.fromkeys((*self._named, *listed)))
            self._projects = (time.monotonic(), names)
        return names

    async def _pages(
        self,
        project: str,
        filters: list[dict[str, str]],
        since_ms: int | None,
        until_ms: int | None,
        *,
        texts: Sequence[str] = (),
        last: str = "",
        most: int = PAGE,
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Pages of a project's traces, newest first, without input and output; `texts` are those that come whole all
        the same, in smaller pages, but for a trace that is too long with them. `last`: the id of the trace after which
        to go on; `most`: traces in a page at most."""
        limit = min(WHOLE_PAGE if texts else PAGE, most)
        lean: dict[str, Any] = {"exclude": list(TEXTS), "truncate": True}
        options: dict[str, Any] = {"project_name": project, **lean}
        if texts:
            options |= {"exclude": [name for name in TEXTS if name not in texts], "truncate": False}
        if filters:
            options["filters"] = filters
        if since_ms is not None:
            options["from_time"] = _instant(since_ms)
        if until_ms is not None:
            options["to_time"] = _instant(until_ms)

        async def ask(after: dict[str, Any]) -> list[dict[str, Any]]:
            found = await or_none(self._call(partial(self._client.lines, "traces/search", options | after)))
            return found or []  # None: the project was removed, or never made

        async def too_long(after: dict[str, Any]) -> list[dict[str, Any]]:
            found = await ask(after | lean)
            log.warning("opik_trace_too_long", trace_id=found[0]["id"] if found else None)
            return found

        try:
            async for page in cursor_pages(ask, limit, last, too_long=too_long if texts else None):
                yield page
        except ApiError as error:
            raise Unavailable(f"Opik refuses a search: {error.status_code}: {reason(error)}") from error

    async def _call(self, call: Callable[[], Awaitable[T]], limiter: AsyncLimiter | None = None) -> T:
        async with limiter or self._limiter:
            observe = partial(self._observe, "search")
            return await persist(call, seconds=self._seconds, observe=observe, waits=self._waits)


def facts_of(trace: dict[str, Any], project: str) -> TraceFacts | None:
    """What the join needs of a trace as Opik returns it; None where the trace carries no response id."""
    metadata = trace.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("response_id"), str):
        return None
    held = {str(score.get("name")): score.get("value") for score in trace.get("feedback_scores") or ()}
    started = moment(trace.get("start_time"))
    return TraceFacts(
        response_id=metadata["response_id"],
        trace=trace_bytes(str(trace["id"])),
        project=project,
        vertical=text(metadata.get("vertical")),
        sub_agent=text(metadata.get("sub_agent")),
        category=text(metadata.get("category")),
        started=started,
        ended=moment(trace.get("end_time")) or started,
        judged=has_judge_score(trace),
        wrote={
            signal.kind: code_of(signal, held[signal.score])
            for signal in DECLARED.values()
            if held.get(signal.score) is not None
        },
        agent=text(metadata.get("agent_id")),
        agent_version=text(metadata.get("agent_version")),
        production=text(metadata.get("environment")).lower() in PRODUCTION,
        came=Came.NOT_COME if trace.get("end_time") else Came.RUNNING,
    )


def told(trace: dict[str, Any], project: str, own_key: bytes = b"") -> TraceFacts | None:
    """The same of a trace that was read with its input; None also for a trace of our own judges."""
    facts = facts_of(trace, project)
    if facts is None or is_own(trace["metadata"], facts.trace, own_key):
        return None
    session, said = trace["metadata"].get("session_id"), trace.get("input")
    facts.session = session if isinstance(session, str) else ""
    facts.said = input_hash(said) if said is not None else b""
    return facts


def has_judge_score(trace: dict[str, Any]) -> bool:
    """True where a judge scored the trace."""
    scores = trace.get("feedback_scores") or ()
    return any(is_judge_score(str(score.get("name")), score.get("source")) for score in scores)


def began(trace: Mapping[str, Any]) -> int:
    """When a trace began (ms) by its id, as Opik's searches have it."""
    return trace_began(trace_bytes(str(trace["id"]))) or moment(trace.get("start_time"))


def moment(value: Any) -> int:
    """A time of Opik's in ms, 0 where there is none."""
    return round(datetime.fromisoformat(value).timestamp() * 1000) if isinstance(value, str) else 0


def text(value: Any) -> str:
    return value[:128] if isinstance(value, str) else ""


def _scored_searches() -> list[list[dict[str, str]]]:
    """The filters of one search for each signal: traces with its score and without those of the searches before, since
    most traces carry several."""
    having = [_where("feedback_scores", signal.score) for signal in reversed(DECLARED.values())]
    return [
        [one, *({**earlier, "operator": "is_empty"} for earlier in having[:number])]
        for number, one in enumerate(having)
    ]


def _part_since(trace_id: str, since_ms: int) -> float:
    """How much of the time since `since_ms` lies after a trace, whose id says when it began: 0 to 1."""
    now = time.time() * 1000
    return min(max((now - trace_began(trace_bytes(trace_id))) / max(now - since_ms, 1.0), 0.0), 1.0)


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")
