"""`GET /verdicts`: what was decided about an experiment, or an agent definition (contracts §4; PC5 §5.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from evalcore.gates.history import ASKED_BY
from rampgate.http.wire import answer, parameters
from rampgate.questions import BadQuestion


def add_verdicts(app: web.Application, listed: Callable[[Mapping[str, str]], Sequence[Mapping[str, Any]]]) -> None:
    async def verdicts(request: web.Request) -> web.Response:
        wanted = {name: word for name, word in parameters(request, *ASKED_BY).items() if word}
        if not wanted:
            raise BadQuestion("experiment_id, agent_id or agent_version: say whose, as in /verdicts?experiment_id=e-1")
        return answer({**wanted, "verdicts": listed(wanted)})

    app.add_routes([web.get("/verdicts", verdicts)])
