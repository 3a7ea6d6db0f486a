"""Reads requests and writes answers as Opik does: JSON bodies, pages, streams of JSON lines, ids, times and refusals.

Opik's errors have two bodies: `{"errors": [...]}` for validation (422), bad ids (400) and names that exist (409), and
`{"code", "message"}` for everything else. Ids are version 7 UUIDs in lower case, times are UTC with microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import orjson
import uuid6
from aiohttp import web

from rampgate.local.opik.store import Store

STORE = web.AppKey("store", Store)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Routes = list[tuple[str, str, Handler]]
MAX_BATCH = 1000
MAX_STREAM = 2000
ID_PATH = "{id:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}}"
EPOCH = "1970-01-01T00:00:00.000000Z"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_START = datetime(1970, 1, 1, tzinfo=UTC)
_END = datetime(2262, 4, 11, tzinfo=UTC)


class Refusal(Exception):
    """A request that is answered with an error. `body` is sent as JSON."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(str(body))
        self.status = status
        self.body = body


def coded(status: int, message: str) -> Refusal:
    return Refusal(status, {"code": status, "message": message})


def bad_request(message: str) -> Refusal:
    return coded(400, message)


def not_found(entity: str, identifier: str) -> Refusal:
    return coded(404, f"{entity} id: {identifier} not found")


def unreadable(detail: str) -> Refusal:
    """The body is no JSON, or a value in it can't be read as its type."""
    return bad_request(f"Unable to process JSON. {detail}")


def invalid(*errors: str) -> Refusal:
    return Refusal(422, {"errors": list(errors)})


def bad_id(entity: str) -> Refusal:
    return Refusal(400, {"errors": [f"{entity} id must be a version 7 UUID"]})


def taken(entity: str) -> Refusal:
    return Refusal(409, {"errors": [f"{entity} already exists"]})


async def body(request: web.Request) -> dict[str, Any]:
    """The request's JSON object (aiohttp has undone gzip); Refusal 400 if it is something else."""
    return parsed_object(await request.read())


def parsed_object(raw: bytes | str) -> dict[str, Any]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise unreadable(str(error)) from None
    if not isinstance(value, dict):
        raise unreadable("expected an object")
    return value


def batch(value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The list of objects under `key`, 1 to 1000 of them; Refusal otherwise."""
    items = value.get(key)
    if items is None:
        raise invalid(f"{key} must not be null")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise unreadable(f"{key} must be a list of objects")
    if not 1 <= len(items) <= MAX_BATCH:
        raise invalid(f"{key} size must be between 1 and {MAX_BATCH}")
    return items


def ids(value: dict[str, Any]) -> list[str]:
    found = value.get("ids")
    if not isinstance(found, list) or not 1 <= len(found) <= MAX_BATCH:
        raise invalid(f"ids size must be between 1 and {MAX_BATCH}")
    return [str(item).lower() for item in found]


def path_id(request: web.Request) -> str:
    return request.match_info["id"].lower()


def required_text(value: dict[str, Any], key: str) -> str:
    """A text that isn't blank; Refusal 422 in Opik's words otherwise."""
    text = value.get(key)
    if text is not None and not isinstance(text, str):
        raise unreadable(f"{key} must be a text")
    if text is None or not text.strip():
        raise invalid(f"{key} must not be blank")
    return text


def page_of(request: web.Request) -> tuple[int, int]:
    """(page, size), from 1 and 10 by default."""
    try:
        page, size = int(request.query.get("page", 1)), int(request.query.get("size", 10))
    except ValueError:
        raise bad_request("page and size must be whole numbers") from None
    if page < 1:
        raise bad_request("query param page must be greater than or equal to 1")
    if size < 1:
        raise bad_request("query param size must be greater than or equal to 1")
    return page, size


def paged(page: int, total: int, content: list[Any]) -> web.Response:
    return answer({"page": page, "size": len(content), "total": total, "content": content})


def stream_limit(value: dict[str, Any], key: str) -> int:
    limit = value.get(key) or 500
    if not isinstance(limit, int) or not 1 <= limit <= MAX_STREAM:
        raise invalid(f"{key} must be between 1 and {MAX_STREAM}")
    return limit


def lines(items: Iterable[dict[str, Any]]) -> web.Response:
    """One JSON object per line, lines ended with CRLF."""
    payload = b"".join(orjson.dumps(item) + b"\r\n" for item in items)
    return web.Response(body=payload, content_type="application/octet-stream")


def answer(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def done() -> web.Response:
    return web.Response(status=204)


def created(request: web.Request, identifier: str) -> web.Response:
    return web.Response(status=201, headers={"Location": f"{request.url.with_query(None)}/{identifier}"})


def new_id() -> str:
    return str(uuid6.uuid7())


def parsed_id(value: Any, where: str) -> str:
    """Any UUID, in lower case; Refusal 400 when it isn't one."""
    text = value.lower() if isinstance(value, str) else ""
    if not _UUID.fullmatch(text):
        raise unreadable(f"{where}: {value!r} is not a UUID")
    return text


def version_7(value: Any, entity: str) -> str:
    """A version 7 UUID, in lower case; Refusal 400 in Opik's words when it isn't (`entity` is trace or span)."""
    text = value.lower() if isinstance(value, str) else ""
    match = _UUID.fullmatch(text)
    if match is None:
        raise unreadable(f"{entity} id: {value!r} is not a UUID")
    if match[1] != "7":
        raise bad_id(entity)
    return text


def now() -> str:
    return _text(datetime.now(UTC))


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parsed_time(value: Any, where: str) -> datetime:
    """An ISO 8601 time (or epoch seconds) within ClickHouse's range; Refusal 400 otherwise."""
    try:
        moment = datetime.fromtimestamp(value, UTC) if isinstance(value, int) else datetime.fromisoformat(value)
    except (ValueError, TypeError, OverflowError, OSError):
        raise unreadable(f"{where}: {value!r} is not a time") from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if not _START <= moment < _END:
        raise unreadable(f"{where}: must be between 1970-01-01 and 2262-04-11")
    return moment


def normal_time(value: Any, where: str) -> str:
    """As `parsed_time`, in the one spelling that is stored, so that text order is time order."""
    return _text(parsed_time(value, where))


def id_floor(value: Any, where: str) -> str:
    """The smallest version 7 UUID of that millisecond: Opik's from/to times bound the ids, not the start times."""
    milliseconds = int(parsed_time(value, where).timestamp() * 1000)
    digits = f"{milliseconds:012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-000000000000"
