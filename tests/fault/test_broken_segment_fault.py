"""A broker can't read its own log: it answers each fetch of the partition with CORRUPT_MESSAGE, without end."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest
from confluent_kafka import Producer

from tests.fault.rig import Rig
from tests.raw_batches import log_of
from tests.stream.plain_events import thumb, trace_event
from tests.waiting import until

HEAD, LENGTH = 12, slice(8, 12)
"""Of a batch: what its length does not count, and where it stands."""


@pytest.mark.slow
def test_a_partition_that_its_broker_can_not_read_is_named_and_others_go_on(make_rig: Callable[..., Rig]) -> None:
    rig, now = make_rig(), datetime.now(UTC)
    names = [f"{rig.prefix}{number}" for number in range(4)]
    traces = {name: trace_event(name, "receipts", now) for name in names}
    producer = Producer({"bootstrap.servers": rig.kafka.bootstrap, "log_level": 0})
    for name, event in traces.items():
        producer.produce(rig.prefix + "traces", json.dumps(event), name)

    def send(*numbers: int) -> None:
        for number in numbers:
            value = json.dumps(thumb(names[number], now))
            producer.produce(rig.prefix + "thumbs", value, names[number], partition=number % 2)
            assert producer.flush(20) == 0, "a batch each"

    send(0, 1)
    first = rig.worker()
    rig.wait("the first thumbs", rig.drained)
    assert first.terminate() == 0
    send(2, 3)
    segment = log_of(rig.kafka, rig.prefix + "thumbs")
    raw = bytearray(segment.read_bytes())
    second = HEAD + int.from_bytes(raw[LENGTH], "big")
    raw[second + LENGTH.start : second + LENGTH.stop] = (3).to_bytes(4, "big")
    segment.write_bytes(bytes(raw))
    worker = rig.worker()

    def scored() -> set[str]:
        return {trace for trace, name in rig.opik.writes() if name == "user_signal_thumbs"}

    others = {traces[names[number]]["trace_id"] for number in (0, 1, 3)}
    rig.wait("the other partition", lambda: others <= scored())
    until(lambda: worker.logged("partition_stands_still"), "it is told", 120.0)
    line = next(json.loads(one) for one in worker.log().splitlines() if '"partition_stands_still"' in one)
    assert (line["topic"], line["partition"], line["offset"]) == (rig.prefix + "thumbs", 0, 1)
    url = next(json.loads(one)["url"] for one in worker.log().splitlines() if '"http_listening"' in one)
    assert "thumbs/0 stands still" in httpx.get(f"{url}/readyz", timeout=20).text
    assert worker.running
