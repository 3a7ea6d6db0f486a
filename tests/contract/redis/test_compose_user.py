"""The user that docker-compose.yml gives Rampgate may do on a real Valkey all that Rampgate does, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import redis.asyncio as aioredis
from redis.exceptions import NoPermissionError, ResponseError

from agents.keys import OPERATOR_TOLD, turn_key
from agents.ports import Change
from rampgate.local.services.redis import RedisServer
from streams.redis.score_cache import RedisScoreCache
from streams.redis.seal_key import InstallationSeal
from streams.redis.state import RedisStore
from tests.contract.redis.stores import all_turns, far, now_ms
from tests.root import ROOT

PASSWORD = "of-the-test"


def rules() -> list[str]:
    """The words of the compose file's ACL line, with a password of ours."""
    found = re.search(r"\\nuser rampgate (on [^\\]*)\\n", (ROOT / "docker-compose.yml").read_text())
    assert found is not None
    return [word.replace("%s", PASSWORD) for word in found[1].split()]


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture
async def url(server: RedisServer) -> str:
    async with aioredis.Redis.from_url(server.url) as admin:
        await admin.execute_command("ACL", "SETUSER", "rampgate", "reset", *rules())
    return f"redis://rampgate:{PASSWORD}@127.0.0.1:{server.port}/0"


async def test_it_may_do_all_that_the_state_needs(url: str) -> None:
    store = RedisStore(url, "rg:")
    key, mark = turn_key("r1"), OPERATOR_TOLD.key("v")
    await store.apply(Change(sets={key: (b"a turn", far()), mark: (b"1", far())}, due={"r1": 1}))
    assert await store.read([key, mark]) == [b"a turn", b"1"]
    assert await all_turns(store) == {"r1": b"a turn"}
    assert await store.claim_due(now_ms(), 10, 1_000) == ["r1"]
    assert await store.counts([OPERATOR_TOLD.key("none")]) == [{}]
    assert await store.pools([OPERATOR_TOLD.key("none")]) == [[]]
    lease = store.lease(OPERATOR_TOLD.key("lease"), 60_000)
    assert [await lease.acquire(), await lease.renew(), await lease.held()] == [True, True, True]
    await lease.release()
    cache = RedisScoreCache(store.redis, store.prefix, 60.0)
    await cache.put("k", b"answer")
    assert await cache.get_many(["k"]) == [b"answer"]
    assert abs(await store.now_ms() - now_ms()) < 60_000
    seal = InstallationSeal(store, None)
    assert len((await seal()).secret) == 32
    assert not await seal.announce(now_ms())
    assert (await store.redis.info("memory"))["maxmemory_policy"] == "noeviction"
    assert (await store.redis.config_get("maxmemory-policy"))["maxmemory-policy"] == "noeviction"
    await store.close()


@pytest.mark.parametrize(
    "command",
    [
        ("GET", "other:key"),
        ("SET", "other:key", "x"),
        ("EVAL", "return redis.call('GET', 'other:key')", "0"),
        ("FLUSHALL",),
        ("KEYS", "*"),
        ("CONFIG", "SET", "dir", "/tmp"),
        ("SHUTDOWN", "NOSAVE"),
        ("REPLICAOF", "127.0.0.1", "1"),
        ("ACL", "SETUSER", "rampgate", "+@all"),
        ("MONITOR",),
    ],
)
async def test_it_may_do_nothing_else(url: str, command: tuple[str, ...]) -> None:
    async with aioredis.Redis.from_url(url) as client:
        with pytest.raises((NoPermissionError, ResponseError), match=r"(?i)permission|ACL"):
            await client.execute_command(*command)
        assert await client.ping()
