"""Events at a steady rate, and when each one's score arrived."""

from __future__ import annotations

import time

from confluent_kafka import Producer

from benchmarks.lab import Lab
from benchmarks.records import Feed, trace_id

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
