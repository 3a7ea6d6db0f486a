"""Bytes that nobody can read, on a real Kafka: the worker lives, the next record is settled, a letter names them."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Producer

from tests.fault.rig import Rig
from tests.fault.worker_process import WorkerProcess
from tests.raw_batches import PLACEHOLDER, Plain, batch, corrupt, log_of, produce, record
from tests.stream.plain_events import thumb, trace_event

MEGABYTES = 1 << 20
BOMB = 160 * MEGABYTES
"""Inflates to more than twice of what is taken."""


class Turns:
    """Turns with their traces on the topic; their thumbs are sent by hand."""

    def __init__(self, rig: Rig, count: int) -> None:
        self.rig, self.now = rig, datetime.now(UTC)
        self.names = [f"{rig.prefix}{number}" for number in range(count)]
        traces = {name: trace_event(name, "receipts", self.now) for name in self.names}
        producer = Producer({"bootstrap.servers": rig.kafka.bootstrap, "log_level": 0})
        for name, event in traces.items():
            producer.produce(rig.prefix + "traces", orjson.dumps(event), name)
        assert producer.flush(20) == 0
        self.ids = [event["trace_id"] for event in traces.values()]

    def thumb(self, number: int, *headers: tuple[str, bytes]) -> Plain:
        name = self.names[number]
        return record(orjson.dumps(thumb(name, self.now)), name.encode(), *headers)

    def send(self, raw: bytes, topic: str = "thumbs", partition: int = 0) -> int:
        return asyncio.run(produce(self.rig.kafka.bootstrap, self.rig.prefix + topic, partition, raw))

    def settled(self, *numbers: int) -> None:
        """Wait until these thumbs are scores in Opik, and every record is settled and committed."""
        wanted = {(self.ids[number], "user_signal_thumbs") for number in numbers}
        self.rig.wait("a score for each good thumb", lambda: wanted <= self.rig.opik.writes().keys())
        self.rig.wait("every record settled", self.rig.drained)
        written = {one for one in self.rig.opik.writes() if one[0] in self.ids and one[1] == "user_signal_thumbs"}
        assert written == wanted

    def letters(self) -> list[dict[str, str]]:
        """The headers of ours that the dead letters have, and their values."""
        found = []
        for message in self.rig.records("dead-letters"):
            ours = {name.removeprefix("rampgate."): content.decode() for name, content in message.headers()}
            found.append(ours | {"value": message.value()})
        return sorted(found, key=lambda one: int(one["offset"]))


def test_a_header_name_that_is_not_utf_8_costs_its_own_record_and_the_worker_lives(rig: Rig) -> None:
    """Whole batches in plain and in each codec; records before and behind it in the batch are settled."""
    turns = Turns(rig, 12)
    worker = rig.worker()
    for number, compression in enumerate(["", "gzip", "lz4", "zstd"]):
        one, two, three = (turns.thumb(3 * number), turns.thumb(3 * number + 1, (PLACEHOLDER, b"x")), 3 * number + 2)
        turns.send(batch(one, two, turns.thumb(three), compression=compression), partition=number)
    turns.settled(*[number for number in range(12) if number % 3 != 1])
    letters = turns.letters()
    assert [(one["cause"], one["offset"], "first-offset" in one) for one in letters] == [("unreadable", "1", False)] * 4
    assert {one["topic"] for one in letters} == {rig.prefix + "thumbs"}
    assert {one["partition"] for one in letters} == set("0123")
    assert {orjson.loads(one["value"])["response_id"] for one in letters} == {turns.names[n] for n in (1, 4, 7, 10)}
    assert all("\\xff" in str(list(one)) for one in letters), "the header's name is there, with escapes"
    assert dict(rig.conservation()["thumbs"]) == {"consumed": 12, "done": 8, "dead_lettered:unreadable": 4}
    assert worker.running
    assert worker.terminate() == 0


def test_a_batch_that_broke_on_the_brokers_disk_is_told_and_a_restart_does_not_meet_it_again(rig: Rig) -> None:
    turns = Turns(rig, 7)
    assert turns.send(batch(*map(turns.thumb, range(2)))) == 0
    assert turns.send(batch(*map(turns.thumb, range(2, 6)), compression="zstd")) == 2
    turns.send(batch(turns.thumb(6)))
    corrupt(log_of(rig.kafka, rig.prefix + "thumbs"), 2)
    worker = rig.worker()
    turns.settled(0, 1, 6)
    (letter,) = turns.letters()
    named = [letter[name] for name in ("cause", "topic", "partition", "first-offset", "offset")]
    assert named == ["unreadable", rig.prefix + "thumbs", "0", "2", "5"]
    assert "checksum" in letter["detail"]
    assert dict(rig.conservation()["thumbs"]) == {"consumed": 7, "done": 3, "dead_lettered:unreadable": 4}
    assert worker.terminate() == 0
    again = rig.worker()
    rig.wait("the second worker's start", lambda: again.logged("worker_starting"))
    rig.wait("every record settled", rig.drained)
    assert again.terminate() == 0
    assert len(turns.letters()) == 1


@pytest.mark.parametrize("compression", ["gzip", "lz4", "zstd"])
def test_a_record_that_inflates_without_end_is_too_large_and_takes_no_memory(rig: Rig, compression: str) -> None:
    turns = Turns(rig, 2)
    worker = rig.worker()
    turns.send(batch(turns.thumb(0)))
    turns.settled(0)
    before = peak(worker)
    turns.send(batch(record(b" " * BOMB), compression=compression))
    turns.send(batch(turns.thumb(1), compression=compression))
    turns.settled(0, 1)
    (letter,) = turns.letters()
    assert (letter["cause"], letter["first-offset"], letter["offset"]) == ("too_large", "1", "1")
    assert dict(rig.conservation()["thumbs"]) == {"consumed": 3, "done": 2, "dead_lettered:too_large": 1}
    assert peak(worker) - before < 200 * MEGABYTES, "less than it would inflate to"
    assert worker.terminate() == 0


def test_bad_batches_on_every_topic_at_once_stop_neither_join_nor_gates(rig: Rig) -> None:
    """Traces, rerolls and the verdicts that each worker reads to their end."""
    turns = Turns(rig, 2)
    rig.kafka.create_topics([rig.prefix + name for name in ("verdicts", "ramp-steps")], 4)
    bad = batch(record(b"{}", b"k", (PLACEHOLDER, b"")))
    for topic in ("traces", "rerolls", "thumbs", "verdicts", "ramp-steps"):
        turns.send(bad, topic)
    worker = rig.worker()
    turns.send(batch(turns.thumb(0)))
    turns.settled(0)
    rig.wait("all four letters", lambda: len(turns.letters()) == 4)
    assert {one["cause"] for one in turns.letters()} == {"unreadable"}
    assert worker.terminate() == 0


def peak(worker: WorkerProcess) -> int:
    """The most memory that the process has held so far, in bytes."""
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024
