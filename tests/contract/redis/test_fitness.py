"""Whether a real Redis is fit to hold the state: what evicts is refused, what takes no writes is said to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import redis as sync_redis

from agents.ports import Unavailable
from rampgate.local.services.redis import RedisServer
from rampgate.settings import Settings
from rampgate.worker import feed as feed_process
from rampgate.worker.feed import run_feed
from rampgate.worker.sweep import run_sweep
from streams.redis.fitness import Evicting, probe, refuse_evicting
from streams.redis.state import RedisStore


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """One whose configuration these tests may change."""
    with RedisServer() as started:
        yield started


@pytest.fixture
def client(server: RedisServer) -> Iterator[sync_redis.Redis]:
    with sync_redis.Redis.from_url(server.url) as opened:
        yield opened
        opened.replicaof("NO", "ONE")
        opened.config_set("maxmemory", "0")
        opened.config_set("maxmemory-policy", "noeviction")


@pytest.fixture
async def store(server: RedisServer) -> AsyncIterator[RedisStore]:
    made = RedisStore(server.url, "rg:", tries=2)
    yield made
    await made.close()


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random", "volatile-ttl", "volatile-lfu"])
async def test_a_server_that_may_evict_keys_is_refused_with_what_to_set(
    store: RedisStore, client: sync_redis.Redis, policy: str
) -> None:
    """Each of our keys has an end, so that the policies for such keys evict them too."""
    client.config_set("maxmemory", "100mb")
    client.config_set("maxmemory-policy", policy)
    with pytest.raises(Evicting, match=f"{policy}.*noeviction"):
        await refuse_evicting(store)


@pytest.mark.parametrize(("maxmemory", "policy"), [("0", "allkeys-lru"), ("100mb", "noeviction"), ("0", "noeviction")])
async def test_a_server_that_never_evicts_is_not_refused(
    store: RedisStore, client: sync_redis.Redis, maxmemory: str, policy: str
) -> None:
    client.config_set("maxmemory", maxmemory)
    client.config_set("maxmemory-policy", policy)
    await refuse_evicting(store)


@pytest.mark.parametrize("process", ["feed", "sweep"])
async def test_a_feed_and_a_sweep_refuse_it_before_they_read_anything(
    server: RedisServer, client: sync_redis.Redis, process: str
) -> None:
    """Neither Kafka nor DynamoDB is there to be asked."""
    client.config_set("maxmemory", "100mb")
    client.config_set("maxmemory-policy", "allkeys-lru")
    settings = Settings(redis=server.url, kafka="127.0.0.1:1", dynamodb_endpoint="http://127.0.0.1:1")
    running = run_feed(settings, once=True) if process == "feed" else run_sweep(settings, 0, "swept")
    with pytest.raises(Evicting, match="noeviction"):
        await asyncio.wait_for(running, 60)
    assert client.dbsize() == 0


async def test_somebody_who_lets_redis_evict_keys_meanwhile_stops_a_feed(
    server: RedisServer, client: sync_redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_process, "FITNESS_SECONDS", 0.05)
    settings = Settings(redis=server.url, kafka="127.0.0.1:1", http="127.0.0.1:0")
    running = asyncio.create_task(run_feed(settings, once=False))
    await asyncio.sleep(0.5)
    assert not running.done()
    client.config_set("maxmemory", "100mb")
    client.config_set("maxmemory-policy", "allkeys-lru")
    with pytest.raises(Evicting, match="noeviction"):
        await asyncio.wait_for(running, 60)


async def test_a_server_that_does_not_let_us_ask_is_not_refused(server: RedisServer, client: sync_redis.Redis) -> None:
    client.execute_command("ACL", "SETUSER", "few", "on", ">word", "~rg:*", "+@all", "-info")
    store = RedisStore(f"redis://few:word@127.0.0.1:{server.port}/0", "rg:", tries=2)
    try:
        await refuse_evicting(store)
        await probe(store)
    finally:
        await store.close()


async def test_a_full_server_is_said_to_be_full_until_it_has_room(store: RedisStore, client: sync_redis.Redis) -> None:
    await probe(store)
    client.config_set("maxmemory", "1mb")
    client.config_set("maxmemory-policy", "noeviction")
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"(?i)memory.* none is lost"):
            await probe(store)
    client.config_set("maxmemory", "0")
    await probe(store)


async def test_a_replica_is_said_to_be_one(store: RedisStore, client: sync_redis.Redis) -> None:
    with RedisServer() as other:
        client.replicaof("127.0.0.1", str(other.port))
        with pytest.raises(Unavailable, match=r"read only.* none is lost"):
            await probe(store)


async def test_a_server_that_is_away_is_unavailable() -> None:
    store = RedisStore("redis://127.0.0.1:1", "rg:", timeout=0.2, tries=1)
    for question in (refuse_evicting, probe):
        with pytest.raises(Unavailable):
            await question(store)
    await store.close()
