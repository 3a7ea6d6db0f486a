"""The worker's side of dead letters without services: what breaks us, what stops us, how long we wait for Opik."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agents import thumbs
from agents.join.batches import Batch
from agents.ports import Unauthorized, Unavailable, Write
from schemas.dead_letters import ATTEMPTS, KEYLESS, MAC, REPLAY_ID, sealed_over
from schemas.outcomes import Cause, Kind
from streams.opik.client import ApiError, OpikScores, OutOfTries, persist
from tests.unit.agents.builders import thumb, trace
from tests.unit.agents.join.world import World
from tests.unit.streams.dead_letters.settling import settle


async def test_a_record_that_breaks_our_code_is_lettered_alone() -> None:
    world = World()
    for n in range(20):
        await world.tell(Kind.TRACE, trace(f"r{n}"))

    async def breaks(batch: Batch, items: Any, work: Any, ports: Any) -> Any:
        if any(item.response_id == "r13" for item in items):
            raise ZeroDivisionError("a secret of the user's")
        return await thumbs.AGENT.merge(batch, items, work, ports)

    sent = world.send(Kind.THUMBS, *(thumb(f"r{n}") for n in range(20)))
    assert await settle(world, replace(thumbs.AGENT, merge=breaks, prepare=None)) == []
    (letter,) = world.letters.letters
    assert (letter.cause, letter.record) == (Cause.INTERNAL_ERROR, sent[13])
    assert "secret" not in letter.detail
    assert [n for n in range(20) if world.score(f"r{n}") is None] == [13]
    assert world.committed[Kind.THUMBS, 0] == 20
    world.balance()


async def test_replayed_records_never_pause_a_partition_and_bad_ones_of_a_producer_do() -> None:
    world = World()
    for number in range(30):
        name = str(uuid.UUID(int=number))
        mac = KEYLESS.of(sealed_over("rampgate.thumbs", b"key", b"{bad", name, 1)).encode()
        world.send(Kind.THUMBS, b"{bad", headers=[(MAC, mac), (ATTEMPTS, b"1"), (REPLAY_ID, name.encode())])
    assert await settle(world, limit=10) == []
    assert len(world.letters.letters) == 30
    world.send(Kind.THUMBS, *[b"{bad"] * 10)
    (why,) = await settle(world, limit=10)
    assert "10 records in a row can't be decoded" in why
    assert world.committed[Kind.THUMBS, 0] == 30


async def test_a_batch_that_is_tried_again_counts_its_bad_records_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.retry.Retry.pause", lambda *_: 0.0)
    world, tries = World(), 0
    put = world.letters.put

    async def at_the_third(letters: Any) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Unavailable("Kafka producer: gone")
        await put(letters)

    monkeypatch.setattr(world.letters, "put", at_the_third)
    world.send(Kind.THUMBS, *[b"{bad"] * 6)
    assert await settle(world, limit=10) == []
    assert len(world.letters.letters) == 6


def refusing(status: int, headers: dict[str, str] | None = None, times: int = 10**9) -> Callable[..., Any]:
    calls = 0

    async def call(*_: Any, **__: Any) -> str:
        nonlocal calls
        calls += 1
        if calls <= times:
            raise ApiError(status_code=status, headers=headers or {}, body={"message": "no"})
        return "done"

    return call


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_seen_as_such_whatever_else_is_in_the_call(status: int) -> None:
    """Two deletions and a put run side by side; wrapped in a group, the error would dead-letter the record."""

    class Client:
        call = send = staticmethod(refusing(status))

    client: Any = Client()
    scores = OpikScores(client, in_flight=4, retry_seconds=1.0)
    name = "01900000-0000-7000-8000-000000000000"
    with pytest.raises(Unauthorized):
        await scores.write([Write(name, "p", score, value, "l") for score in "ab" for value in (None, 1.0)])


@pytest.mark.parametrize(
    ("headers", "times", "waited"),
    [({"RateLimit-Reset": "60"}, 1, 60), ({"Retry-After": "999"}, 1, 60), ({"RateLimit-Reset": "25"}, 2, 50)],
)
async def test_a_rate_limit_is_waited_out(headers: dict[str, str], times: int, waited: float) -> None:
    clock = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal clock
        clock += seconds

    answer = await persist(refusing(429, headers, times), seconds=60, sleep=sleep, now=lambda: clock)
    assert (answer, clock) == ("done", waited)


@pytest.mark.parametrize("headers", [{}, {"RateLimit-Reset": "60"}, {"RateLimit-Reset": "soon"}])
async def test_patience_ends(headers: dict[str, str]) -> None:
    clock = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal clock
        clock += seconds

    with pytest.raises(OutOfTries):
        await persist(refusing(429, headers), seconds=60, sleep=sleep, now=lambda: clock)
    assert clock <= 120
