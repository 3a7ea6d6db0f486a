"""The application: which path answers what. The worker and the feed share it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from rampgate.http.overview import render
from rampgate.http.registry import add_registry, add_verdicts
from rampgate.http.scrape import Scrape
from rampgate.http.security import caller_of, doorman
from rampgate.http.wire import answer, errors, parameters
from rampgate.queries import Answers
from rampgate.registry.serving import ServedRegistry
from schemas.answers import Health
from streams.metrics import Metrics

MAX_BODY = 65_536


@dataclass(frozen=True)
class Side:
    """What a process shows. `live` and `ready` answer at once, from what is known. Without `answers` (the feed) there
    are only probes and metrics; `dead_letters` takes the query's parameters."""

    metrics: Metrics
    live: Callable[[], Health]
    ready: Callable[[], Health]
    token: str | None = None
    answers: Answers | None = None
    dead_letters: Callable[[Mapping[str, str]], Awaitable[dict[str, Any]]] | None = None
    registry: ServedRegistry | None = None
    verdicts: Callable[[Mapping[str, str]], Sequence[Mapping[str, Any]]] | None = None


def make_app(side: Side) -> web.Application:
    app = web.Application(middlewares=[doorman(side.token), errors], client_max_size=MAX_BODY)
    scrape = Scrape(side.metrics, side.answers) if side.answers is not None else None

    async def livez(request: web.Request) -> web.Response:
        return probe(side.live())

    async def readyz(request: web.Request) -> web.Response:
        return probe(side.ready())

    async def metrics(request: web.Request) -> web.Response:
        if scrape is not None:
            await scrape.refresh()
        return web.Response(body=side.metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.add_routes([web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    if side.answers is not None:
        add_answers(app, side, side.answers)
    if side.registry is not None:
        add_registry(app, side.registry)
    if side.verdicts is not None:
        add_verdicts(app, side.verdicts)
    return app


def add_answers(app: web.Application, side: Side, answers: Answers) -> None:
    async def coverage(request: web.Request) -> web.Response:
        asked = parameters(request, "vertical", "window")
        return answer(await answers.coverage(asked["vertical"], asked["window"]))

    async def conservation(request: web.Request) -> web.Response:
        return answer(await answers.conservation(parameters(request, "window")["window"]))

    async def turn(request: web.Request) -> web.Response:
        purpose = parameters(request, "purpose")["purpose"]
        return answer(await answers.turn(request.match_info["response_id"], purpose, caller_of(request)))

    async def overview(request: web.Request) -> web.Response:
        parameters(request)
        page = await render(answers, side.ready(), writing=bool(side.metrics.write_enabled._value.get()))
        return web.Response(text=page, content_type="text/html", charset="utf-8")

    app.add_routes(
        [
            web.get("/coverage", coverage),
            web.get("/conservation", conservation),
            web.get("/turns/{response_id:.+}", turn),
            web.get("/", overview),
        ]
    )
    listing = side.dead_letters
    if listing is not None:

        async def dead_letters(request: web.Request) -> web.Response:
            return answer(await listing(request.query))

        app.add_routes([web.get("/dead-letters", dead_letters)])


def probe(health: Health) -> web.Response:
    return answer(health, 200 if health.ok else 503)
