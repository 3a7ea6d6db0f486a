"""What every measurement stands on: real Kafka, a Redis for us and one for the others, the sink, worker processes."""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.structs import OffsetAndMetadata
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient

from agents.keys import CONSERVATION
from benchmarks.processes import ROOT
from benchmarks.records import PROJECT, Feed, response_id, trace_id
from benchmarks.sink_client import Sink
from evalcore.registry.disk import today
from rampgate.local.demo.registry import seeded
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.ports import release_port, reserve_port
from rampgate.local.services.process import ChildProcess
from rampgate.local.services.redis import RedisServer
from streams.kafka.clean_stops import NOTE

NAMES = ("thumbs", "rerolls", "traces", "dead-letters")
WINDOW_HOURS = 7 * 24 + 1


class Failed(Exception):
    """A run that can't be counted; the message says what went wrong."""


class Lab:
    """Both Redis servers go back to what was last saved by `restore`, so that each round starts from the same state."""

    def __init__(self) -> None:
        self.kafka = KafkaCluster(heap_megabytes=768)
        self.ours, self.plain = RedisServer(), RedisServer()
        self._folder = tempfile.TemporaryDirectory(prefix="rampgate-bench-")
        self.folder = Path(self._folder.name)
        self.configs = seeded(self.folder, today())
        self._ports = [reserve_port()]
        self.sink = Sink(self._ports[0])
        self.produced = 0
        """Thumbs in the topic that contenders share."""
        self._numbers = itertools.count(1)
        self._children: list[ChildProcess] = []
        self._sink = self.process("sink", [sys.executable, "-m", "benchmarks.sink", str(self.sink.port)])

    def __enter__(self) -> Self:
        try:
            for part in (self.kafka, self.ours, self.plain, self._sink):
                part.start()
            self._sink.wait_ready(self.sink.answers, 10.0)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for child in self._children:
            child.kill()
        for server in (self.ours, self.plain, self.kafka):
            server.close()
        for port in self._ports:
            release_port(port)
        self._folder.cleanup()

    def process(self, name: str, command: list[str], environment: dict[str, str] | None = None) -> ChildProcess:
        """A process that dies with us; started by its caller. Its log is in the lab's folder."""
        child = ChildProcess(
            f"{name}-{next(self._numbers)}",
            command,
            self.folder,
            environment={"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **(environment or {})},
        )
        self._children.append(child)
        return child

    def worker(
        self, prefix: str, group: str, *, profile: Path | None = None, settings: dict[str, str] | None = None
    ) -> ChildProcess:
        """Our worker as shipped, not started yet; with `profile`, the same under the sampler."""
        port = reserve_port()
        self._ports.append(port)
        environment = {
            "RAMPGATE_KAFKA": self.kafka.bootstrap,
            "RAMPGATE_TOPIC_PREFIX": prefix,
            "RAMPGATE_GROUP": group,
            "RAMPGATE_REDIS": self.ours.url,
            "RAMPGATE_OPIK": self.sink.url,
            "RAMPGATE_CONFIGS": str(self.configs),
            "RAMPGATE_HTTP": f"127.0.0.1:{port}",
            "RAMPGATE_WRITE": "true",
            **(settings or {}),
        }
        command = [str(Path(sys.executable).with_name("rampgate")), "worker"]
        if profile is not None:
            command = [sys.executable, "-m", "benchmarks.sampler", str(profile)]
        return self.process("worker", command, environment)

    @property
    def sink_pid(self) -> int | None:
        return self._sink.pid

    def create_topics(self, prefix: str, partitions: int) -> None:
        self.kafka.create_topics([prefix + name for name in NAMES], partitions)

    def produce(self, topic: str, records: Iterable[tuple[bytes, bytes]], step: Callable[[int], Any] = id) -> int:
        """Write all records and return how many; `step` is told now and then how many more were handed over."""
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "linger.ms": 20, "batch.size": 262_144})
        count = 0
        for count, (key, value) in enumerate(records, 1):
            while True:
                try:
                    producer.produce(topic, value, key)
                    break
                except BufferError:
                    producer.poll(0.1)
            if count % 5_000 == 0:
                producer.poll(0)
                step(5_000)
        producer.flush()
        return count

    def load(self, prefix: str, feed: Feed, step: Callable[[int], Any] = id) -> None:
        """Bring the turns' traces into both Redis servers: ours by a worker that consumes them, the other as hashes."""
        self.produce(prefix + "traces", feed.traces())
        worker = self.worker(prefix, f"load-{next(self._numbers)}")
        worker.start()
        done = 0
        while done < feed.turns:
            time.sleep(0.25)
            if not worker.running:
                raise Failed(f"the worker ended while it loaded traces:\n{worker.log_tail()}")
            before, done = done, self.consumed("trace")
            step(done - before)
        worker.stop()
        with redis.Redis.from_url(self.plain.url) as store:
            for start in range(0, feed.turns, 5_000):
                pipe = store.pipeline(transaction=False)
                for turn in range(start, min(start + 5_000, feed.turns)):
                    pipe.hset("turn:" + response_id(turn), mapping={"trace": trace_id(turn), "project": PROJECT})
                pipe.execute()
        for server in (self.ours, self.plain):
            with redis.Redis.from_url(server.url) as store:
                store.save()

    def restore(self) -> None:
        """Both Redis servers as they were when `load` ended."""
        self.ours.restart()
        self.plain.restart()

    def consumed(self, kind: str, field: str = "consumed") -> int:
        """Records of a kind that our state has counted so far."""
        hour = int(time.time()) // 3_600
        with redis.Redis.from_url(self.ours.url) as store:
            pipe = store.pipeline(transaction=False)
            for at in range(hour - WINDOW_HOURS, hour + 2):
                pipe.hget("rg:" + CONSERVATION.key(at, kind), field)
            return sum(int(found or 0) for found in pipe.execute())

    def committed(self, group: str, topic: str) -> int:
        """The sum of a group's committed offsets."""
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        found = asked[group].result().topic_partitions
        return sum(max(tp.offset, 0) for tp in found if tp.topic == topic)

    def left_in_good_order(self, group: str, topic: str) -> None:
        """Make a group that stands at the topic's beginning as a worker leaves it that stopped in good order."""
        asyncio.run(self._leave(group, topic))

    async def _leave(self, group: str, topic: str) -> None:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=self.kafka.bootstrap, group_id=group, enable_auto_commit=False
        )
        await consumer.start()
        try:
            places = consumer.partitions_for_topic(topic)
            await consumer.commit({TopicPartition(topic, number): OffsetAndMetadata(0, NOTE) for number in places})
        finally:
            await consumer.stop()

    def wait_for_group(self, group: str, members: int, timeout: float = 60.0) -> None:
        """Until the group is stable with so many members that all hold partitions."""
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        ends = time.monotonic() + timeout
        while time.monotonic() < ends:
            found = admin.describe_consumer_groups([group])[group].result()
            holding = [m for m in found.members if m.assignment and m.assignment.topic_partitions]
            if found.state.name == "STABLE" and len(holding) == members:
                return
            time.sleep(0.2)
        raise Failed(f"group {group} has not come to {members} members in {timeout:g} s")
