"""`GET /verdicts`: what was decided about an experiment (contracts §4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

from rampgate.http.wire import answer, parameters
from rampgate.questions import BadQuestion


def add_verdicts(app: web.Application, listed: Callable[[str], list[dict[str, Any]]]) -> None:
    async def verdicts(request: web.Request) -> web.Response:
        experiment = parameters(request, "experiment_id")["experiment_id"]
        if not experiment:
            raise BadQuestion("experiment_id: say whose verdicts, as in /verdicts?experiment_id=e-1")
        return answer({"experiment_id": experiment, "verdicts": listed(experiment)})

    app.add_routes([web.get("/verdicts", verdicts)])
