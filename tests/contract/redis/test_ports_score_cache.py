"""What every ScoreCache promises (contracts §5): one suite on Redis with a real server, and on its twin in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest
import redis.asyncio as aioredis

from agents.ports import Unavailable
from evalcore.scoring.cache import LARGEST, MemoryScoreCache, ScoreCache
from streams.redis.score_cache import AT_ONCE, RedisScoreCache

Make = Callable[[float], ScoreCache]


@pytest.fixture(params=["redis", "memory"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    if request.param == "memory":
        yield lambda seconds: MemoryScoreCache(seconds)
        return
    async with AsyncExitStack() as closing:
        client = await closing.enter_async_context(aioredis.Redis.from_url(request.getfixturevalue("redis_url")))
        yield lambda seconds: RedisScoreCache(client, "rg:", seconds)


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
        mine, other = (RedisScoreCache(client, prefix, 60) for prefix in ("rg:", "other:"))
        await mine.put("k", b"1")
        assert await other.get_many(["k"]) == [None]
        (name,) = await client.keys("rg:j*")
        assert 59 < await client.ttl(name) <= 60


async def test_redis_out_of_reach_is_said_at_once() -> None:
    async with aioredis.Redis.from_url("redis://127.0.0.1:1/0") as client:
        cache = RedisScoreCache(client, "rg:", 60)
        with pytest.raises(Unavailable):
            await asyncio.wait_for(cache.get_many(["k"]), 20)
        with pytest.raises(Unavailable):
            await asyncio.wait_for(cache.put("k", b"1"), 20)


async def test_an_answer_takes_few_bytes(redis_url: str) -> None:
    async with aioredis.Redis.from_url(redis_url) as client:
        await RedisScoreCache(client, "rg:", 60).put("k", b"1")
        (name,) = await client.keys("rg:j*")
        assert await client.memory_usage(name) <= 104
