"""A store whose URL names Sentinels follows the master through a failover (a real Sentinel, two real servers)."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pytest
import redis as sync_redis

from agents.ports import Change, Unavailable
from rampgate.local.services.ports import release_port, reserve_port
from rampgate.local.services.process import ChildProcess
from rampgate.local.services.redis import RedisServer, find_server
from rampgate.local.services.service import PortService
from streams.redis.state import RedisStore
from tests.contract.redis.stores import far

SERVICE = "main"


class Sentinel(PortService):
    """One Sentinel that alone decides on a failover."""

    name: ClassVar[str] = "sentinel"

    def __init__(self, master: RedisServer) -> None:
        super().__init__()
        self._master = master

    def _prepare(self, folder: Path) -> ChildProcess:
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {folder}",
            f"sentinel monitor {SERVICE} 127.0.0.1 {self._master.port} 1",
            f"sentinel down-after-milliseconds {SERVICE} 1000",
            f"sentinel failover-timeout {SERVICE} 3000",
        ]
        config = folder / "sentinel.conf"
        config.write_text("\n".join(lines) + "\n")
        return ChildProcess(self.name, [str(find_server(folder)), str(config), "--sentinel"], folder)

    def _answers(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")

    def knows_replica(self) -> bool:
        with sync_redis.Redis(port=self.port) as client:
            found = client.execute_command("SENTINEL", "REPLICAS", SERVICE)
        return bool(found)

    def fails_over(self) -> bool:
        """Whether the Sentinel has begun what it was asked for: it knows how its replicas are only after a while."""
        with sync_redis.Redis(port=self.port) as client:
            try:
                client.execute_command("SENTINEL", "FAILOVER", SERVICE)
            except sync_redis.ResponseError:
                return False
        return True


@pytest.fixture
def pair() -> Iterator[tuple[RedisServer, RedisServer, Sentinel]]:
    """A master, its replica, and the Sentinel that watches them."""
    with RedisServer() as master, RedisServer() as replica:
        with sync_redis.Redis.from_url(replica.url) as client:
            client.replicaof("127.0.0.1", str(master.port))
            until(lambda: client.info("replication")["master_link_status"] == "up", "a replica in step")
        with Sentinel(master) as sentinel:
            until(sentinel.knows_replica, "a Sentinel that knows both")
            yield master, replica, sentinel


def until(held: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Wait until `held` returns true. A Sentinel that demotes a server ends its connections: that is "not yet"."""
    deadline = time.monotonic() + seconds
    while True:
        with suppress(sync_redis.ConnectionError):
            if held():
                return
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.1)


@pytest.mark.parametrize("how", ["asked for", "the master dies"])
async def test_a_store_goes_on_at_the_new_master(pair: tuple[RedisServer, RedisServer, Sentinel], how: str) -> None:
    """The first Sentinel that the URL names is away."""
    master, replica, sentinel = pair
    away = reserve_port()
    store = RedisStore(f"redis+sentinel://127.0.0.1:{away},127.0.0.1:{sentinel.port}/{SERVICE}/0", "rg:", timeout=2.0)
    try:
        assert await store.apply(Change(sets={"a": (b"1", far())})) == []
        with sync_redis.Redis.from_url(replica.url) as client:
            until(lambda: client.get("rg:a") == b"1", "a copy of what was written")
            if how == "asked for":
                until(sentinel.fails_over, "a Sentinel that finds the replica fit")
            else:
                master.kill()
            until(lambda: client.info("replication")["role"] == "master", "a new master", 60.0)
        if how == "asked for":  # until then both take writes, and those of the old one are lost
            with sync_redis.Redis.from_url(master.url) as client:
                until(lambda: client.info("replication")["role"] == "slave", "the old master to follow")
        deadline = time.monotonic() + 30.0
        while True:
            try:
                assert await store.apply(Change(sets={"b": (b"2", far())})) == []
                break
            except Unavailable:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.2)
        assert await store.read(["a", "b"]) == [b"1", b"2"]
        with sync_redis.Redis.from_url(replica.url) as client:
            assert client.get("rg:b") == b"2"
    finally:
        await store.close()
        release_port(away)


async def test_a_service_that_no_sentinel_knows_is_unavailable_and_its_login_is_not_told(
    pair: tuple[RedisServer, RedisServer, Sentinel],
) -> None:
    _, _, sentinel = pair
    store = RedisStore(f"redis+sentinel://:hidden@127.0.0.1:{sentinel.port}/other", "rg:", tries=2)
    try:
        with pytest.raises(Unavailable, match="other") as caught:
            await store.read(["a"])
        assert "hidden" not in str(caught.value)
    finally:
        await store.close()
