"""What producers put on a topic of a real Kafka: bytes that no one can read cost their own record alone, what a
transaction aborts is no record, and every codec is read."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from confluent_kafka import Producer

from rampgate.local.services.kafka import KafkaCluster
from tests.fault.rig import Rig
from tests.fault.worker_process import WorkerProcess
from tests.raw_batches import PLACEHOLDER, Plain, batch, corrupt, log_of, produce, record
from tests.stream.plain_events import PROJECT, thumb, trace_event

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
            ours = {name.removeprefix("rampgate."): (content or b"").decode() for name, content in message.headers}
            found.append(ours | {"value": message.value})
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


TURNS = 20


class Transactions:
    """A producer whose records count together, or not at all."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.now = rig, datetime.now(UTC)
        options = {"bootstrap.servers": rig.kafka.bootstrap, "transactional.id": f"{rig.prefix}app", "log_level": 0}
        self._producer = Producer(options)
        self._producer.init_transactions(30)

    def send(self, topic: str, *events: dict[str, Any], commit: bool) -> None:
        self._producer.begin_transaction()
        for event in events:
            self._producer.produce(self.rig.prefix + topic, orjson.dumps(event), event["response_id"])
        assert self._producer.flush(30) == 0, "they are in Kafka, whatever becomes of the transaction"
        if commit:
            self._producer.commit_transaction(30)
        else:
            self._producer.abort_transaction(30)

    def thumbs(self, names: list[str], value: str, *, commit: bool) -> None:
        events = [thumb(name, self.now) | {"value": value, "event_id": f"{name}-{value}-{commit}"} for name in names]
        self.send("thumbs", *events, commit=commit)


def test_what_a_transaction_aborts_is_no_record_and_holds_nothing_up(rig: Rig) -> None:
    """Half of all records: the opposite thumbs of the same turns, before, between and behind those that count. Offsets
    of no record are at the end of each partition, and the worker has no lag."""
    rig.kafka.create_topics([rig.prefix + name for name in ("ramp-steps", "verdicts", "dead-letters")], 4)
    transactions = Transactions(rig)
    names = [f"{rig.prefix}{number}" for number in range(TURNS)]
    events = {name: trace_event(name, "receipts", transactions.now) for name in names}
    at = transactions.now.isoformat()
    held = [
        {"id": event["trace_id"], "name": "turn", "project_name": PROJECT, "start_time": at}
        for event in events.values()
    ]
    rig.opik.call("POST", "/v1/private/traces/batch", {"traces": held})
    transactions.send("traces", *events.values(), commit=True)
    transactions.thumbs(names, "down", commit=False)
    worker = rig.worker()
    transactions.thumbs(names[: TURNS // 2], "up", commit=True)
    transactions.thumbs(names, "down", commit=False)
    transactions.thumbs(names[TURNS // 2 :], "up", commit=True)
    transactions.thumbs(names, "down", commit=False)
    ids = {event["trace_id"] for event in events.values()}
    wanted = {(trace, "user_signal_thumbs") for trace in ids}
    rig.wait("a score for each thumb", lambda: wanted <= rig.opik.writes().keys())
    lines = [orjson.loads(line) for line in worker.log().splitlines() if line.startswith("{")]
    url = next(line["url"] for line in lines if line["event"] == "http_listening")

    def lags() -> dict[str, float]:
        page = httpx.get(f"{url}/metrics", timeout=20).text.splitlines()
        return {
            line.split(" ")[0]: float(line.split(" ")[1]) for line in page if line.startswith("rampgate_consumer_lag")
        }

    rig.wait("no lag anywhere", lambda: len(lags()) >= 12 and not any(lags().values()))
    scores = rig.opik.scores([PROJECT])
    assert {trace: scores[trace, "user_signal_thumbs"] for trace in ids} == dict.fromkeys(ids, 1.0)
    assert dict(rig.conservation()["thumbs"]) == {"consumed": TURNS, "done": TURNS}
    assert rig.dead_letters() == []
    assert worker.terminate() == 0


CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
"""In the order of the numbers by which Kafka's batches name them."""
COMPRESSED = 40


def test_batches_of_a_foreign_client_are_settled_in_each_of_kafkas_codecs(rig: Rig, kafka: KafkaCluster) -> None:
    """librdkafka compresses and our worker reads; the two share no code. At the end the worker still runs."""
    expected: set[tuple[str, str]] = set()
    for codec in CODECS:
        now = datetime.now(UTC)
        names = [f"{rig.prefix}{codec}-{number}" for number in range(COMPRESSED)]
        traces = {name: trace_event(name, "receipts", now) for name in names}
        produced(rig, codec, "traces", traces)
        produced(rig, codec, "thumbs", {name: thumb(name, now) for name in names})
        expected |= {(event["trace_id"], "user_signal_thumbs") for event in traces.values()}
    for topic in ("traces", "thumbs"):
        assert codecs_in_log(kafka, rig.prefix + topic) == set(CODECS)
    worker = rig.worker()
    rig.wait("a score for each thumb of each codec", lambda: expected <= rig.opik.writes().keys())
    rig.wait("every record settled", rig.drained)
    thumbs = dict(rig.conservation()["thumbs"])
    assert thumbs["consumed"] == thumbs["done"] == len(CODECS) * COMPRESSED
    assert worker.terminate() == 0


def produced(rig: Rig, codec: str, topic: str, events: dict[str, dict[str, Any]]) -> None:
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
