"""Producers that use transactions: what they abort is no record for us, and its offsets hold nothing up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import orjson
from confluent_kafka import Producer

from tests.fault.rig import Rig
from tests.stream.plain_events import PROJECT, thumb, trace_event

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
