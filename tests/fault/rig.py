"""One run on real parts: Kafka, Valkey, a local Opik with faults, workers as processes that come and go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis
from confluent_kafka import Producer

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.redis import RedisServer
from tests.fault.faulty_opik import FaultyOpik
from tests.fault.held import PARTITIONS, TOPICS, Held
from tests.fault.turns import Message
from tests.fault.worker_process import WorkerProcess

SOON_COMPARED = {"opik_doubt_seconds": 25, "opik_retry_seconds": 10}
"""Settings for tests that kill a worker under load. Its last look-up may overwrite a newer score, and dies before it
notices: the turn is compared with Opik once `opik_doubt_seconds` are over (`agents.join.late_writes`)."""


class Rig(Held):
    """Topics, group and Redis prefix of one test; workers come and go."""

    def __init__(
        self,
        kafka: KafkaCluster,
        redis_server: RedisServer,
        opik: FaultyOpik,
        prefix: str,
        folder: Path,
        *,
        bootstrap: str | None = None,
        redis_url: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(kafka, redis.Redis.from_url(redis_server.url), prefix)
        self.redis_server, self.opik, self.folder = redis_server, opik, folder
        self._settings: dict[str, Any] = {
            "kafka": bootstrap or kafka.bootstrap,
            "redis": redis_url or redis_server.url,
            "opik": opik.url,
            "topic_prefix": prefix,
            "redis_prefix": prefix,
            "group": self.group,
            "http": "127.0.0.1:0",
            "write": "true",
            "log_format": "json",
            "session_timeout_seconds": 2,
            "commit_interval_seconds": 0.2,
            "opik_lookups_per_minute": 60_000,
            "trace_lookup_seconds": 0.5,
            "judge_settle_seconds": 10,
            "missing_trace_seconds": 3,
            "batch_records": 200,
            "regression_seconds": 600,  # no one looks at closed weeks beside a test that counts searches in Opik
        } | settings
        self.workers: list[WorkerProcess] = []
        self._producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "linger.ms": 2,
                "message.timeout.ms": 60_000,
                "enable.idempotence": True,
                "log_level": 0,
            }
        )
        self.sent: list[Message] = []
        self.undelivered = 0
        self._hurry = threading.Event()
        kafka.create_topics([prefix + name for name in (*TOPICS, "dead-letters")], PARTITIONS)

    def worker(self, **settings: Any) -> WorkerProcess:
        worker = WorkerProcess(self._settings | settings, self.folder / f"worker-{len(self.workers)}.log")
        self.workers.append(worker)
        return worker

    def send(self, messages: Iterable[Message], per_second: float | None = None) -> None:
        """Produce in order; returns when all are durable. `per_second` spreads them over time."""
        began = time.monotonic()
        for number, message in enumerate(messages):
            if per_second and number % 50 == 0:
                self._hurry.wait(max(0.0, began + number / per_second - time.monotonic()))
            while True:
                try:
                    self._producer.produce(
                        self.prefix + message.topic, message.value, message.key, on_delivery=self._delivered
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
            self._producer.poll(0)
            self.sent.append(message)
        left = self._producer.flush(60)
        assert left == 0, f"{left} records were never delivered"
        assert self.undelivered == 0, f"{self.undelivered} records were refused by Kafka"

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self.undelivered += 1

    def sending(self, messages: Sequence[Message], per_second: float | None = None) -> threading.Thread:
        self._hurry.clear()
        thread = threading.Thread(target=self.send, args=(messages, per_second), daemon=True)
        thread.start()
        return thread

    def hurry(self) -> None:
        """From here on, what is being sent is sent as fast as it goes."""
        self._hurry.set()

    def wait(self, what: str, condition: Callable[[], bool], seconds: float = 60.0, every: float = 0.2) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return
                why = ""
            except Exception as error:
                why = f" ({type(error).__name__}: {error})"
            if time.monotonic() > deadline:
                raise AssertionError(f"after {seconds:g} s still not: {what}{why}\n{self.state_of_things()}")
            time.sleep(every)

    def state_of_things(self) -> str:
        lines = []
        for number, worker in enumerate(self.workers):
            code = worker.process.poll()
            lines.append(f"--- worker {number}: {'runs' if code is None else f'exit {code}'}")
            lines += [line[:400] for line in worker.log().splitlines()[-12:]]
        for name in ("committed", "watermarks", "ends"):
            try:
                lines.append(f"{name}: {getattr(self, name)()}")
            except Exception as error:
                lines.append(f"{name}: {error}")
        return "\n".join(lines)

    def close(self) -> None:
        for worker in self.workers:
            if worker.running:
                worker.kill()
        self._producer.flush(1)
        self.state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def now_ms() -> int:
    return time.time_ns() // 1_000_000
