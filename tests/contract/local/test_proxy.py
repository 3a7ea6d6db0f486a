"""The proxy's faults are real to a client, and can be switched while connections are open."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import redis

from rampgate.local.services.ports import accepts
from rampgate.local.services.proxy import TcpProxy
from rampgate.local.services.redis import RedisServer


@pytest.fixture
def proxy(redis_server: RedisServer) -> Iterator[TcpProxy]:
    with TcpProxy("127.0.0.1", redis_server.port) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: TcpProxy) -> Iterator[redis.Redis]:
    with redis.Redis(port=proxy.port, socket_timeout=2.0, retry=None, single_connection_client=True) as client:
        client.ping()
        yield client


def test_it_passes_everything_through(client: redis.Redis, proxy: TcpProxy) -> None:
    value = b"x" * 3_000_000
    client.set("big", value)
    assert client.get("big") == value
    assert proxy.accepted == 1
    assert proxy.open_connections == 1


def test_delay_slows_both_ways(client: redis.Redis, proxy: TcpProxy) -> None:
    proxy.delay(0.5)
    began = time.monotonic()
    assert client.ping()
    assert time.monotonic() - began >= 1.0
    proxy.heal()
    began = time.monotonic()
    assert client.ping()
    assert time.monotonic() - began < 1.0, "as it was before"


def test_cut_resets_open_connections_only(client: redis.Redis, proxy: TcpProxy) -> None:
    proxy.cut()
    with pytest.raises(redis.ConnectionError):
        client.ping()
    assert client.ping()  # over a new connection
    assert proxy.accepted == 2


def test_a_lost_answer_leaves_the_work_done(client: redis.Redis, proxy: TcpProxy, redis_server: RedisServer) -> None:
    proxy.blackhole("down")
    with pytest.raises(redis.TimeoutError):
        client.set("written", "yes")
    with redis.Redis(port=redis_server.port) as direct:
        assert direct.get("written") == b"yes"
    proxy.heal()
    assert client.get("written") == b"yes"


def test_a_lost_request_never_arrives(client: redis.Redis, proxy: TcpProxy, redis_server: RedisServer) -> None:
    proxy.blackhole()
    with pytest.raises(redis.TimeoutError):
        client.set("lost", "yes")
    with redis.Redis(port=redis_server.port) as direct:
        assert direct.get("lost") is None


def test_refuse_closes_the_door_until_healed(client: redis.Redis, proxy: TcpProxy) -> None:
    proxy.refuse()
    assert not accepts(proxy.port)
    with pytest.raises(redis.ConnectionError):
        client.ping()
    proxy.heal()
    assert client.ping()


def test_a_dead_server_resets_the_client() -> None:
    with TcpProxy("127.0.0.1", 1) as proxy, redis.Redis(port=proxy.port, retry=None) as client:
        with pytest.raises(redis.ConnectionError):
            client.ping()
        port = proxy.port
    assert not accepts(port)
