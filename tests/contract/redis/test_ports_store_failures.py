"""What RedisStore does when its Redis can't: it says so within bounds, and no step is applied by half."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
import redis as sync_redis
from redis.exceptions import ResponseError

from agents.ports import Change, Unavailable
from rampgate.local.services.ports import release_port, reserve_port
from rampgate.local.services.proxy import TcpProxy
from rampgate.local.services.redis import RedisServer
from streams.redis.state import RedisStore
from tests.contract.redis.stores import all_turns, far

PASSWORD = "s3cret/with@odd:signs"


async def each_call_fails(store: RedisStore) -> list[str]:
    """Every method raises Unavailable and none waits on; returns what they say."""
    said = []
    for call in (
        store.read(["a"]),
        store.apply(Change(sets={"a": (b"1", far())})),
        store.counts(["a"]),
        store.claim_due(1, 1, 1),
        store.start_at("a", b"1", far(), b""),
        all_turns(store),
    ):
        with pytest.raises(Unavailable) as caught:
            async with asyncio.timeout(60):
                await call
        said.append(str(caught.value))
    return said


async def test_a_server_that_is_not_there_is_unavailable_within_bounds() -> None:
    port = reserve_port()
    store = RedisStore(f"redis://:hidden@127.0.0.1:{port}/0", "rg:", timeout=0.5, tries=2)
    try:
        for message in await each_call_fails(store):
            assert "Redis" in message
            assert "hidden" not in message
    finally:
        await store.close()
        release_port(port)


async def test_a_wrong_or_missing_password_is_unavailable_and_is_not_told() -> None:
    with RedisServer(password=PASSWORD) as server:
        for user in ("", ":wrong-password@"):
            store = RedisStore(f"redis://{user}127.0.0.1:{server.port}/0", "rg:", tries=2)
            try:
                for message in await each_call_fails(store):
                    assert "wrong-password" not in message
            finally:
                await store.close()
        store = RedisStore(server.url, "rg:")
        try:
            assert await store.read(["a"]) == [b""], "the password in the URL is taken, whatever signs it has"
        finally:
            await store.close()


async def test_a_full_server_refuses_the_whole_step_and_still_answers_reads() -> None:
    with RedisServer() as server:
        store = RedisStore(server.url, "rg:")
        try:
            await store.apply(Change(sets={"kept": (b"1", far())}, due={"kept": 5}))
            with sync_redis.Redis.from_url(server.url) as client:
                client.set("filler", b"x" * 1_000_000)
                client.config_set("maxmemory", "1mb")
            step = Change(
                sets={f"t:{n}": (b"x" * 100, far()) for n in range(50)}, counts={"k": (far(), {"a": 1})}, due={"r": 1}
            )
            for _ in range(3):
                with pytest.raises(Unavailable, match=r"(?i)memory"):
                    await store.apply(step)
            assert await store.read([*step.sets, "kept"]) == [b""] * 50 + [b"1"]
            assert await store.counts(["k"]) == [{}]
            with sync_redis.Redis.from_url(server.url) as client:
                client.config_set("maxmemory", "0")
            assert await store.apply(step) == [], "once there is room the very same step applies"
        finally:
            await store.close()


@pytest.fixture
async def cut(redis_url: str) -> AsyncIterator[tuple[RedisStore, TcpProxy]]:
    """A store whose connection passes through a proxy."""
    at = urlsplit(redis_url)
    assert at.hostname is not None
    assert at.port is not None
    with TcpProxy(at.hostname, at.port) as proxy:
        store = RedisStore(f"redis://{proxy.address}/0", "rg:", timeout=1.0)
        yield store, proxy
        await store.close()


async def test_a_connection_that_was_cut_is_made_again_without_a_word(cut: tuple[RedisStore, TcpProxy]) -> None:
    store, proxy = cut
    await store.apply(Change(sets={"a": (b"1", far())}))
    proxy.cut()
    assert await store.read(["a"]) == [b"1"]


async def test_a_master_that_was_demoted_is_left_for_the_one_that_its_address_leads_to_now() -> None:
    """A failover that keeps connections, several of them: no caller sees more than a slower answer."""
    with RedisServer() as old, RedisServer() as new, TcpProxy("127.0.0.1", old.port) as proxy:
        store = RedisStore(f"redis://{proxy.address}/0", "rg:", timeout=2.0)
        try:
            await asyncio.gather(*(store.apply(Change(sets={f"a{n}": (b"1", far())})) for n in range(5)))
            with sync_redis.Redis.from_url(old.url) as client:
                client.replicaof("127.0.0.1", str(new.port))
            proxy.lead_to("127.0.0.1", new.port)
            steps = [Change(sets={f"b{n}": (b"2", far())}) for n in range(5)]
            assert await asyncio.gather(*map(store.apply, steps)) == [[]] * 5
            assert await store.read(["b0"]) == [b"2"]
            with sync_redis.Redis.from_url(new.url) as client:
                assert len(list(client.scan_iter("rg:b*"))) == 5, "the new master has them"
        finally:
            await store.close()


async def test_a_replica_that_stays_one_is_unavailable_within_bounds_and_used_again_once_it_is_a_master() -> None:
    with RedisServer() as server, RedisServer() as other, sync_redis.Redis.from_url(server.url) as client:
        store = RedisStore(server.url, "rg:", tries=2)
        step = Change(sets={"a": (b"1", far())}, counts={"k": (far(), {"a": 1})})
        try:
            client.replicaof("127.0.0.1", str(other.port))
            for _ in range(2):
                with pytest.raises(Unavailable, match="read only"):
                    await store.apply(step)
            client.replicaof("NO", "ONE")
            assert await store.read(["a"]) == [b""]
            assert await store.counts(["k"]) == [{}], "nothing of a refused step is there"
            assert await store.apply(step) == []
        finally:
            await store.close()


@pytest.mark.parametrize(
    "said",
    [
        "-READONLY You can't write against a read only replica.",
        "ERR Error running script (call to f_1): @user_script:9: -READONLY You can't write against a replica.",
    ],
)
async def test_a_refusal_by_a_replica_is_known_by_its_words_and_another_is_not_tried_again(said: str) -> None:
    store, tries = RedisStore("redis://127.0.0.1:1", "rg:", tries=3), 0

    async def command(refusal: str) -> str:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ResponseError(refusal)
        return "done"

    try:
        assert await store.call(lambda: command(said)) == "done"
        tries = 0
        with pytest.raises(Unavailable, match="WRONGTYPE"):
            await store.call(lambda: command("WRONGTYPE Operation against a key holding the wrong kind of value"))
    finally:
        await store.close()


async def test_scripts_that_the_server_forgot_are_sent_again(redis_url: str) -> None:
    store = RedisStore(redis_url, "rg:")
    try:
        await store.apply(Change(sets={"a": (b"1", far())}))
        await store.redis.script_flush()
        assert await store.read(["a"]) == [b"1"]
        await store.redis.script_flush()
        await store.apply(Change(sets={"a": (b"2", far())}))
        await store.redis.script_flush()
        assert await store.start_at("a", b"3", far(), b"2") == b"3"
        await store.redis.script_flush()
        assert await store.claim_due(1, 1, 1) == []
    finally:
        await store.close()


async def test_a_step_that_was_given_up_waiting_for_can_be_repeated(redis_url: str) -> None:
    """A cancelled call leaves no half-read answer behind that the next call would take for its own."""
    store = RedisStore(redis_url, "rg:")
    try:
        await store.apply(Change(sets={"a": (b"right", far()), "b": (b"wrong", far())}))
        for _ in range(20):
            task = asyncio.create_task(store.read(["b"] * 5_000))
            await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert await store.read(["a"]) == [b"right"]
    finally:
        await store.close()
