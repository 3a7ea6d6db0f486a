"""The HTTP application: which path answers what (contracts §4). Worker and feed share it.

`ENDPOINTS` lists the functions that make routes. Each takes what the process serves and returns the routes of one part
of it, none where the process lacks that part. Authorization, JSON errors and headers are middleware: a handler reads
its parameters, asks, and responds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from agents.ports import Unavailable
from evalcore.gates.history import ASKED_BY
from rampgate.console import BadQuery
from rampgate.http.scrape import Scrape
from rampgate.http.security import SHARED, Admission, admitted, caller_of
from rampgate.http.wire import errors, parameters, respond
from rampgate.queries import DeadLetterQuery, Queries
from rampgate.registry.serving import ServedRegistry
from rampgate.report.html import html
from rampgate.report.state import worker_report
from schemas.answers import Conservation, CoverageAnswer, Health
from streams.metrics import Metrics

Routes = list[web.RouteDef]
MAX_BODY = 65_536
MOST_DEAD_LETTERS = 1_000
REFRESH = "15"
"""Seconds until a browser loads the page again."""
SERVED = frozenset({"loaded", "unchanged"})


@dataclass(frozen=True)
class Side:
    """Everything that a process serves over HTTP. `live` and `ready` answer at once, from the last checks. Without
    `queries`, as in the feed, there are only probes and metrics. `callers` maps tokens to names, besides `token`, which
    many may share; `hosts` are the names by which this process is asked."""

    metrics: Metrics
    live: Callable[[], Health]
    ready: Callable[[], Health]
    token: str | None = field(default=None, repr=False)
    queries: Queries | None = None
    registry: ServedRegistry | None = None
    verdicts: Callable[[Mapping[str, str]], Sequence[Mapping[str, Any]]] | None = None
    callers: Mapping[str, str] = field(default_factory=dict, repr=False)
    hosts: frozenset[str] = frozenset()

    @property
    def admission(self) -> Admission:
        shared = {self.token: SHARED} if self.token is not None else {}
        return Admission(self.hosts, {**shared, **self.callers})


def make_app(side: Side, *, only_probes: bool = False) -> web.Application:
    app = web.Application(middlewares=[admitted(side.admission), errors], client_max_size=MAX_BODY)
    for endpoint in [probe_routes] if only_probes else ENDPOINTS:
        app.add_routes(endpoint(side))
    return app


def probe_routes(side: Side) -> Routes:
    def respond_health(health: Health) -> web.Response:
        return respond(health, 200 if health.ok else 503)

    async def livez(request: web.Request) -> web.Response:
        return respond_health(side.live())

    async def readyz(request: web.Request) -> web.Response:
        return respond_health(side.ready())

    return [web.get("/livez", livez), web.get("/readyz", readyz)]


def metric_routes(side: Side) -> Routes:
    scrape = Scrape(side.metrics, side.queries) if side.queries is not None else None

    async def metrics(request: web.Request) -> web.Response:
        if scrape is not None:
            await scrape.refresh()
        return web.Response(body=side.metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return [web.get("/metrics", metrics)]


def query_routes(side: Side) -> Routes:
    queries = side.queries
    if queries is None:
        return []

    async def coverage(request: web.Request) -> web.Response:
        query = parameters(request, "vertical", "window")
        return respond(await queries.coverage(query["vertical"], query["window"]))

    async def conservation(request: web.Request) -> web.Response:
        return respond(await queries.conservation(parameters(request, "window")["window"]))

    async def turn(request: web.Request) -> web.Response:
        purpose = parameters(request, "purpose")["purpose"]
        return respond(await queries.turn(request.match_info["response_id"], purpose, caller_of(request)))

    async def dead_letters(request: web.Request) -> web.Response:
        query = parameters(request, *DeadLetterQuery._fields, "limit")
        limit = query["limit"] or str(MOST_DEAD_LETTERS)
        if not limit.isdecimal() or not 0 < int(limit) <= MOST_DEAD_LETTERS:
            raise BadQuery(f"give 1 to {MOST_DEAD_LETTERS}", "limit")
        wanted = DeadLetterQuery(
            several(query["cause"]),
            query["since"],
            query["until"],
            several(query["topic"]),
            query["key"],
            query["stage"],
            query["replay_id"],
        )
        return respond(dict(await queries.dead_letters(wanted, int(limit))))

    async def overview(request: web.Request) -> web.Response:
        parameters(request)
        writing = bool(side.metrics.write_enabled._value.get())
        try:
            figures: tuple[CoverageAnswer, Conservation] | str = (
                await queries.coverage(),
                await queries.conservation(),
            )
        except Unavailable as error:
            figures = str(error)
        page = html(worker_report(side.ready(), figures, datetime.now(UTC), writing=writing))
        return web.Response(text=page, content_type="text/html", charset="utf-8", headers={"Refresh": REFRESH})

    return [
        web.get("/coverage", coverage),
        web.get("/conservation", conservation),
        web.get("/turns/{response_id:.+}", turn),
        web.get("/dead-letters", dead_letters),
        web.get("/", overview),
    ]


def several(text: str | None) -> list[str] | None:
    """The values that commas separate; None for no value."""
    return [part for part in (text or "").split(",") if part] or None


def registry_routes(side: Side) -> Routes:
    """The registry's judges, and its refresh (PC5 FR-8)."""
    registry = side.registry
    if registry is None:
        return []

    async def eval_config(request: web.Request) -> web.Response:
        query = parameters(request, "vertical", "category")
        return respond(registry.eval_config(query["vertical"], query["category"]))

    async def refresh(request: web.Request) -> web.Response:
        """Read the files again. 422 where they can't be served: the body has the findings, the old version serves
        on."""
        parameters(request)
        done = await registry.refresh("http")
        return respond(done, 200 if done.outcome in SERVED else 422)

    return [web.get("/eval-config", eval_config), web.post("/refresh", refresh)]


def verdict_routes(side: Side) -> Routes:
    """The verdicts of an experiment, an agent or an agent's version (PC5 §5.5)."""
    list_verdicts = side.verdicts
    if list_verdicts is None:
        return []

    async def verdicts(request: web.Request) -> web.Response:
        wanted = {name: value for name, value in parameters(request, *ASKED_BY).items() if value}
        if not wanted:
            raise BadQuery("experiment_id, agent_id or agent_version: say whose, as in /verdicts?experiment_id=e-1")
        return respond({**wanted, "verdicts": list_verdicts(wanted)})

    return [web.get("/verdicts", verdicts)]


ENDPOINTS: list[Callable[[Side], Routes]] = [probe_routes, metric_routes, query_routes, registry_routes, verdict_routes]
