"""`GET /eval-config` and `POST /refresh` (PC5 FR-8); `GET /verdicts` of an experiment or agent (PC5 §5.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from evalcore.gates.history import ASKED_BY
from rampgate.console import BadQuery
from rampgate.http.wire import parameters, respond
from rampgate.registry.serving import ServedRegistry

SERVED = frozenset({"loaded", "unchanged"})


def add_registry(app: web.Application, registry: ServedRegistry) -> None:
    async def eval_config(request: web.Request) -> web.Response:
        query = parameters(request, "vertical", "category")
        return respond(registry.eval_config(query["vertical"], query["category"]))

    async def refresh(request: web.Request) -> web.Response:
        """Answers 422 where the files can't be served: what served before goes on, and the body has the findings."""
        parameters(request)
        done = await registry.refresh("http")
        return respond(done, 200 if done.outcome in SERVED else 422)

    app.add_routes([web.get("/eval-config", eval_config), web.post("/refresh", refresh)])


def add_verdicts(app: web.Application, listed: Callable[[Mapping[str, str]], Sequence[Mapping[str, Any]]]) -> None:
    async def verdicts(request: web.Request) -> web.Response:
        wanted = {name: word for name, word in parameters(request, *ASKED_BY).items() if word}
        if not wanted:
            raise BadQuery("experiment_id, agent_id or agent_version: say whose, as in /verdicts?experiment_id=e-1")
        return respond({**wanted, "verdicts": listed(wanted)})

    app.add_routes([web.get("/verdicts", verdicts)])
