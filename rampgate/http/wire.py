"""Answers on the wire: models as JSON, every error as JSON that says what to do."""

from __future__ import annotations

from typing import Any

import orjson
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel

from agents.ports import Unauthorized, Unavailable
from rampgate.queries import BadQuestion
from rampgate.registry.view import UnknownName
from schemas.dead_letters import clean
from streams.queries.turn_view import TurnNotFound

log = structlog.get_logger(__name__)


def answer(document: BaseModel | dict[str, Any] | list[Any], status: int = 200) -> web.Response:
    content = document.model_dump(mode="json") if isinstance(document, BaseModel) else document
    return web.Response(body=orjson.dumps(content) + b"\n", status=status, content_type="application/json")


def refuse(status: int, error: str, message: str, **more: Any) -> web.Response:
    """`error` and what more there is are for programs, `message` for people."""
    return answer({"error": error, "message": clean(message), **more}, status)


def parameters(request: web.Request, *known: str) -> dict[str, str | None]:
    """The query's parameters, None where absent. Unknown ones are an error, not a silent default."""
    strange = sorted(set(request.query) - set(known))
    if strange:
        raise BadQuestion(f"no such parameter: {', '.join(strange)[:100]}; there are {', '.join(known) or 'none'}")
    return {name: request.query.get(name) for name in known}


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """No stack trace and no HTML leaves; what we did not foresee is logged whole."""
    try:
        return await handler(request)
    except BadQuestion as error:
        return refuse(400, "bad_request", str(error))
    except UnknownName as error:
        return refuse(404, f"unknown_{error.kind}", str(error), near=error.near)
    except TurnNotFound as error:
        return refuse(404, "not_found", str(error))
    except Unavailable as error:
        return refuse(503, "unavailable", str(error))
    except Unauthorized as error:
        return refuse(503, "opik_unauthorized", str(error))
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return refuse(
            error.status, (error.reason or "error").lower().replace(" ", "_"), f"{request.method} {request.path}"
        )
    except Exception:
        log.exception("http_failed", path=request.path)
        return refuse(500, "internal_error", "this answer failed; the process's log has the error")
