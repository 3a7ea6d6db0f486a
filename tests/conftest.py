"""Real services for every suite: started once a session (a worker process under xdist), at the first test that asks.

On a developer's machine a service that can't be had skips its tests and says why; under CI it fails them.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import uuid
from collections import OrderedDict
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadFileScheduling

from evalcore.registry.disk import today
from rampgate.local.demo.registry import seeded
from rampgate.local.services.broker import MockBroker
from rampgate.local.services.dynamodb import DynamoDBLocal
from rampgate.local.services.http_services import LocalOpik
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.process import ServiceUnavailable
from rampgate.local.services.redis import RedisServer
from rampgate.local.services.stack import Name, Stack
from tests import byte_code
from tests.fork_server import keep_commands, share, warm_children
from tests.giving_up import give_up
from tests.logs_restored import logs_restored

# How long an example takes tells nothing where tests run side by side.
settings.register_profile("side by side", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Of a mutant only the failure counts: the search for the smallest case that fails would take minutes.
settings.register_profile("mutants", settings.get_profile("side by side"), phases=set(Phase) - {Phase.shrink})
settings.load_profile("side by side")


# Kafka and DynamoDB Local live for minutes here: the second compiler costs more of the cores than it saves.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
# `python3` is this interpreter in tests: a version manager's is a script that takes half a second each time.
os.environ["PATH"] = f"{sys.base_prefix}/bin{os.pathsep}{os.environ['PATH']}"

keep_commands()


class FilesTogether(LoadFileScheduling):
    """Side by side, a file's tests run in one process, since they may share a rig. Those in tests/fault share nothing
    and are the longest: each goes wherever a process is free.

    Tests with services wait for much of their time, unit tests compute: between two of the first come `UNITS` files of
    the second, so that the cores are busy, and the rest of these at the end, which no long file then draws out."""

    UNITS = 2

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return nodeid if file.startswith("tests/fault/") else file

    def schedule(self) -> None:
        fresh = self.collection is None
        super().schedule()
        if fresh:
            computing = [scope for scope in self.workqueue if scope.startswith("tests/unit/")]
            waiting = [scope for scope in self.workqueue if not scope.startswith("tests/unit/")]
            following = iter(computing)
            order = [scope for first in waiting for scope in (first, *islice(following, self.UNITS))]
            self.workqueue = OrderedDict((scope, self.workqueue[scope]) for scope in (*order, *following))


def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    share()
    byte_code.write(config)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesTogether:
    return FilesTogether(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: to look through it for garbage, again and again, is a third of the work."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    with logs_restored():
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def _warm_children() -> Iterator[None]:
    with warm_children():
        yield


@pytest.fixture(scope="session")
def registry_of_today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped one's configuration folder, where it is not past the day on which its seeds are due."""
    return seeded(tmp_path_factory.mktemp("registry"), today())


@pytest.fixture(scope="session")
def _services() -> Iterator[Stack]:
    stack = Stack("real", dynamodb=True, opik=True)
    yield stack
    stack.close()


@pytest.fixture(scope="session")
def kafka(_services: Stack) -> KafkaCluster:
    """One node of Apache Kafka. Topics are shared by the session: name them with `topic_prefix`."""
    _need(_services, "kafka")
    return cast("KafkaCluster", _services.kafka)


@pytest.fixture(scope="session")
def redis_server(_services: Stack) -> RedisServer:
    _need(_services, "redis")
    return _services.redis


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """An empty Redis, ours alone."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    return redis_server.url


@pytest.fixture(scope="session")
def dynamodb(_services: Stack) -> DynamoDBLocal:
    """Tables are shared by the session: name them with `topic_prefix`."""
    _need(_services, "dynamodb")
    return _services.dynamodb


@pytest.fixture(scope="session")
def local_opik(_services: Stack) -> LocalOpik:
    """The stand-in for Opik. Its database is shared by the session: use a project of your own."""
    _need(_services, "opik")
    return _services.opik


@pytest.fixture(scope="session")
def stack(_services: Stack) -> Stack:
    """All of the above at once, the very same servers."""
    _need(_services, *_services.wanted)
    return _services


@pytest.fixture(scope="session")
def mock_broker() -> Iterator[MockBroker]:
    """librdkafka's mock broker: quick, but `offsets_for_times` finds nothing and topics always have 4 partitions."""
    broker = MockBroker()
    try:
        broker.start()
    except ServiceUnavailable as error:
        give_up(error)
    yield broker
    broker.close()


@pytest.fixture
def topic_prefix(request: pytest.FixtureRequest) -> str:
    """Starts names no one else uses: of topics, groups, tables, projects."""
    test = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:40].strip("-")
    return f"{test}.{uuid.uuid4().hex[:8]}."


def _need(services: Stack, *names: Name) -> None:
    try:
        services.start(*names)
    except ServiceUnavailable as error:
        give_up(error)
