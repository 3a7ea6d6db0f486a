"""Injects faults, for tests only: the server serves these paths only when it is started with faults.

`POST /_faults` takes a rule or a list of rules; the first rule that matches a request and has times left acts:

    {"match": {"method": "PUT", "path": "feedback-scores", "score_name": "thumbs", "trace_id": "..."},
     "status": 503, "headers": {"Retry-After": "1"}, "delay_seconds": 0.2, "times": 2,
     "after_write": true, "drop": false, "late": false, "late_seconds": 0}

`path` is a part of the path; `score_name` and `trace_id` are searched in the body's scores (and the id in the path).
`after_write` does the request's work and then fails the answer; `drop` closes the connection instead of answering; a
rule with only a delay delays the request. `times` null: without end. `late` keeps the request, as a proxy's or a
database's queue does, and applies it after `late_seconds`, whether its client still waits or not; where these are 0, at
`POST /_late`, which answers how many it applied. `GET /_late`: how many are kept.
`GET /_requests`: requests per method and path template. `GET /_writes`: score rows written per trace and name.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import Any

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rampgate.local.opik.account import CONTROL
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import Routes, answer, bad_request, done


class Match(BaseModel):
    model_config = ConfigDict(extra="forbid")

    method: str | None = None
    path: str = ""
    score_name: str | None = None
    trace_id: str | None = None


class Rule(BaseModel):
    model_config = ConfigDict(extra="forbid")

    match: Match = Match()
    status: int | None = Field(None, ge=200, le=599)
    headers: dict[str, str] = {}
    body: Any = None
    delay_seconds: float = Field(0.0, ge=0)
    times: int | None = Field(None, ge=0)
    after_write: bool = False
    drop: bool = False
    late: bool = False
    late_seconds: float = Field(0.0, ge=0)


_RULES: TypeAdapter[list[Rule]] = TypeAdapter(list[Rule])


def _scores_in(raw: bytes) -> list[dict[str, Any]]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return []
    if not isinstance(value, dict):
        return []
    found = value.get("scores", [value])
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


class Faults:
    """The rules and the counts of one server with faults."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rules: list[Rule] = []
        self._requests: Counter[str] = Counter()
        self._late: list[tuple[asyncio.Event, asyncio.Task[web.StreamResponse]]] = []
        store.score_writes = Counter()

    async def _acting(self, request: web.Request) -> Rule | None:
        """The rule that acts on this request; uses up one of its times."""
        for rule in self._rules:
            match = rule.match
            if match.path not in request.path:
                continue
            if match.method is not None and match.method.upper() != request.method:
                continue
            if match.score_name is not None or match.trace_id is not None:
                in_path = match.trace_id is not None and match.trace_id.lower() in request.path.lower()
                hits = [
                    score
                    for score in _scores_in(await request.read())
                    if match.score_name in (None, score.get("name"))
                    and (in_path or match.trace_id in (None, score.get("id")))
                ]
                if not hits:
                    continue
            if rule.times is None:
                return rule
            if rule.times > 0:  # asked only here: nothing is awaited between this and the next line
                rule.times -= 1
                return rule
        return None

    def middleware(self) -> Middleware:
        @web.middleware
        async def act(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.path.removeprefix("/api").startswith(CONTROL):
                return await handler(request)
            resource = request.match_info.route.resource
            template = resource.canonical.removeprefix("/api") if resource else "unknown"
            self._requests[f"{request.method} {template}"] += 1
            rule = await self._acting(request)
            if rule is None:
                return await handler(request)
            if rule.delay_seconds:
                await asyncio.sleep(rule.delay_seconds)
            if rule.late:
                await request.read()
                applied = self._keep(rule, handler(request))
                if not rule.drop:
                    return await asyncio.shield(applied)
            elif rule.after_write or (rule.status is None and not rule.drop):
                response = await handler(request)
                if rule.status is None and not rule.drop:
                    return response
            if rule.drop:
                if request.transport is not None:
                    request.transport.abort()
                return web.Response(status=500)
            status = rule.status or 500
            content = {"code": status, "message": "injected fault"} if rule.body is None else rule.body
            response = answer(content, status)
            response.headers.update(rule.headers)
            return response

        return act

    def _keep(self, rule: Rule, work: Awaitable[web.StreamResponse]) -> asyncio.Task[web.StreamResponse]:
        """Applies a request once it is let go."""
        let_go = asyncio.Event()

        async def apply() -> web.StreamResponse:
            await let_go.wait()
            return await work

        if rule.late_seconds:
            asyncio.get_running_loop().call_later(rule.late_seconds, let_go.set)
        task = asyncio.ensure_future(apply())
        self._late = [kept for kept in self._late if not kept[1].done()]
        self._late.append((let_go, task))
        return task

    async def kept(self, request: web.Request) -> web.Response:
        return answer({"kept": sum(not task.done() for _, task in self._late)})

    async def let_go(self, request: web.Request) -> web.Response:
        kept, self._late = [one for one in self._late if not one[1].done()], []
        for event, task in kept:
            event.set()
            await asyncio.wait([task])
        return answer({"applied": len(kept)})

    async def add(self, request: web.Request) -> web.Response:
        try:
            value = orjson.loads(await request.read())
            rules = _RULES.validate_python(value if isinstance(value, list) else [value])
        except (orjson.JSONDecodeError, ValidationError) as error:
            raise bad_request(str(error)) from None
        self._rules += rules
        return done()

    async def clear(self, request: web.Request) -> web.Response:
        self._rules.clear()
        return done()

    async def requests(self, request: web.Request) -> web.Response:
        return answer(dict(self._requests))

    async def writes(self, request: web.Request) -> web.Response:
        counts: dict[str, dict[str, int]] = {}
        for (entity, name), count in (self._store.score_writes or {}).items():
            counts.setdefault(entity, {})[name] = count
        return answer(counts)

    async def clear_writes(self, request: web.Request) -> web.Response:
        self._store.score_writes = Counter()
        return done()

    def routes(self) -> Routes:
        return [
            ("POST", f"{CONTROL}faults", self.add),
            ("DELETE", f"{CONTROL}faults", self.clear),
            ("GET", f"{CONTROL}late", self.kept),
            ("POST", f"{CONTROL}late", self.let_go),
            ("GET", f"{CONTROL}requests", self.requests),
            ("GET", f"{CONTROL}writes", self.writes),
            ("DELETE", f"{CONTROL}writes", self.clear_writes),
        ]
