"""Whatever codec a producer compresses with, its records are settled like any other, on a real Kafka."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
from confluent_kafka import Producer

from rampgate.local.services.kafka import KafkaCluster
from tests.fault.rig import Rig
from tests.stream.plain_events import thumb, trace_event

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
"""In the order of the numbers by which Kafka's batches name them."""
TURNS = 40


def test_batches_of_a_foreign_client_are_settled_in_each_of_kafkas_codecs(rig: Rig, kafka: KafkaCluster) -> None:
    """librdkafka compresses and our worker reads; the two share no code. At the end the worker still runs."""
    expected: set[tuple[str, str]] = set()
    for codec in CODECS:
        now = datetime.now(UTC)
        names = [f"{rig.prefix}{codec}-{number}" for number in range(TURNS)]
        traces = {name: trace_event(name, "receipts", now) for name in names}
        produce(rig, codec, "traces", traces)
        produce(rig, codec, "thumbs", {name: thumb(name, now) for name in names})
        expected |= {(event["trace_id"], "user_signal_thumbs") for event in traces.values()}
    for topic in ("traces", "thumbs"):
        assert codecs_in_log(kafka, rig.prefix + topic) == set(CODECS)
    worker = rig.worker()
    rig.wait("a score for each thumb of each codec", lambda: expected <= rig.opik.writes().keys())
    rig.wait("every record settled", rig.drained)
    thumbs = dict(rig.conservation()["thumbs"])
    assert thumbs["consumed"] == thumbs["done"] == len(CODECS) * TURNS
    assert worker.terminate() == 0


def produce(rig: Rig, codec: str, topic: str, events: dict[str, dict[str, Any]]) -> None:
    """All in batches of one codec: held back until there is something to compress."""
    producer = Producer(
        {"bootstrap.servers": rig.kafka.bootstrap, "compression.type": codec, "linger.ms": 500, "log_level": 0}
    )
    for name, event in events.items():
        producer.produce(rig.prefix + topic, orjson.dumps(event), name)
    assert producer.flush(20) == 0


def codecs_in_log(kafka: KafkaCluster, topic: str) -> set[str]:
    """Read off the heads of the batches as they lie on the broker's disk (record batch, version 2)."""
    found = set()
    for log in kafka.nodes[0].folder.glob(f"data/{topic}-*/*.log"):
        data, at = log.read_bytes(), 0
        while at + 23 <= len(data) and (length := int.from_bytes(data[at + 8 : at + 12], "big")):
            found.add(CODECS[data[at + 22] & 0b111])
            at += 12 + length
    return found
