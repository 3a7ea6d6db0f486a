"""Opik hands on what is no text: the trace that has it is read with a sign in its place, and so are the others."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from streams.opik.client import ApiError, OpikClient, read

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
