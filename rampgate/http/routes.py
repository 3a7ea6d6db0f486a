"""The HTTP application: which path answers what (contracts §4). Worker and feed share it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from rampgate.console import BadQuery
from rampgate.http.overview import render
from rampgate.http.registry import add_registry, add_verdicts
from rampgate.http.scrape import Scrape
from rampgate.http.security import authorization, caller_of
from rampgate.http.wire import errors, parameters, respond
from rampgate.queries import DeadLetterQuery, Queries
from rampgate.registry.serving import ServedRegistry
from schemas.answers import Health
from streams.metrics import Metrics

MAX_BODY = 65_536
MOST_DEAD_LETTERS = 1_000


@dataclass(frozen=True)
class Side:
    """What a process serves. `live` and `ready` answer at once, from what is known. Without `queries` (the feed) there
    are only probes and metrics."""

    metrics: Metrics
    live: Callable[[], Health]
    ready: Callable[[], Health]
    token: str | None = None
    queries: Queries | None = None
    registry: ServedRegistry | None = None
    verdicts: Callable[[Mapping[str, str]], Sequence[Mapping[str, Any]]] | None = None


def make_app(side: Side) -> web.Application:
    app = web.Application(middlewares=[authorization(side.token), errors], client_max_size=MAX_BODY)
    scrape = Scrape(side.metrics, side.queries) if side.queries is not None else None

    async def livez(request: web.Request) -> web.Response:
        return probe(side.live())

    async def readyz(request: web.Request) -> web.Response:
        return probe(side.ready())

    async def metrics(request: web.Request) -> web.Response:
        if scrape is not None:
            await scrape.refresh()
        return web.Response(body=side.metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.add_routes([web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    if side.queries is not None:
        add_queries(app, side, side.queries)
    if side.registry is not None:
        add_registry(app, side.registry)
    if side.verdicts is not None:
        add_verdicts(app, side.verdicts)
    return app


def add_queries(app: web.Application, side: Side, queries: Queries) -> None:
    async def coverage(request: web.Request) -> web.Response:
        query = parameters(request, "vertical", "window")
        return respond(await queries.coverage(query["vertical"], query["window"]))

    async def conservation(request: web.Request) -> web.Response:
        return respond(await queries.conservation(parameters(request, "window")["window"]))

    async def turn(request: web.Request) -> web.Response:
        purpose = parameters(request, "purpose")["purpose"]
        return respond(await queries.turn(request.match_info["response_id"], purpose, caller_of(request)))

    async def overview(request: web.Request) -> web.Response:
        parameters(request)
        page = await render(queries, side.ready(), writing=bool(side.metrics.write_enabled._value.get()))
        return web.Response(text=page, content_type="text/html", charset="utf-8")

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

    app.add_routes(
        [
            web.get("/coverage", coverage),
            web.get("/conservation", conservation),
            web.get("/turns/{response_id:.+}", turn),
            web.get("/dead-letters", dead_letters),
            web.get("/", overview),
        ]
    )


def several(text: str | None) -> list[str] | None:
    """Values separated by commas; None where there is none."""
    return [part for part in (text or "").split(",") if part] or None


def probe(health: Health) -> web.Response:
    return respond(health, 200 if health.ok else 503)
