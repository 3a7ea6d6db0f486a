"""An answer is read up to a bound, as it was sent and as it is inflated."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator

import httpx
import pytest
from aiohttp import web

from evalcore.scoring.calls import CallFailed, Failure
from evalcore.scoring.chat_model import ChatModel
from evalcore.scoring.http_client import LONGEST_ANSWER, HttpClient, TooLong, bounded
from streams.gates.candidate import CandidateClient
from tests.unit.evalcore.scoring.scoring_rig import asked

MOST = 1_000


async def parts(content: bytes, size: int = 100) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"x" * MOST, ""),
        (b"x" * MOST, "identity"),
        (gzip.compress(b"x" * MOST, mtime=0), "gzip"),
        (zlib.compress(b"x" * MOST), "Deflate"),
    ],
)
async def test_what_fits_is_read_whole(content: bytes, encoding: str) -> None:
    assert await bounded(parts(content), encoding, MOST) == b"x" * MOST


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"x" * (MOST + 1), ""),
        (gzip.compress(b"x" * (MOST + 1), mtime=0), "gzip"),
        (zlib.compress(b"x" * 10**8), "deflate"),
    ],
)
async def test_what_is_longer_is_not_read(content: bytes, encoding: str) -> None:
    with pytest.raises(TooLong):
        await bounded(parts(content), encoding, MOST if len(content) < 10_000 else 200_000)


@pytest.mark.parametrize(("content", "encoding"), [(b"x", "br"), (b"no gzip", "gzip"), (b"x", "gzip, gzip")])
async def test_an_encoding_that_can_not_be_read_is_an_error_of_the_answer(content: bytes, encoding: str) -> None:
    with pytest.raises(httpx.DecodingError):
        await bounded(parts(content), encoding, MOST)


async def test_no_more_is_asked_for_once_it_is_too_long() -> None:
    seen = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal seen
        while True:
            seen += 1
            yield b"x" * 100

    with pytest.raises(TooLong):
        await bounded(endless(), "", MOST)
    assert seen == 11


@pytest.fixture
async def flood() -> AsyncIterator[str]:
    """A server that answers a few bytes of gzip with 100 MB of text, or sends text without end."""
    bomb = gzip.compress(b" " * 100_000_000)

    async def inflates(request: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    async def runs(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b" " * 65_536)

    app = web.Application()
    app.add_routes([web.post("/inflates/{tail:.*}", inflates), web.post("/runs/{tail:.*}", runs)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize("kind", ["inflates", "runs"])
async def test_a_model_that_answers_without_end_gives_no_score_and_takes_no_memory(flood: str, kind: str) -> None:
    async with HttpClient(2, 20.0) as client:
        with pytest.raises(CallFailed, match=f"more than {LONGEST_ANSWER >> 20} MB") as raised:
            await ChatModel(client, f"{flood}/{kind}").complete(asked())
    assert raised.value.kind is Failure.SLIP


@pytest.mark.parametrize("kind", ["inflates", "runs"])
async def test_a_candidate_that_answers_without_end_gives_no_output(flood: str, kind: str) -> None:
    async with HttpClient(2, 20.0) as client:
        found = await CandidateClient(client, f"{flood}/{kind}/x").answer({"input": "hi"})
    assert f"more than {LONGEST_ANSWER >> 20} MB" in str(found)
