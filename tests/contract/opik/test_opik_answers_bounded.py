"""Odd answers of Opik, or of what stands in front of it: one without end is read up to a bound, and what is no text is
read with a sign in its place; nothing good is lost with it."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import uuid6
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from agents.ports import Refusal, Unavailable, Write
from evalcore.scoring.http_client import LONGEST_ERROR
from schemas.outcomes import Cause
from streams.opik import client as opik_client
from streams.opik.client import ApiError, LongAnswer, OpikClient, OpikScores, read
from streams.opik.datasets import OpikDatasets
from streams.opik.traces import OpikTraces
from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.contract.opik.traces_rig import MINUTE, Rig, now

BOMB = gzip.compress(b" " * 100_000_000)
MEGABYTE = 1 << 20


class Flood:
    """Answers each request with this status, in the form that the first part of its path names, without end."""

    def __init__(self) -> None:
        self.status, self.sent = 200, 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        if request.path.startswith("/inflates"):
            return web.Response(status=self.status, body=BOMB, headers={"Content-Encoding": "gzip"})
        answer = web.StreamResponse(status=self.status)
        await answer.prepare(request)
        while True:
            await answer.write(b" " * 65_536)
            self.sent += 65_536


@pytest.fixture
def flood() -> Flood:
    return Flood()


@pytest.fixture(params=["inflates", "runs"])
async def client(request: pytest.FixtureRequest, flood: Flood) -> AsyncIterator[OpikClient]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", flood.answer)
    async with TestServer(app) as server:
        made = OpikClient(str(server.make_url(f"/{request.param}")), "default", None, 60.0, 4)
        yield made
        await made.close()


def writes(count: int, value: float | None = 1.0) -> list[Write]:
    return [Write(str(uuid6.uuid7()), "p", "user_signal_thumbs", value, "user_mobile") for _ in range(count)]


async def test_no_more_than_the_bound_is_read_of_an_answer_without_end(client: OpikClient, flood: Flood) -> None:
    with pytest.raises(LongAnswer, match="200"):
        await client.call("GET", "projects")
    assert flood.sent < opik_client.LONGEST_ANSWER + 32 * MEGABYTE, "what was sent lies in buffers of both ends"


@pytest.mark.parametrize("value", [1.0, None])
async def test_a_score_is_stored_whatever_else_opik_answers(client: OpikClient, value: float | None) -> None:
    scores = OpikScores(client, in_flight=2, retry_seconds=0.0)
    assert await scores.write(writes(2, value)) == [None, None]


async def test_of_an_error_without_end_the_beginning_is_read(client: OpikClient, flood: Flood) -> None:
    flood.status = 422
    with pytest.raises(ApiError) as raised:
        await client.send("GET", "projects")
    assert len(str(raised.value.body)) <= LONGEST_ERROR
    (refused,) = await OpikScores(client, in_flight=2, retry_seconds=0.0).write(writes(1))
    assert isinstance(refused, Refusal)
    assert refused.cause is Cause.OPIK_REJECTED


async def test_a_trace_without_end_is_none_that_can_be_used(client: OpikClient) -> None:
    traces = OpikTraces(client, per_minute=60_000, retry_seconds=0.0)
    assert await traces.get(str(uuid6.uuid7())) is None
    assert await traces.held({"r": str(uuid6.uuid7())}) == {}
    with pytest.raises(Unavailable):
        await traces.projects()


async def test_pages_that_are_too_long_are_read_in_smaller_ones(
    opik: ScriptedOpik, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound that stopped a search would stop rebuild and sweep for good."""
    monkeypatch.setattr(opik_client, "LONGEST_ANSWER", 100_000)
    client = OpikClient(opik.url, "default", None, 10.0, 4)
    traces = OpikTraces(client, per_minute=60_000, retry_seconds=1.0, projects=("a",))
    at = now() - MINUTE
    await Rig(traces, opik).add(*((f"r-{number}", at) for number in range(30)), category="c" * 9_000)
    found = await traces.find({f"r-{number}": at for number in range(30)})
    assert len(found) == 30
    await opik.call("POST", "/v1/private/datasets", {"name": "golden"})
    items = [{"source": "manual", "data": {"input": "x" * 9_000, "number": number}} for number in range(30)]
    await opik.call("PUT", "/v1/private/datasets/items", {"dataset_name": "golden", "items": items})
    dataset = await OpikDatasets(client, 1.0).read("golden", None, 1)
    assert dataset is not None
    assert sorted(item["number"] for item in dataset.items) == list(range(30))
    await client.close()
    monkeypatch.setattr(opik_client, "LONGEST_ANSWER", 5_000)
    client = OpikClient(opik.url, "default", None, 10.0, 4)
    with pytest.raises(Unavailable, match="search"):
        await OpikTraces(client, per_minute=60_000, retry_seconds=1.0, projects=("a",)).find({"r-0": at})
    await client.close()


JSON = st.recursive(st.text(st.characters(exclude_categories=())) | st.integers(-9, 9), st.lists, max_leaves=8)


@given(JSON, st.booleans())
def test_half_of_a_surrogate_pair_becomes_a_sign_and_all_else_stays(value: Any, ascii_only: bool) -> None:
    written = json.dumps(value, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    found = read(written)
    orjson.dumps(found)
    if not any(map(half, json.dumps(value, ensure_ascii=False))):
        assert found == value


def half(character: str) -> bool:
    return 0xD800 <= ord(character) <= 0xDFFF


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (rb'"a\ud800b"', "a\ufffdb"),
        (rb'"\udc00\ud800"', "\ufffd\ufffd"),
        (rb'"\ud83d\ude00 \ud800"', "\U0001f600 \ufffd"),
        (rb'"\\ud800 \ud800"', "\\ud800 \ufffd"),
        (b'"\xff"', "\ufffd"),
    ],
)
def test_what_stands_around_it_is_read_as_it_is(written: bytes, found: str) -> None:
    assert read(written) == found


async def test_a_search_brings_the_traces_beside_one_whose_text_is_none() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b'{"id": "1", "input": "\\ud800"}\n{"id": "2", "input": "hello"}\n')

    async def broken(request: web.Request) -> web.Response:
        return web.Response(body=b'{"id": "1", "input": "')

    app = web.Application()
    app.router.add_post("/v1/private/traces/search", answer)
    app.router.add_post("/v1/private/broken", broken)
    async with TestServer(app) as server:
        client = OpikClient(str(server.make_url("/")), "default", None, 60.0, 1)
        found = await client.lines("traces/search", {})
        assert [trace["input"] for trace in found] == ["\ufffd", "hello"]
        with pytest.raises(ApiError, match="200"):
            await client.lines("broken", {})
        await client.close()
