"""What a lease promises, on a real Redis and on its twin in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from agents.ports import Change, Unavailable
from streams.redis.state import RedisStore
from tests.contract.redis.stores import KINDS, Either, far, memory_store

LONG = 60_000
BRIEF = 150


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Either]:
    if request.param == "memory":
        yield memory_store()
        return
    made = RedisStore(request.getfixturevalue("redis_url"), "lease:")
    yield made
    await made.close()


async def test_one_owner_holds_it_at_a_time_and_may_ask_again(store: Either) -> None:
    first, second = store.lease("x", LONG, "a"), store.lease("x", LONG, "b")
    assert [await first.acquire(), await second.acquire(), await first.acquire()] == [True, False, True]
    assert [await first.held(), await second.held()] == [True, False]
    again = store.lease("x", LONG, "a")
    assert await again.held(), "the owner's name counts, not the object"
    assert await store.lease("y", LONG, "b").acquire(), "another key is another lease"


async def test_of_many_who_ask_at_once_one_gets_it(store: Either) -> None:
    leases = [store.lease("x", LONG) for _ in range(20)]
    assert sum(await asyncio.gather(*(lease.acquire() for lease in leases))) == 1


async def test_only_its_owner_gives_it_up(store: Either) -> None:
    first, second = store.lease("x", LONG, "a"), store.lease("x", LONG, "b")
    assert await first.acquire()
    await second.release()
    assert await first.held()
    await first.release()
    await first.release()
    assert await second.acquire()


async def test_it_ends_by_itself_and_is_then_not_renewed(store: Either) -> None:
    brief, other = store.lease("x", BRIEF, "a"), store.lease("x", LONG, "b")
    assert await brief.acquire()
    await asyncio.sleep(2 * BRIEF / 1000)
    assert [await brief.held(), await brief.renew()] == [False, False], "what it protected may be gone"
    assert await other.acquire()
    assert [await brief.renew(), await brief.acquire()] == [False, False]
    await brief.release()
    assert await other.held()


@pytest.mark.parametrize("keep", ["renew", "acquire"])
async def test_who_holds_it_prolongs_it(store: Either, keep: str) -> None:
    held = store.lease("x", 4 * BRIEF, "a")
    assert await held.acquire()
    for _ in range(4):
        await asyncio.sleep(1.5 * BRIEF / 1000)
        assert await getattr(held, keep)()
    assert not await store.lease("x", LONG, "b").acquire()


async def test_a_step_that_checks_it_is_applied_only_while_it_is_held(store: Either) -> None:
    lease = store.lease("x", LONG)
    assert await lease.acquire()
    step = Change(checks={lease.key: lease.value}, sets={"done": (b"1", far())})
    assert await store.apply(step) == []
    await lease.release()
    assert await store.apply(step) == ["x"]


async def test_a_redis_that_is_away_is_said_to_be() -> None:
    store = RedisStore("redis://127.0.0.1:1", "lease:", timeout=0.2, tries=1)
    lease = store.lease("x", LONG)
    for method in (lease.acquire, lease.renew, lease.held, lease.release):
        with pytest.raises(Unavailable):
            await method()
    await store.close()
