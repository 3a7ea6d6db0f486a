"""What every ScoreCache promises (contracts §5): one suite on Redis with a real server, and on its twin in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
import redis.asyncio as aioredis

from agents.ports import Unavailable
from evalcore.scoring.cache import LARGEST, AnswerSeal, MemoryScoreCache, ScoreCache
from streams.redis.score_cache import AT_ONCE, RedisScoreCache

Make = Callable[[float], ScoreCache]
SEAL = AnswerSeal(b"the installation's secret")


@pytest.fixture(params=["redis", "memory"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    if request.param == "memory":
        yield lambda seconds: MemoryScoreCache(seconds)
        return
    async with AsyncExitStack() as closing:
        client = await closing.enter_async_context(aioredis.Redis.from_url(request.getfixturevalue("redis_url")))
        yield lambda seconds: RedisScoreCache(client, "rg:", seconds, SEAL)


@pytest.fixture
def cache(make: Make) -> ScoreCache:
    return make(60.0)


async def test_what_was_put_comes_back_in_the_order_asked_for(cache: ScoreCache) -> None:
    for name in ("a", "b"):
        await cache.put(name, name.encode())
    assert await cache.get_many(["b", "nobody", "a", "b"]) == [b"b", None, b"a", b"b"]
    assert await cache.get_many([]) == []


async def test_values_are_bytes_of_any_kind(cache: ScoreCache) -> None:
    value = bytes(range(256))
    await cache.put("k", value)
    assert await cache.get_many(["k"]) == [value]


async def test_the_first_value_stands_and_is_told_to_who_comes_later(cache: ScoreCache) -> None:
    """Two workers that asked the same at one moment go by one answer."""
    assert await cache.put("k", b"1") is None
    assert await cache.put("k", b"2") == b"1"
    assert await cache.get_many(["k"]) == [b"1"]


async def test_a_value_is_gone_after_its_time_and_another_may_stand(make: Make) -> None:
    brief = make(1.0)
    await brief.put("k", b"1")
    assert await brief.get_many(["k"]) == [b"1"]
    await asyncio.sleep(1.2)
    assert await brief.get_many(["k"]) == [None]
    assert await brief.put("k", b"2") is None
    assert await brief.get_many(["k"]) == [b"2"]


@pytest.mark.parametrize(("size", "kept"), [(0, True), (LARGEST, True), (LARGEST + 1, False)])
async def test_a_value_is_bounded_in_size(cache: ScoreCache, size: int, kept: bool) -> None:
    await cache.put("k", b"x" * size)
    assert await cache.get_many(["k"]) == [b"x" * size if kept else None]


async def test_thousands_are_looked_up_at_once(cache: ScoreCache) -> None:
    names = [f"{n:064x}" for n in range(2 * AT_ONCE + 1)]
    await asyncio.gather(*(cache.put(name, name.encode()) for name in names[::2]))
    expected = [name.encode() if place % 2 == 0 else None for place, name in enumerate(names)]
    assert await cache.get_many(names) == expected


async def test_what_one_who_was_cancelled_put_is_kept(cache: ScoreCache) -> None:
    for names in (["a"], ["b", "c"]):
        putting = [asyncio.create_task(cache.put(name, name.encode())) for name in names]
        await asyncio.sleep(0)
        putting[0].cancel()
        await asyncio.gather(*putting, return_exceptions=True)
    for _ in range(1_000):
        if (found := await cache.get_many(["a", "b", "c"])) == [b"a", b"b", b"c"]:
            break
        await asyncio.sleep(0.01)
    assert found == [b"a", b"b", b"c"]


async def test_prefixes_keep_caches_apart(redis_url: str) -> None:
    async with aioredis.Redis.from_url(redis_url) as client:
        mine, other = (RedisScoreCache(client, prefix, 60, SEAL) for prefix in ("rg:", "other:"))
        await mine.put("k", b"1")
        assert await other.get_many(["k"]) == [None]
        (name,) = await client.keys("rg:j:*")
        assert 59 < await client.ttl(name) <= 60


async def test_redis_out_of_reach_is_said_at_once() -> None:
    async with aioredis.Redis.from_url("redis://127.0.0.1:1/0") as client:
        cache = RedisScoreCache(client, "rg:", 60, SEAL)
        with pytest.raises(Unavailable):
            await asyncio.wait_for(cache.get_many(["k"]), 20)
        with pytest.raises(Unavailable):
            await asyncio.wait_for(cache.put("k", b"1"), 20)


# Whoever can write to Redis moves no verdict.


class Planted:
    """A cache with one answer in it, and a hand in Redis."""

    def __init__(self, client: Any) -> None:
        self.client, self.refused = client, 0
        self.cache = self.of(SEAL)

    def of(self, seal: AnswerSeal) -> RedisScoreCache:
        def refuse() -> None:
            self.refused += 1

        return RedisScoreCache(self.client, "rg:", 60, seal, refuse)

    async def plant(self, value: bytes) -> str:
        """Put this in the place of the one answer; returns the name of its key."""
        (name,) = await self.client.keys("rg:j:*")
        await self.client.set(name, value, px=60_000)
        return str(name.decode())


@pytest.fixture
async def planted(redis_url: str) -> AsyncIterator[Planted]:
    async with aioredis.Redis.from_url(redis_url) as client:
        made = Planted(client)
        await made.cache.put("k", b"1")
        yield made


@pytest.mark.parametrize("value", [b"5", b"", b"x" * 16 + b"5", AnswerSeal(b"another secret").sealed("k", b"5")])
async def test_a_planted_answer_is_missing_and_counted_and_the_next_one_takes_its_place(
    planted: Planted, value: bytes
) -> None:
    await planted.plant(value)
    assert await planted.cache.get_many(["k"]) == [None]
    assert planted.refused == 1
    assert await planted.cache.put("k", b"2") is None, "no answer of ours was there"
    assert await planted.cache.get_many(["k"]) == [b"2"]
    assert await planted.cache.put("k", b"3") == b"2", "and again the first one stands"


async def test_an_answer_to_another_question_can_not_be_put_in_its_place(planted: Planted) -> None:
    """Also one that we sealed ourselves."""
    (k,) = await planted.client.keys("rg:j:*")
    await planted.cache.put("other", b"5")
    (other,) = set(await planted.client.keys("rg:j:*")) - {k}
    await planted.client.copy(other, k, replace=True)
    assert await planted.cache.get_many(["k", "other"]) == [None, b"5"]


async def test_of_two_workers_that_replace_a_planted_answer_both_go_by_one(planted: Planted) -> None:
    """Both have seen the planted one before either replaces it."""
    await planted.plant(b"5")
    first, second = planted.of(SEAL), planted.of(SEAL)
    assert await first._replaced({"k": b"5"}, {"k": b"1"}) == {"k": None}
    assert await second._replaced({"k": b"5"}, {"k": b"2"}) == {"k": b"1"}
    assert await planted.cache.get_many(["k"]) == [b"1"]


async def test_an_answer_takes_few_bytes(planted: Planted) -> None:
    (name,) = await planted.client.keys("rg:j:*")
    assert await planted.client.memory_usage(name) <= 120
