"""Starts the services that one run needs, side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, cast

from rampgate.local.services.broker import MockBroker
from rampgate.local.services.dynamodb import DynamoDBLocal
from rampgate.local.services.http_services import LocalModel, LocalOpik
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.process import ServiceUnavailable
from rampgate.local.services.redis import RedisServer
from rampgate.local.services.service import Closing

AnyService = KafkaCluster | MockBroker | RedisServer | DynamoDBLocal | LocalOpik | LocalModel
Kind = Literal["real", "embedded"]
Name = Literal["kafka", "redis", "dynamodb", "opik", "model"]


class Stack(Closing):
    """The services of one run. `real` runs Apache Kafka, `embedded` librdkafka's mock broker, which needs no Java.

    Redis is a real server in both. As a context manager it starts all services in parallel, and raises the first
    ServiceUnavailable after it has ended the others. Without `with`, `start(name)` starts one, `unavailable` remembers
    failures, and the caller has to close it.
    """

    def __init__(
        self,
        kind: Kind = "real",
        *,
        kafka_nodes: int = 1,
        kafka: bool = True,
        redis: bool = True,
        dynamodb: bool = False,
        opik: bool = False,
        model: bool = False,
    ) -> None:
        asked: dict[Name, bool] = {
            "kafka": kafka, "redis": redis, "dynamodb": dynamodb, "opik": opik, "model": model
        }  # fmt: skip
        self.wanted: tuple[Name, ...] = tuple(name for name, wanted in asked.items() if wanted)
        self.kind = kind
        self.unavailable: dict[Name, ServiceUnavailable] = {}
        self._kafka_nodes = kafka_nodes
        self._running: dict[Name, AnyService] = {}
        self._locks: dict[Name, threading.Lock] = {name: threading.Lock() for name in asked}

    @property
    def kafka(self) -> KafkaCluster | MockBroker:
        return cast("KafkaCluster | MockBroker", self._get("kafka"))

    @property
    def redis(self) -> RedisServer:
        return cast("RedisServer", self._get("redis"))

    @property
    def dynamodb(self) -> DynamoDBLocal:
        return cast("DynamoDBLocal", self._get("dynamodb"))

    @property
    def opik(self) -> LocalOpik:
        return cast("LocalOpik", self._get("opik"))

    @property
    def model(self) -> LocalModel:
        return cast("LocalModel", self._get("model"))

    @property
    def started_in(self) -> dict[Name, float]:
        """Seconds each running service took to answer."""
        return {name: service.started_in for name, service in self._running.items()}

    @property
    def pids(self) -> list[int]:
        return [pid for service in self._running.values() for pid in service.pids]

    def start(self, *names: Name) -> None:
        """Start these services in parallel (default: all of this run); leave running ones alone.

        It tries all, then raises the first ServiceUnavailable in the order of the names. It remembers a failure and
        raises it again at once, so that a hundred tests don't wait for the same missing program.
        """
        order = names or self.wanted
        if order:
            with ThreadPoolExecutor(len(order), thread_name_prefix="rampgate-stack") as pool:
                list(pool.map(self._start, order))
        for name in order:
            if name in self.unavailable:
                raise self.unavailable[name]

    def close(self) -> None:
        with ThreadPoolExecutor(max(1, len(self._running))) as pool:
            list(pool.map(lambda service: service.close(), self._running.values()))
        self._running.clear()

    def _start(self, name: Name) -> None:
        with self._locks[name]:
            if name in self._running or name in self.unavailable:
                return
            service = self._make(name)
            try:
                service.start()
            except ServiceUnavailable as error:
                self.unavailable[name] = error
            else:
                self._running[name] = service

    def _make(self, name: Name) -> AnyService:
        if name == "kafka":
            return KafkaCluster(self._kafka_nodes) if self.kind == "real" else MockBroker()
        services: dict[str, type[RedisServer | DynamoDBLocal | LocalOpik | LocalModel]] = {
            "redis": RedisServer, "dynamodb": DynamoDBLocal, "opik": LocalOpik, "model": LocalModel
        }  # fmt: skip
        return services[name]()

    def _get(self, name: Name) -> AnyService:
        if name in self.unavailable:
            raise self.unavailable[name]
        if name not in self._running:
            raise ServiceUnavailable(name, "it was not started", f"ask for it: Stack({name}=True)")
        return self._running[name]


def missing(kind: Kind = "real", wanted: Iterable[Name] = ("kafka", "redis")) -> dict[Name, ServiceUnavailable]:
    """Which of these services can't run on this machine, and why. Starts and ends each."""
    stack = Stack(kind)
    try:
        for name in wanted:
            try:
                stack.start(name)
            except ServiceUnavailable:
                continue
        return dict(stack.unavailable)
    finally:
        stack.close()
