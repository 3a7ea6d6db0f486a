"""Who reads a shard and how far it is published; which dead letters were replayed: on a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from streams.dead_letters.replay_ledger import ReplayLedger
from streams.dynamodb.ledger import LeaseLost, Ledger
from streams.dynamodb.shards import Place
from streams.redis.state import RedisStore

ARN = "arn:aws:dynamodb:x:0:table/thumbs/stream/one"


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    made = RedisStore(redis_url, "rg:")
    yield made
    await made.close()


# The feed's.


async def test_one_feed_holds_a_shard_and_moves_its_place(store: RedisStore) -> None:
    ours, other = Ledger(store, "thumbs", "a"), Ledger(store, "thumbs", "b")
    lease = await ours.claim(ARN, "s")
    assert lease is not None
    assert lease.place == Place()
    assert await other.claim(ARN, "s") is None
    await lease.keep(Place("7", 70))
    assert await other.places(ARN) == {"s": Place("7", 70)}
    await lease.release()
    taken = await other.claim(ARN, "s")
    assert taken is not None
    assert taken.place == Place("7", 70), "it goes on where the other was"


async def test_a_feed_whose_lease_another_took_can_not_move_the_place(store: RedisStore) -> None:
    ours, other = Ledger(store, "thumbs", "a"), Ledger(store, "thumbs", "b")
    lease = await ours.claim(ARN, "s")
    assert lease is not None
    await store.redis.flushall()
    taken = await other.claim(ARN, "s")
    assert taken is not None
    assert lease.valid, "it can't know yet"
    with pytest.raises(LeaseLost):
        await lease.keep(Place("9", 90))
    assert not lease.valid
    assert await ours.places(ARN) == {}
    await lease.release()
    await taken.keep(Place("1", 10))


async def test_a_place_that_another_moved_meanwhile_is_not_overwritten_though_its_lease_is_free_again(
    store: RedisStore,
) -> None:
    ours, other = Ledger(store, "thumbs", "a", lease_ms=50), Ledger(store, "thumbs", "b")
    lease = await ours.claim(ARN, "s")
    assert lease is not None
    await lease.keep(Place("1", 10))
    await asyncio.sleep(0.1)
    taken = await other.claim(ARN, "s")
    assert taken is not None
    await taken.keep(Place("5", 50))
    await taken.release()
    with pytest.raises(LeaseLost):
        await lease.keep(Place("2", 20))
    assert await ours.places(ARN) == {"s": Place("5", 50)}


async def test_where_redis_was_emptied_whoever_reads_on_puts_its_place_back(store: RedisStore) -> None:
    ours = Ledger(store, "thumbs", "a")
    lease = await ours.claim(ARN, "s")
    assert lease is not None
    await lease.keep(Place("7", 70))
    await store.redis.flushall()
    await lease.keep()
    assert await ours.places(ARN) == {"s": Place("7", 70)}


async def test_a_lease_is_renewed_for_its_full_time(store: RedisStore) -> None:
    ours, other = Ledger(store, "thumbs", "a", lease_ms=400), Ledger(store, "thumbs", "b")
    lease = await ours.claim(ARN, "s")
    assert lease is not None
    for _ in range(4):
        await asyncio.sleep(0.2)
        await lease.keep()
    assert await other.claim(ARN, "s") is None


# The replays'.


async def test_a_letter_is_one_runs_to_replay_and_once_confirmed_nobodys(store: RedisStore) -> None:
    ours, other = ReplayLedger(store, 60_000), ReplayLedger(store, 60_000)
    assert await ours.claim(["x", "y"]) == [True, True]
    assert await other.claim(["x", "y", "z"]) == [None, None, True]
    await ours.confirm({"x": "thumbs/0/7"})
    assert await other.claim(["x", "y"]) == [False, None]
    assert await other.replayed(["x", "y"]) == ["thumbs/0/7", ""]


async def test_a_run_gives_back_its_own_claims_and_no_others(store: RedisStore) -> None:
    ours, other = ReplayLedger(store, 60_000), ReplayLedger(store, 60_000)
    await ours.claim(["x"])
    await ours.confirm({"done": "thumbs/0/7"})
    await other.release(["x", "done"])
    assert await other.claim(["x", "done"]) == [None, False]
    await ours.release(["x", "done"])
    assert await other.claim(["x", "done"]) == [True, False]


async def test_the_claim_of_a_run_that_died_lapses(store: RedisStore) -> None:
    ours, other = ReplayLedger(store, 60_000, lease_ms=50), ReplayLedger(store, 60_000)
    await ours.claim(["x"])
    await asyncio.sleep(0.1)
    assert await other.claim(["x"]) == [True]
