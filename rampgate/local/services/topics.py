"""Creates topics on any Kafka from synchronous code, also inside a running event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaError, TopicAlreadyExistsError, for_code

from rampgate.local.services.process import ServiceUnavailable
from schemas.topics import broker_settings

_READY_SECONDS = 20.0
T = TypeVar("T")


def create_topics(
    bootstrap: str, names: Iterable[str], partitions: int, replication: int, config: Mapping[str, str] | None = None
) -> None:
    """Create topics; blocks until each partition has a leader. Leaves existing ones unchanged. Raises KafkaError."""
    wanted = list(names)

    async def create(admin: AIOKafkaAdminClient) -> None:
        new = [
            NewTopic(name, partitions, replication, topic_configs={**broker_settings(name), **(config or {})})
            for name in wanted
        ]
        answer = await admin.create_topics(new)
        for name, code, *message in answer.topic_errors:
            error = for_code(code)
            if code and error is not TopicAlreadyExistsError:
                raise error(f"create {name}: {' '.join(str(part) for part in message)}")
        await _wait_for_leaders(admin, wanted)

    with_admin(bootstrap, create)


def touch_topics(bootstrap: str, names: Iterable[str]) -> None:
    """Create topics on librdkafka's mock, which has no CreateTopics and creates each topic that a client asks about."""
    wanted = list(names)
    with_admin(bootstrap, lambda admin: _wait_for_leaders(admin, wanted))


def count_brokers(bootstrap: str) -> int:
    """The number of brokers in the cluster; 0 while it has no controller. Raises OSError when no broker answers."""

    async def count(admin: AIOKafkaAdminClient) -> int:
        cluster = await admin.describe_cluster()
        return len(cluster["brokers"]) if cluster["controller_id"] >= 0 else 0

    try:
        return with_admin(bootstrap, count, timeout_ms=2000)
    except KafkaError as error:
        raise ConnectionError(str(error)) from error


def open_groups(bootstrap: str) -> None:
    """Block until consumer groups work: the first request for a coordinator makes Kafka create their topic."""

    async def ask(admin: AIOKafkaAdminClient) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            try:
                await admin.find_coordinator("rampgate-warm-up")
                return
            except GroupCoordinatorNotAvailableError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.05)

    with_admin(bootstrap, ask)


def with_admin(
    bootstrap: str, work: Callable[[AIOKafkaAdminClient], Coroutine[Any, Any, T]], timeout_ms: int = 10_000
) -> T:
    """Run `work` with a connected admin client and return its result; blocks, also inside a running loop."""

    async def run() -> T:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=timeout_ms)
        try:
            await admin.start()
            return await work(admin)
        finally:
            await admin.close()

    with ThreadPoolExecutor(1, thread_name_prefix="rampgate-admin") as pool:
        return pool.submit(lambda: asyncio.run(run())).result()


async def _wait_for_leaders(admin: AIOKafkaAdminClient, names: list[str]) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        topics = await admin.describe_topics(names)
        waiting = [
            topic["topic"]
            for topic in topics
            if topic["error_code"] or not topic["partitions"] or any(p["leader"] < 0 for p in topic["partitions"])
        ]
        if not waiting and len(topics) == len(names):
            return
        if time.monotonic() > deadline:
            raise ServiceUnavailable(
                "kafka",
                f"no leader after {_READY_SECONDS:g} s for {', '.join(waiting) or names}",
                "read the broker's log",
            )
        await asyncio.sleep(0.02)
