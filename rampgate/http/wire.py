"""Reads a query's parameters and writes answers: models as JSON, every error as JSON that says what to do."""

from __future__ import annotations

from typing import Any

import orjson
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel

from agents.ports import Unauthorized, Unavailable
from rampgate.console import BadQuery
from rampgate.registry.view import UnknownName
from schemas.dead_letters import clean
from streams.queries.turn_view import TurnNotFound

log = structlog.get_logger(__name__)


def respond(document: BaseModel | dict[str, Any] | list[Any], status: int = 200) -> web.Response:
    content = document.model_dump(mode="json") if isinstance(document, BaseModel) else document
    return web.Response(body=orjson.dumps(content) + b"\n", status=status, content_type="application/json")


def refuse(status: int, error: str, message: str, **more: Any) -> web.Response:
    """An error as JSON: `error` and `more` are for programs, `message` is for people."""
    return respond({"error": error, "message": clean(message), **more}, status)


def parameters(request: web.Request, *known: str) -> dict[str, str | None]:
    """The query's parameters, None where absent. Raises BadQuery for an unknown one, which would be ignored
    silently."""
    unknown = sorted(set(request.query) - set(known))
    if unknown:
        raise BadQuery(f"no such parameter: {', '.join(unknown)[:100]}; there are {', '.join(known) or 'none'}")
    return {name: request.query.get(name) for name in known}


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every error as JSON, without stack trace or HTML; an unexpected one is logged whole."""
    try:
        return await handler(request)
    except UnknownName as error:
        return refuse(404, f"unknown_{error.kind}", str(error), near=error.near)
    except BadQuery as error:
        return refuse(400, "bad_request", str(error))
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
        return refuse(500, "internal_error", "this request failed; the process's log has the error")
