"""The parts of a hostile day, and how each is harmed: brokers, Redis, Opik, and workers as processes."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import redis
from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.proxy import TcpProxy
from rampgate.local.services.redis import RedisServer
from tests.fault.faulty_opik import FaultyOpik
from tests.fault.hostile_day.late_proxy import LateProxy
from tests.fault.worker_process import WorkerProcess

TOPICS = ("thumbs", "rerolls", "traces", "ramp-steps")
MADE = ("verdicts", "dead-letters", "judge-scores", "ramp-commands")
PARTITIONS = 4
WORKERS = 2
SESSION_SECONDS = 1.5
OPIK_SECONDS = 2.0
"""A worker waits so long for an answer of Opik."""


class Parts:
    """Services for the whole day, and the workers of one stream: a prefix of topics with its group and keys."""

    def __init__(self, folder: Path, configs: Path, nodes: int) -> None:
        self._folder, self._configs = folder, configs
        self._stack = ExitStack()
        self.kafka = KafkaCluster(nodes, proxied=True)
        self.redis_server = RedisServer()
        self.opik = FaultyOpik()
        self.prefix = ""
        self.workers: list[WorkerProcess] = []
        self.paused: set[int] = set()
        self.leaving: set[int] = set()
        self.ended: list[str] = []
        """Workers that ended without being told to: which, and with what code."""
        self._started = 0
        self._older: bytes | None = None
        self._nodes_away: set[int] = set()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for service in (self.kafka, self.redis_server, self.opik):
                stack.enter_context(service)
            self.late = LateProxy(f"http://127.0.0.1:{self.opik.port}")
            stack.callback(self.late.close)
            self.opik_proxy = stack.enter_context(TcpProxy("127.0.0.1", self.late.port))
            self.redis_proxy = stack.enter_context(TcpProxy("127.0.0.1", self.redis_server.port))
            self.state = stack.enter_context(redis.Redis.from_url(self.redis_server.url))
            self.admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap, "log_level": 0})
            stack.callback(self.end_workers)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def kafka_proxies(self) -> list[TcpProxy]:
        return [node.proxy for node in self.kafka.nodes if node.proxy is not None]

    @property
    def group(self) -> str:
        return self.prefix + "group"

    # ---- workers

    def new_stream(self, prefix: str) -> None:
        """Topics of a new prefix and workers for them; what Redis and Opik hold of the one before is gone."""
        self.end_workers()
        self.state.flushall()
        self.opik.restart()  # it keeps all in memory
        self._older, self.prefix = None, prefix
        self.kafka.create_topics([prefix + name for name in (*TOPICS, *MADE)], PARTITIONS)
        self.workers = [self._worker() for _ in range(WORKERS)]

    def _worker(self) -> WorkerProcess:
        self._started += 1
        return WorkerProcess(self._settings(), self._folder / f"{self.prefix}worker-{self._started}.log")

    def _settings(self) -> Mapping[str, Any]:
        return {
            "kafka": self.kafka.proxied_bootstrap,
            "redis": f"redis://{self.redis_proxy.address}/0",
            "opik": f"http://{self.opik_proxy.address}/api",
            "topic_prefix": self.prefix,
            "redis_prefix": self.prefix,
            "group": self.group,
            "configs": self._configs,
            "http": "127.0.0.1:0",
            "write": "true",
            "log_format": "json",
            "session_timeout_seconds": SESSION_SECONDS,
            "commit_interval_seconds": 0.2,
            "opik_timeout_seconds": OPIK_SECONDS,
            "opik_retry_seconds": 20,
            "opik_doubt_seconds": 50,
            "opik_lookups_per_minute": 60_000,
            "judge_settle_seconds": 10,
            "batch_records": 100,
        }

    def victim(self, whom: int) -> int:
        return whom % len(self.workers)

    def kill(self, number: int) -> None:
        """And a supervisor starts it again."""
        self.workers[number].kill()
        self.paused.discard(number)
        self.leaving.discard(number)
        self.workers[number] = self._worker()

    def restart(self, number: int) -> None:
        """As a deployment does: it settles what it can, and the next one is started once it has ended."""
        if number not in self.paused and number not in self.leaving:
            self.workers[number].process.send_signal(signal.SIGTERM)
            self.leaving.add(number)

    def pause(self, number: int) -> None:
        self.workers[number].pause()
        self.paused.add(number)

    def resume(self, number: int) -> None:
        if number in self.paused:
            self.workers[number].resume()
            self.paused.discard(number)

    def supervise(self) -> None:
        """Start those again that ended by themselves, and note it."""
        for number, worker in enumerate(self.workers):
            code = worker.process.poll()
            told = number in self.leaving and code in (0, -signal.SIGTERM)  # or at its start, with nothing begun
            if code is not None and not told:
                self.ended.append(f"{worker.log_file.name} ended with {code}: {worker.log()[-600:]}")
            if code is not None:
                self.leaving.discard(number)
                self.workers[number] = self._worker()

    def url(self) -> str:
        """Where one of the workers listens."""
        for worker in self.workers:
            for line in reversed(worker.log().splitlines()):
                if '"http_listening"' in line:
                    found: str = json.loads(line)["url"]
                    return found
        raise LookupError("no worker listens yet")

    def end_workers(self) -> None:
        for worker in self.workers:
            if worker.running:
                worker.kill()
        self.workers.clear()
        self.paused.clear()
        self.leaving.clear()

    # ---- Redis

    def remember(self) -> None:
        """Keep a copy of Redis, to be put back later."""
        with suppress(redis.RedisError):
            self.state.save()
            self._older = self._dump.read_bytes()

    @property
    def _dump(self) -> Path:
        return self.redis_server.folder / "dump.rdb"

    def replace_redis(self, *, empty: bool, away: float = 0.0) -> None:
        """Redis is killed, and comes back with the older copy or with nothing."""
        older = None if empty else self._older
        self.redis_server.kill()
        if older is None:
            self._dump.unlink(missing_ok=True)
        else:
            self._dump.write_bytes(older)
        time.sleep(away)
        self.redis_server.start()

    # ---- brokers

    def leave(self, number: int) -> None:
        """Stop a broker that leads, until `come_back`; the others elect new leaders. Never two at once."""
        if not self._nodes_away and len(self.kafka.nodes) > 2:
            self.kafka.nodes[number].pause()
            self._nodes_away.add(number)

    def come_back(self) -> None:
        for number in self._nodes_away:
            self.kafka.nodes[number].resume()
        self._nodes_away.clear()

    def prefer_leaders(self) -> None:
        """Have each partition be led by its first replica again; that may fail while one is away, and be repeated."""
        with suppress(Exception):
            self.admin.elect_leaders(ElectionType.PREFERRED, None, request_timeout=5).result(10)

    def heal(self) -> None:
        """Everything works from here on; what was held back of writes to Opik is still to come."""
        self.late.be("pass")
        for proxy in (*self.kafka_proxies, self.redis_proxy, self.opik_proxy):
            proxy.heal()
        self.redis_server.resume()
        self.come_back()
        for number in list(self.paused):
            self.resume(number)
        self.supervise()
