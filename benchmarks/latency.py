"""From an event handed to Kafka, at a steady rate, to its score stored: quiet streams, and half the top rate."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Producer

from benchmarks.contest import CONTENDERS, play
from benchmarks.lab import Failed, Lab
from benchmarks.options import Options
from benchmarks.records import Feed, trace_id

GOALS = {"quiet": 0.05, "half": 1.0}
QUIET = 100.0


def run(lab: Lab, options: Options, top: float | None = None) -> dict[str, Any]:
    """p50 and p95 in seconds. `top`: our events a second; measured here in one round where it is not known."""
    top = top or play(lab, CONTENDERS["a"], options.events).rate
    found = [measure(lab, options, "quiet", QUIET, delay) for delay in (0.0, 0.02)]
    found.append(measure(lab, options, "half", top / 2, 0.02))
    return {"top_rate": top, "goals": GOALS, "measured": found}


def measure(lab: Lab, options: Options, load: str, rate: float, delay: float) -> dict[str, Any]:
    """One worker and events at a steady rate. The first second is not counted."""
    feed = Feed(options.events)
    count = min(int(rate * options.paced_seconds), int(options.events * 0.9))
    prefix = f"paced-{time.monotonic_ns()}."
    lab.create_topics(prefix, 4)
    lab.restore()
    worker = lab.worker(prefix, prefix)
    worker.start()
    lab.wait_for_group(prefix, 1)
    lab.sink.reset(delay)
    warm = min(200, feed.turns - count)
    pace(lab, prefix + "thumbs", feed, count, warm, 100.0)
    if not lab.sink.wait_for(2 * warm, 30.0):
        raise Failed(f"the worker did not get going:\n{worker.log_tail()}")
    lab.sink.reset(delay, keep=True)
    sent = pace(lab, prefix + "thumbs", feed, 0, count, rate)
    complete = lab.sink.wait_for(2 * count, 60.0)
    arrived = lab.sink.arrivals()
    worker.stop()
    if not complete or len(arrived) < count:
        raise Failed(f"{len(arrived)} of {count} thumbs arrived at {rate:.0f} a second")
    since = min(sent.values()) + 1.0
    waits = [arrived[trace] - at for trace, at in sent.items() if at >= since]
    achieved = count / (max(sent.values()) - min(sent.values()))
    return {
        "load": load,
        "asked_rate": rate,
        "rate": achieved,
        "sink_delay": delay,
        "events": len(waits),
        # The score has come when the sink has the request; it is stored when the sink answers.
        "to_sink": {"p50": percentile(waits, 0.5), "p95": percentile(waits, 0.95), "max": max(waits)},
        "to_stored": {"p50": percentile(waits, 0.5) + delay, "p95": percentile(waits, 0.95) + delay},
    }


SLICE = 0.002


def percentile(values: list[float], share: float) -> float:
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def pace(lab: Lab, topic: str, feed: Feed, first: int, count: int, rate: float) -> dict[str, float]:
    """Produce the thumbs of `count` turns at `rate` a second; returns when each trace's thumb was handed to Kafka."""
    records = [(trace_id(turn), *feed.thumb(turn)) for turn in range(first, first + count)]
    producer = Producer({"bootstrap.servers": lab.kafka.bootstrap, "linger.ms": 0 if rate < 1_000 else 2})
    producer.list_topics(topic, timeout=10)
    sent: dict[str, float] = {}
    began, done = time.monotonic(), 0
    while done < count:
        due = min(int((time.monotonic() - began) * rate) + 1, count)
        for trace, key, value in records[done:due]:
            sent[trace] = time.monotonic()
            producer.produce(topic, value, key)
        done = due
        producer.poll(0)
        time.sleep(max(min(began + done / rate - time.monotonic(), SLICE), 0.0))
    producer.flush()
    return sent
