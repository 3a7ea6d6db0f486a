"""A new endpoint is a handler and a route that `ENDPOINTS` lists: everything else comes by itself (CONTRIBUTING.md)."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from agents.ports import Unavailable
from rampgate.console import BadQuery
from rampgate.http import routes
from rampgate.http.routes import Routes, Side, make_app
from rampgate.http.wire import parameters, respond
from schemas.answers import Check, Health
from streams.metrics import Metrics

TOKEN = "of-the-test"
GOOD = Health(ok=True, reasons=[], checks={})


def favourite_routes(side: Side) -> Routes:
    """As a contributor writes it, in `rampgate/http/routes.py`."""

    async def favourites(request: web.Request) -> web.Response:
        vertical = parameters(request, "vertical")["vertical"]
        if vertical is None:
            raise BadQuery("name one", "vertical")
        if vertical == "away":
            raise Unavailable("Redis at 127.0.0.1 can't be reached")
        return respond(Check(ok=side.ready().ok, detail=vertical))

    return [web.get("/favourites", favourites)]


async def get(query: str, token: str | None) -> tuple[int, Any, Any]:
    side = Side(Metrics(), lambda: GOOD, lambda: GOOD, TOKEN)
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    async with TestClient(TestServer(make_app(side))) as client:
        response = await client.get(f"/favourites{query}", headers=headers)
        return response.status, await response.json(), response.headers


@pytest.mark.parametrize(
    ("query", "token", "status", "body"),
    [
        ("?vertical=receipts", TOKEN, 200, {"ok": True, "detail": "receipts"}),
        ("?vertical=receipts", None, 401, {"error": "unauthorized"}),
        ("?vertical=receipts", "another", 401, {"error": "unauthorized"}),
        ("", TOKEN, 400, {"error": "bad_request", "message": "vertical: name one"}),
        ("?vertikal=receipts", TOKEN, 400, {"message": "no such parameter: vertikal; there are vertical"}),
        ("?vertical=away", TOKEN, 503, {"error": "unavailable"}),
    ],
)
async def test_a_listed_endpoint_has_token_errors_and_headers(
    monkeypatch: pytest.MonkeyPatch, query: str, token: str | None, status: int, body: dict[str, Any]
) -> None:
    monkeypatch.setattr(routes, "ENDPOINTS", [*routes.ENDPOINTS, favourite_routes])
    answered, document, headers = await get(query, token)
    assert answered == status
    assert document | body == document
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
