"""`GET /eval-config` and `POST /refresh` (contracts §4, PC5 FR-8)."""

from __future__ import annotations

from aiohttp import web

from rampgate.http.wire import answer, parameters
from rampgate.registry import ServedRegistry

SERVED = frozenset({"loaded", "unchanged"})


def add_registry(app: web.Application, registry: ServedRegistry) -> None:
    async def eval_config(request: web.Request) -> web.Response:
        asked = parameters(request, "vertical", "category")
        return answer(registry.eval_config(asked["vertical"], asked["category"]))

    async def refresh(request: web.Request) -> web.Response:
        """422 where the files can't be served: what served before goes on, and the answer has the findings."""
        parameters(request)
        done = await registry.refresh("http")
        return answer(done, 200 if done.outcome in SERVED else 422)

    app.add_routes([web.get("/eval-config", eval_config), web.post("/refresh", refresh)])
