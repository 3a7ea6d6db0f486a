"""The services one run needs, started side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Literal, Self, cast

from rampgate.local.services.broker import MockBroker
from rampgate.local.services.dynamodb import DynamoDBLocal
from rampgate.local.services.http_services import LocalModel, LocalOpik
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.process import ServiceUnavailable
from rampgate.local.services.redis import RedisServer

AnyService = KafkaCluster | MockBroker | RedisServer | DynamoDBLocal | LocalOpik | LocalModel
Kind = Literal["real", "embedded"]
Name = Literal["kafka", "redis", "dynamodb", "opik", "model"]


class Stack:
    """`real` runs Apache Kafka, `embedded` librdkafka's mock broker (no Java needed). Redis is a real server in both.

    As a context manager it starts everything asked for, in parallel, and raises the first ServiceUnavailable after it
    has ended the rest. Used without `with`, `start(name)` starts one by one and `unavailable` remembers what failed;
    then call close().
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
        """Starts these (default: all that were asked for) in parallel; one that runs is left alone.

        Tries all, then raises the first ServiceUnavailable in the order of the names. A failure is remembered and
        raised again at once, so that a hundred tests don't wait for the same missing program.
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

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
        makers: dict[str, Callable[[], AnyService]] = {
            "redis": RedisServer,
            "dynamodb": DynamoDBLocal,
            "opik": LocalOpik,
            "model": LocalModel,
        }
        return makers[name]()

    def _get(self, name: Name) -> AnyService:
        if name in self.unavailable:
            raise self.unavailable[name]
        if name not in self._running:
            raise ServiceUnavailable(name, "it was not started", f"ask for it: Stack({name}=True)")
        return self._running[name]


def missing(kind: Kind = "real", wanted: Iterable[Name] = ("kafka", "redis")) -> dict[Name, ServiceUnavailable]:
    """Which of these can't be had on this machine and why, by trying. Starts and ends them."""
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
