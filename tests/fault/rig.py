"""One run on real parts: Kafka, Valkey, a local Opik with faults, workers as processes; and what must hold then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from rampgate.services.kafka import KafkaCluster
from rampgate.services.opik import LocalOpik
from rampgate.services.process import ChildProcess
from rampgate.services.redis import RedisServer
from tests.fault.traffic import KIND, Expected, Message, Traffic

TOPICS = ("thumbs", "rerolls", "traces")
CLASSES = ("both_present", "missing_trace", "missing_signal")
PARTITIONS = 4
ROOT = Path(__file__).parents[2]
PROGRAM = "from rampgate.cli import main; main()"


class FaultyOpik(LocalOpik):
    """The local Opik with its fault controls; in memory, so that it is quick."""

    def _prepare(self, folder: Path) -> ChildProcess:
        command = [sys.executable, "-m", "rampgate.localopik", "--port", str(self.port), "--faults"]
        return ChildProcess(self.name, command, folder)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data=data, method=method)  # noqa: S310 - our own server
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - the same
            text = answer.read()
        return json.loads(text) if text else None

    def fault(self, **rule: Any) -> None:
        self.call("POST", "/_faults", rule)

    def heal(self) -> None:
        self.call("DELETE", "/_faults")

    def writes(self) -> dict[tuple[str, str], int]:
        """Score rows written per (trace, name)."""
        found = self.call("GET", "/_writes")
        return {(trace, name): n for trace, names in found.items() for name, n in names.items()}

    def load(self, traffic: Traffic) -> None:
        """Put the traces and judge scores of this traffic where Opik would have them."""
        traces, scores = traffic.opik_traces(), traffic.opik_judgements()
        for start in range(0, len(traces), 1000):
            self.call("POST", "/v1/private/traces/batch", {"traces": traces[start : start + 1000]})
        for start in range(0, len(scores), 1000):
            self.call("PUT", "/v1/private/traces/feedback-scores", {"scores": scores[start : start + 1000]})
        self.call("DELETE", "/_writes")

    def scores(self, projects: Iterable[str]) -> dict[tuple[str, str], float]:
        """Every user signal Opik holds in these projects, as its search shows them."""
        held: dict[tuple[str, str], float] = {}
        for project in projects:
            last: str | None = None
            while True:
                body: dict[str, Any] = {"project_name": project, "limit": 2000, "exclude": ["input", "output"]}
                if last:
                    body["last_retrieved_id"] = last
                page = self._search(body)
                for trace in page:
                    for score in trace.get("feedback_scores") or ():
                        if score["name"].startswith("user_signal_"):
                            held[trace["id"], score["name"]] = score["value"]
                if len(page) < 2000:
                    break
                last = page[-1]["id"]
        return held

    def _search(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + "/v1/private/traces/search", data=data, method="POST")  # noqa: S310
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return [json.loads(line) for line in answer.read().splitlines() if line.strip()]
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise


class WorkerProcess:
    """`rampgate worker` as a process of its own, its log in a file."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.log_file = log
        self._out = log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "worker"],
            env=environment,
            stdout=self._out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            start_new_session=True,
        )

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._out.close()

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def terminate(self, seconds: float = 30.0) -> int:
        """SIGTERM; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds: float = 30.0) -> int:
        code = self.process.wait(seconds)
        self._out.close()
        return code

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def logged(self, text: str) -> bool:
        return text in self.log()


class Watcher(threading.Thread):
    """Samples, ten times a second, that no committed offset is above what the state holds as finished (L4)."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(daemon=True, name="watcher")
        self._rig = rig
        self._ended = threading.Event()
        self.samples = 0
        self.violations: list[str] = []

    def run(self) -> None:
        while not self._ended.wait(0.1):
            try:
                committed = self._rig.committed()  # before the state is read: the state only moves on
                marks = self._rig.watermarks()
            except Exception:  # noqa: S112 - a part that is down is sampled again
                continue
            self.samples += 1
            for place, offset in committed.items():
                if offset > marks.get(place, 0):
                    self.violations.append(f"{place}: committed {offset}, the state has {marks.get(place)}")

    def end(self) -> None:
        self._ended.set()
        self.join(10)


class Rig:
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
        self.kafka, self.redis_server, self.opik, self.prefix, self.folder = kafka, redis_server, opik, prefix, folder
        self.state = redis.Redis.from_url(redis_server.url)
        self.redis_prefix = prefix
        self._settings: dict[str, Any] = {
            "kafka": bootstrap or kafka.bootstrap,
            "redis": redis_url or redis_server.url,
            "opik": opik.url,
            "topic_prefix": prefix,
            "redis_prefix": prefix,
            "group": prefix + "group",
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

    # ---- acting

    def worker(self, **settings: Any) -> WorkerProcess:
        names = {k: v for k, v in os.environ.items() if not k.startswith("RAMPGATE_")}
        names |= {f"RAMPGATE_{k.upper()}": str(v) for k, v in (self._settings | settings).items()}
        worker = WorkerProcess(names, self.folder / f"worker-{len(self.workers)}.log")
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

    # ---- looking

    def committed(self) -> dict[tuple[str, int], int]:
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap, "log_level": 0})
        asked = [ConsumerGroupTopicPartitions(str(self._settings["group"]))]
        (answer,) = admin.list_consumer_group_offsets(asked, request_timeout=5).values()
        found = answer.result(5).topic_partitions
        return {(tp.topic.removeprefix(self.prefix), tp.partition): tp.offset for tp in found if tp.offset >= 0}

    def watermarks(self) -> dict[tuple[str, int], int]:
        places = [(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
        marks: Any = self.state.mget([f"{self.redis_prefix}w:{self.prefix}{t}:{p}" for t, p in places])
        return {place: int(mark) for place, mark in zip(places, marks, strict=True) if mark}

    def ends(self) -> dict[tuple[str, int], int]:
        consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": "nobody", "log_level": 0})
        try:
            return {
                (topic, p): consumer.get_watermark_offsets(TopicPartition(self.prefix + topic, p), timeout=10)[1]
                for topic in TOPICS
                for p in range(PARTITIONS)
            }
        finally:
            consumer.close()

    def drained(self) -> bool:
        """Every record is settled and committed."""
        ends = {place: end for place, end in self.ends().items() if end}
        marks, committed = self.watermarks(), self.committed()
        return all(marks.get(place) == end and committed.get(place) == end for place, end in ends.items())

    def finished(self) -> int:
        return sum(self.watermarks().values())

    def hashes(self, pattern: str) -> Counter[tuple[str, str]]:
        """Counters of all hours, summed: (what the key says after its hour, field)."""
        found: Counter[tuple[str, str]] = Counter()
        for key in self.state.scan_iter(f"{self.redis_prefix}{pattern}", count=1000):
            _, _, *kind = key.decode().removeprefix(self.redis_prefix).split(":")
            fields: Any = self.state.hgetall(key)
            for name, n in fields.items():
                assert int(n) > 0, f"{key!r} {name!r} is {n!r}: a counter below one should not be there"
                found[":".join(kind), name.decode()] += int(n)
        return found

    def coverage(self) -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        for (_, name), n in self.hashes("c:*").items():
            vertical, what = name.split("|")
            found[vertical, what] += n
        return found

    def conservation(self) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = {}
        for (kind, name), n in self.hashes("k:*").items():
            found.setdefault(kind, Counter())[name] += n
        return found

    def dead_letters(self) -> list[dict[str, Any]]:
        """All of the dead-letter topic, one for each `rampgate.replay-id`."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap,
                "group.id": f"{self.prefix}reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        letters: dict[str, dict[str, Any]] = {}
        try:
            topic = self.prefix + "dead-letters"
            consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
            ended: set[int] = set()
            while len(ended) < PARTITIONS:
                for message in consumer.consume(1000, timeout=1.0):
                    if message.error():
                        ended.add(message.partition())
                        continue
                    headers = {name: content.decode() for name, content in message.headers() or ()}
                    letters[headers["rampgate.replay-id"]] = {
                        "key": message.key(),
                        "value": message.value(),
                        "topic": headers["rampgate.topic"].removeprefix(self.prefix),
                        "cause": headers["rampgate.cause"],
                        "detail": headers["rampgate.detail"],
                    }
        finally:
            consumer.close()
        return list(letters.values())

    def wait(self, what: str, condition: Callable[[], bool], seconds: float = 60.0, every: float = 0.1) -> None:
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

    # ---- judging

    def settled(self, expected: Expected) -> bool:
        """Drained, nothing parked, and Opik as the oracle has it: then nothing more is going to happen."""
        if not self.drained():
            return False
        parked = sum(n for fields in self.conservation().values() for f, n in fields.items() if f.startswith("parked"))
        return parked == 0 and self.coverage() == expected.coverage

    def check(self, traffic: Traffic, seconds: float = 60.0, *, scores: bool = True) -> None:
        """All that must hold once `traffic` was consumed, whatever went wrong on the way (L1, L2, L4, L5)."""
        expected = traffic.expected(self.sent)
        projects = sorted({turn.project for turn in traffic.turns})
        assert sum(self.ends().values()) == len(self.sent), "the topics do not hold what was sent"
        self.wait("every record consumed and committed", self.drained, seconds)
        try:
            self.wait("coverage as the oracle has it, nothing parked", lambda: self.settled(expected), seconds)
        except AssertionError as error:
            differs = {k: (self.coverage()[k], expected.coverage[k]) for k in self.coverage() | expected.coverage}
            differs = {k: pair for k, pair in differs.items() if pair[0] != pair[1]}
            raise AssertionError(
                f"seed {traffic.seed}: coverage (ours, oracle) differs: {differs}; {self.conservation()}\n{error}"
            ) from None
        if scores:
            self._check_scores(expected, projects)
        self._check_conservation(expected)
        self._check_letters(expected)

    def _check_scores(self, expected: Expected, projects: list[str]) -> None:
        held: dict[tuple[str, str], float] = {}

        def same() -> bool:
            nonlocal held
            held = self.opik.scores(projects)
            return held == expected.scores

        try:
            self.wait("Opik's scores as the oracle has them", same, 15.0, 0.5)
        except AssertionError as error:
            wrong = {k: (held.get(k), expected.scores.get(k)) for k in held.keys() | expected.scores.keys()}
            wrong = {k: pair for k, pair in wrong.items() if pair[0] != pair[1]}
            raise AssertionError(
                f"{len(wrong)} scores (Opik, oracle) differ: {dict(list(wrong.items())[:5])}\n{error}"
            ) from None

    def _check_conservation(self, expected: Expected) -> None:
        for kind, fields in self.conservation().items():
            consumed = fields.pop("consumed")
            assert consumed == expected.consumed[kind], f"{kind}: consumed {consumed}, sent {expected.consumed[kind]}"
            assert consumed == sum(fields.values()), f"{kind}: {consumed} consumed, but {dict(fields)}"
            filtered = sum(n for name, n in fields.items() if name.startswith("filtered"))
            assert filtered == expected.filtered[kind], f"{kind}: filtered {dict(fields)}"
        cells: Counter[str] = Counter()
        for (_, name), n in self.hashes("e:*").items():
            vertical, number, _ = name.rsplit("|", 2)
            cells[f"{vertical}|{CLASSES[int(number)]}"] += n
        hours = Counter({"|".join(k): n for k, n in self.coverage().items()})
        assert cells == hours, "coverage at the edges differs from coverage per hour"

    def _check_letters(self, expected: Expected) -> None:
        letters = self.dead_letters()
        undecodable = Counter(
            (letter["topic"], letter["key"], letter["value"])
            for letter in letters
            if letter["cause"] in ("malformed", "too_large", "unknown_schema")
        )
        assert undecodable == expected.garbage, (
            f"undecodable records: {len(expected.garbage - undecodable)} letters missing, "
            f"{len(undecodable - expected.garbage)} too many"
        )
        missing = {letter["key"].decode() for letter in letters if letter["cause"] == "missing_trace"}
        assert expected.missing <= missing, f"no missing_trace letter for {sorted(expected.missing - missing)[:5]}"
        undecoded = ("malformed", "too_large", "unknown_schema", "missing_trace")
        other = [(x["cause"], x["detail"]) for x in letters if x["cause"] not in undecoded]
        assert not other, f"{len(other)} dead letters of other causes, such as {other[0]}"
        counted = {
            kind: sum(n for name, n in fields.items() if name.startswith("dead_lettered:missing_trace"))
            for kind, fields in self.conservation().items()
        }
        assert sum(counted.values()) >= len(expected.missing), f"dead letters counted: {counted}"

    # ---- ending

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


__all__ = ["KIND", "FaultyOpik", "Rig", "Watcher", "WorkerProcess", "now_ms"]
