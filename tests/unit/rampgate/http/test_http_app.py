"""Who may ask over HTTP, how errors look, and that nothing from outside becomes markup. A new endpoint is a handler and
a route that `ENDPOINTS` lists: everything else comes by itself (CONTRIBUTING.md)."""

from __future__ import annotations

import base64
import socket
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from agents.join.turn import Turn, encode_turn
from agents.ports import Unavailable
from rampgate.console import BadQuery
from rampgate.http import routes
from rampgate.http.routes import Routes, Side, make_app
from rampgate.http.server import listen
from rampgate.http.wire import parameters, respond
from rampgate.settings import Settings, SettingsError
from schemas.answers import Check, Health
from schemas.verticals import Vertical
from streams.metrics import Metrics
from tests.unit.rampgate.http.http_world import NASTY, TRACE, World

TOKEN = "s3cret-ü"
PATHS = ["/", "/metrics", "/coverage", "/conservation", "/turns/r1", "/dead-letters", "/nothing-here"]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def client(world: World) -> AsyncIterator[Callable[..., Any]]:
    opened: list[TestClient[Any, Any]] = []

    async def ask(path: str, token: str | None = None, **headers: str) -> Any:
        it = TestClient(TestServer(make_app(world.side(token))))
        await it.start_server()
        opened.append(it)
        return await it.get(path, headers=headers)

    yield ask
    for it in opened:
        await it.close()


@pytest.mark.parametrize("path", PATHS)
async def test_everything_but_the_probes_needs_the_token(client: Any, path: str) -> None:
    for header in ("", "Bearer", "Bearer wrong", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Basic =="):
        answer = await client(path, TOKEN, **({"Authorization": header} if header else {}))
        assert answer.status == 401, header
        assert (await answer.json())["error"] == "unauthorized"
        assert "Bearer" in answer.headers["WWW-Authenticate"]
    answer = await client(path, TOKEN, Authorization=f"Bearer {TOKEN}")
    assert answer.status != 401
    password = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    assert (await client(path, TOKEN, Authorization=f"Basic {password}")).status != 401


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
async def test_probes_need_no_token_and_tell_reasons(client: Any, world: World, path: str) -> None:
    assert (await client(path, TOKEN)).status == 200
    world.health = Health(ok=False, reasons=["redis: gone"], checks={"redis": Check(ok=False, detail="gone")})
    answer = await client(path, TOKEN)
    assert answer.status == 503
    assert (await answer.json())["reasons"] == ["redis: gone"]


async def test_the_page_shows_text_from_outside_as_text(client: Any, world: World) -> None:
    world.queries._parts.verticals[NASTY] = Vertical.model_construct(name=NASTY)
    world.health = Health(ok=False, reasons=[f"kafka: {NASTY}"], checks={})
    await world.store.apply(world.counted(NASTY, 1))
    answer = await client("/")
    page = await answer.text()
    assert answer.status == 200
    assert NASTY not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Refresh"] == "15"
    assert not any(mark in page for mark in ("<script", "http://", "https://", "src=", "@import", "url("))


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/coverage?window=soon", 400, "bad_request"),
        ("/coverage?window=30d", 400, "bad_request"),
        ("/coverage?vertikal=x", 400, "bad_request"),
        ("/conservation?window=0", 400, "bad_request"),
        ("/turns/r1?purpose=curiosity", 400, "bad_request"),
        (f"/turns/{'r' * 600}", 400, "bad_request"),
        ("/turns/unheard-of", 404, "not_found"),
        ("/nothing-here", 404, "not_found"),
    ],
)
async def test_errors_are_json_that_says_what_is_wrong(client: Any, path: str, status: int, error: str) -> None:
    answer = await client(path)
    document = await answer.json()
    assert (answer.status, document["error"]) == (status, error)
    assert document["message"]


async def test_a_read_for_evaluation_is_audited_or_refused(client: Any, world: World) -> None:
    turn = Turn(trace=uuid.UUID(TRACE).bytes, project="p", time=world.clock.now_ms())
    world.store.values["t2:r1"] = (encode_turn(turn), world.clock.now_ms() + 1000)
    assert (await client("/turns/r1")).status == 200
    assert world.producer.messages == []
    assert (await client("/turns/r1?purpose=eval", **{"Rampgate-Caller": "curation"})).status == 200
    assert (await client("/turns/unheard-of?purpose=eval")).status == 404
    found, missed = world.producer.messages
    assert found[0] == "ps5.query_audit"
    assert b'"count":1' in found[2]
    assert b'"count":0' in missed[2]
    world.producer.broken = True
    refused = await client("/turns/r1?purpose=eval")
    assert refused.status == 503
    assert "audit" in (await refused.json())["message"]
    assert (await client("/turns/r1")).status == 200


async def test_metrics_forget_what_they_can_no_longer_know(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rampgate.http.scrape.FRESH_SECONDS", 0.0)
    rate = 'eval_correlation_coverage_rate_ratio{vertical="receipts"}'
    async with TestClient(TestServer(make_app(world.side()))) as client:

        async def text() -> str:
            return await (await client.get("/metrics")).text()

        assert rate not in await text()
        await world.store.apply(world.counted("receipts", 1))
        assert f"{rate} 1.0\n" in await text()
        await world.store.apply(world.counted("receipts", -1))
        assert rate not in await text()

        async def unreachable(keys: Any) -> Any:
            raise Unavailable("Redis: gone")

        monkeypatch.setattr(world.store, "counts", unreachable)
        without = await text()
        assert 'coverage_both_present_count{vertical="receipts"}' not in without
        assert 'rampgate_conservation_difference{signal="thumbs"}' not in without
        assert "rampgate_parked_signals NaN" in without


async def test_a_taken_port_is_an_error_only_if_somebody_named_it(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(SettingsError, match="can't listen on"):
            await listen(Settings(http=taken), world.side())
        unnamed = Settings.model_construct(_fields_set=set(), **{**Settings().model_dump(), "http": taken})
        listening = await listen(unnamed, world.side())
        assert not listening.url.endswith(taken)
        await listening.close()


SECRET = "of-the-test"
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
    side = Side(Metrics(), lambda: GOOD, lambda: GOOD, SECRET)
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    async with TestClient(TestServer(make_app(side))) as client:
        response = await client.get(f"/favourites{query}", headers=headers)
        return response.status, await response.json(), response.headers


@pytest.mark.parametrize(
    ("query", "token", "status", "body"),
    [
        ("?vertical=receipts", SECRET, 200, {"ok": True, "detail": "receipts"}),
        ("?vertical=receipts", None, 401, {"error": "unauthorized"}),
        ("?vertical=receipts", "another", 401, {"error": "unauthorized"}),
        ("", SECRET, 400, {"error": "bad_request", "message": "vertical: name one"}),
        ("?vertikal=receipts", SECRET, 400, {"message": "no such parameter: vertikal; there are vertical"}),
        ("?vertical=away", SECRET, 503, {"error": "unavailable"}),
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
