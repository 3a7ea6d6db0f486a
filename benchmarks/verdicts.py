"""Verdicts: from a ramp-step request handed to Kafka to its verdict in a plain consumer's hands, where every score is
there, in the worker's memory or in Redis alone; and how evenly ten gates that come at once share the model (PC5 §5.5,
§9.5).

One worker as shipped, on real Kafka and Redis; the model is the stand-in, in a process of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from uuid6 import uuid7

from benchmarks.judges import AT_ONCE, stand_in
from benchmarks.judges import trace as words
from benchmarks.lab import Failed, Lab
from benchmarks.latency import percentile
from benchmarks.options import Options
from evalcore.scoring.cache import REMEMBERED
from rampgate.local.services.process import ChildProcess

GOALS = {"decided_p95": 0.05}
TRACES = 260
"""Of a version; pre_ramp draws 200 of them."""
SAMPLE, JUDGES = 200, 4
FEW = 4
THUMBS = 20
"""Of each version, on its first traces."""
EQUAL, SMALL = 200, 100
"""Traces of a gate that shares the model with nine others, and of a small one among nine of those."""
LATENCY = 0.1
PARTITIONS = 4
WAIT = 120.0


def run(options: Options) -> dict[str, Any]:
    with Lab() as lab, stand_in(0.0) as quick, stand_in(LATENCY) as slow:
        return {
            "goals": GOALS,
            "sample": SAMPLE,
            "judges": JUDGES,
            "in_memory": scored_before(lab, quick, options.verdicts, 1),
            "in_redis": scored_before(lab, quick, options.verdicts, options.versions),
            "at_once": {"gates": options.gates, "latency": LATENCY,
                        "equal": at_once(lab, slow, [EQUAL] * options.gates),
                        "small": at_once(lab, slow, [SMALL] + [EQUAL] * (options.gates - 1))},
        }  # fmt: skip


class Bench:
    """Topics of their own, a worker on them, and a plain consumer of the verdicts."""

    def __init__(self, lab: Lab, model: str) -> None:
        self.lab, self.prefix = lab, f"verdicts-{time.monotonic_ns()}."
        lab.create_topics(self.prefix, PARTITIONS)
        lab.kafka.create_topics(
            [self.prefix + name for name in ("ramp-steps", "verdicts", "ramp-commands")], PARTITIONS
        )
        # Live judging would ask the model, too.
        settings = {
            "RAMPGATE_MODEL_URL": model,
            "RAMPGATE_MODEL_KEY": "secret",
            "RAMPGATE_LIVE_JUDGING": "false",
            "RAMPGATE_REDIS_PREFIX": self.prefix,
        }
        self.worker: ChildProcess = lab.worker(self.prefix, self.prefix, settings=settings)
        self.worker.start()
        lab.wait_for_group(self.prefix, 1)
        self.producer = Producer({"bootstrap.servers": lab.kafka.bootstrap, "linger.ms": 0})
        self.producer.list_topics(self.prefix + "ramp-steps", timeout=10)
        self.consumer = Consumer(
            {"bootstrap.servers": lab.kafka.bootstrap, "group.id": f"{self.prefix}pc6", "enable.auto.commit": False}
        )
        self.consumer.assign([TopicPartition(self.prefix + "verdicts", p, 0) for p in range(PARTITIONS)])
        self.made = self.thumbs = 0

    def close(self) -> None:
        self.consumer.close()
        self.worker.stop()

    def joined(self, version: str, traces: int) -> None:
        """Traces of a version, and thumbs for some of them, and the worker has consumed them."""
        turns = [(f"{version}-{number}", self.made + number) for number in range(traces)]
        self.made += traces  # each trace says something else, so that no gate has another's scores
        self.lab.produce(self.prefix + "traces", ((key.encode(), trace(key, version, n)) for key, n in turns))
        self.lab.produce(self.prefix + "thumbs", ((key.encode(), thumb(key)) for key, _ in turns[:THUMBS]))
        self.thumbs += THUMBS
        ends = time.monotonic() + WAIT
        wanted = {"traces": self.made, "thumbs": self.thumbs}
        while any(self.lab.committed(self.prefix, self.prefix + topic) < count for topic, count in wanted.items()):
            if time.monotonic() > ends:
                raise Failed(f"traces and thumbs were not joined:\n{self.worker.log_tail()}")
            time.sleep(0.2)

    def ask(self, *requests: dict[str, Any]) -> float:
        """When the last of them was handed to Kafka."""
        for request in requests:
            self.producer.produce(self.prefix + "ramp-steps", json.dumps(request), request["experiment_id"])
        at = time.perf_counter()
        self.producer.poll(0)
        return at

    def verdicts(self, sizes: Mapping[str, int]) -> Iterator[tuple[float, dict[str, Any]]]:
        """One for each request, whose sample is to have so many traces."""
        ends, left = time.monotonic() + WAIT, set(sizes)
        while left:
            message = self.consumer.poll(1.0)
            if message is not None and not message.error():
                at, value = time.perf_counter(), json.loads(message.value() or b"")
                if value["request_id"] not in left:
                    raise Failed(f"a verdict no one waits for, or a second one: {value['request_id']}")
                left.remove(value["request_id"])
                as_expected(value, sizes[value["request_id"]])
                yield at, value
            if time.monotonic() > ends:
                raise Failed(f"no verdict:\n{self.worker.log_tail()}")

    def logged(self, last: str) -> dict[str, float]:
        """Seconds from the request's decoding to its published verdict, by request, as the worker's log has them once
        the last one's is there."""
        ends = time.monotonic() + WAIT
        while last not in (found := self._logged()) and time.monotonic() < ends:
            time.sleep(0.1)
        return found

    def _logged(self) -> dict[str, float]:
        lines = [line for line in self.worker.log_file.read_text().splitlines() if '"verdict_id"' in line]
        return {line["request_id"]: float(line["seconds"]) for line in map(json.loads, lines)}


def scored_before(lab: Lab, model: str, count: int, versions: int) -> dict[str, Any]:
    """One request after another, of one version after another, about traces whose scores are all there: with more
    versions than a worker remembers, in Redis alone. Each version's first gate, which asks the model, and a few more
    are not counted."""
    if versions > 1 and versions * SAMPLE * JUDGES <= REMEMBERED:
        raise Failed(f"a worker remembers the scores of {versions} versions; Redis alone has those of more")
    bench = Bench(lab, model)
    try:
        for version in range(versions):
            bench.joined(f"v{version}", TRACES)
        waits, decided = {}, {}
        for number in range(versions + FEW + count):
            name = f"r{number}"
            asked = bench.ask(step(name, f"v{number % versions}"))
            ((came, verdict),) = bench.verdicts({name: SAMPLE})
            waits[name], decided[name] = came - asked, verdict["evidence"]["duration_seconds"]
        names = list(waits)[versions + FEW :]
        inside = bench.logged(names[-1])
        parts = {"record_to_verdict": waits, "inside": inside, "deciding": decided}
        return {
            "requests": count,
            "first": waits["r0"],
            **{part: spread([found[name] for name in names]) for part, found in parts.items()},
        }
    finally:
        bench.close()


def at_once(lab: Lab, model: str, sizes: list[int]) -> dict[str, Any]:
    """All requests in one go. `share`: for each size, how long its slowest gate took, by what it would have taken had
    the model's places gone round evenly and nothing else cost anything."""
    bench = Bench(lab, model)
    try:
        for number, traces in enumerate(sizes):
            bench.joined(f"v{number}", traces)
        asked = bench.ask(*(step(f"r{number}", f"v{number}") for number in range(len(sizes))))
        expected = {f"r{number}": size for number, size in enumerate(sizes)}
        took = {verdict["request_id"]: at - asked for at, verdict in bench.verdicts(expected)}
        fair = evenly([size * JUDGES * LATENCY / AT_ONCE for size in sizes])
        gates = [took[f"r{number}"] for number in range(len(sizes))]
        share = {size: max(g / f for g, f, s in zip(gates, fair, sizes, strict=True) if s == size) for size in sizes}
        return {"sizes": sizes, "took": gates, "fair": fair, "share": share, "spread": max(gates) / min(gates)}
    finally:
        bench.close()


def as_expected(verdict: Mapping[str, Any], size: int) -> None:
    """Raises Failed where this gate is not the one that is to be measured. A small one may be too small to pass,
    and no gate of a pull request came before."""
    sample, judges = verdict["sample"], verdict["per_judge_scores"]
    if sample is None or sample["size"] != size or len(judges) != JUDGES:
        raise Failed(
            f"a gate of {size} traces and {JUDGES} judges had {sample}, {sorted(judges)}: {verdict['reasons']}"
        )
    allowed = {"gate_missing"} | ({"insufficient_sample"} if size <= SMALL else set())
    if not {reason["code"] for reason in verdict["reasons"]} <= allowed:
        raise Failed(f"a gate that should pass did not: {verdict['reasons']}")


def evenly(work: list[float]) -> list[float]:
    """When each piece of work ends if those that are open always share evenly."""
    ends, now, done = dict[int, float](), 0.0, 0.0
    order = sorted(range(len(work)), key=lambda one: work[one])
    for place, one in enumerate(order):
        now += (work[one] - done) * (len(work) - place)
        done = work[one]
        ends[one] = now
    return [ends[one] for one in range(len(work))]


def spread(values: list[float]) -> dict[str, float]:
    return {"p50": percentile(values, 0.5), "p95": percentile(values, 0.95), "max": max(values)}


def trace(key: str, version: str, number: int) -> bytes:
    now = datetime.now(UTC).isoformat()
    metadata = {
        "user_id": "u", "agent_id": "assistant", "agent_version": version, "vertical": "receipts",
        "sub_agent": "receipts", "category": "receipt_scan",
    }  # fmt: skip
    event = words(number) | {
        "event_id": f"e-{key}", "trace_id": str(uuid7()), "response_id": key, "project_name": "receipts-eval",
        "started_at": now, "ended_at": now, "metadata": metadata,
    }  # fmt: skip
    return json.dumps(event).encode()


def thumb(key: str) -> bytes:
    now = datetime.now(UTC).isoformat()
    return json.dumps({"event_id": f"t-{key}", "response_id": key, "value": "up", "occurred_at": now}).encode()


def step(request_id: str, version: str) -> dict[str, Any]:
    return {
        "request_id": request_id, "experiment_id": f"e-{version}", "agent_id": "assistant", "agent_version": version,
        "vertical": "receipts", "from_percent": 0, "to_percent": 5, "ramp_steps": [5, 25, 100],
        "eval_gates": {"pre_ramp": ["ux_quality"], "pre_full": ["ux_quality"]},
        "requested_at": datetime.now(UTC).isoformat(), "deadline_seconds": 600,
    }  # fmt: skip
