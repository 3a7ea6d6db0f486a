"""A rig for dead letters: records with headers and timestamps of one's own, and the commands as processes."""

from __future__ import annotations

import json
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uuid6
from confluent_kafka import Producer

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.redis import RedisServer
from schemas.dead_letter_answers import StoredDeadLetter, parse_dead_letter
from tests.fault.faulty_opik import FaultyOpik
from tests.fault.ledger.kafka_log import Record
from tests.fault.rig import Rig
from tests.fault.worker_process import environment
from tests.stream.commands import Ran, in_process_of_its_own, letters_in_this_process

PROJECT = "letters-eval"


class LetterRig(Rig):
    """`put` sends one record; `letters` reads the dead-letter topic whole; `command` runs `rampgate dead-letters …`.

    The consumed topics take records of 8 MB, as an operator may have set them.
    """

    def __init__(
        self, kafka: KafkaCluster, redis_server: RedisServer, opik: FaultyOpik, folder: Path, **settings: Any
    ) -> None:
        prefix = f"letters-{uuid.uuid4().hex[:8]}."
        names = [prefix + name for name in ("thumbs", "rerolls", "traces")]
        kafka.create_topics(names, 4, config={"max.message.bytes": "8000000"})
        super().__init__(kafka, redis_server, opik, prefix, folder, **settings)
        self._producer = Producer(
            {"bootstrap.servers": kafka.bootstrap, "linger.ms": 0, "message.max.bytes": 8_000_000}
        )

    def put(
        self,
        topic: str,
        value: Any,
        *,
        key: bytes | None = b"key",
        headers: Any = (),
        partition: int = 0,
        timestamp: int | None = None,
    ) -> Record:
        raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        at = timestamp or now_ms()
        landed: list[Any] = []
        self._producer.produce(
            self.prefix + topic,
            raw,
            key,
            partition=partition,
            timestamp=at,
            headers=list(headers),
            on_delivery=lambda error, message: landed.append((error, message)),
        )
        assert self._producer.flush(20) == 0
        ((error, message),) = landed
        assert error is None, error
        return Record(self.prefix + topic, partition, message.offset(), key, raw, tuple(headers), at)

    def letters(self) -> list[StoredDeadLetter]:
        return [parse_dead_letter(record) for record in self.records("dead-letters")]

    def letters_of(self, *sent: Record) -> list[StoredDeadLetter]:
        """Their letters, once there is one for each of these records; of a doubled letter the first."""
        wanted = {(one.topic, one.partition, one.offset) for one in sent}
        found: dict[tuple[str, int, int], StoredDeadLetter] = {}

        def complete() -> bool:
            for letter in self.letters():
                found.setdefault((letter.topic, letter.partition, letter.offset), letter)
            return wanted <= found.keys()

        self.wait("a letter for each record", complete, 30.0)
        return [found[one.topic, one.partition, one.offset] for one in sent]

    def command(self, *arguments: str, process: bool = False, **settings: Any) -> Ran:
        """`rampgate dead-letters …`, in this process or in one of its own."""
        ours = environment(self._settings | settings)
        if process:
            return in_process_of_its_own(ours, "dead-letters", *arguments)
        return letters_in_this_process(ours, *arguments)

    def forget_replays(self) -> None:
        """What a FLUSHALL does to the ledger."""
        for key in self.state.scan_iter(f"{self.prefix}replay:*"):
            self.state.delete(key)

    def in_opik(self, trace_id: str, response_id: str) -> None:
        """Put a trace where Opik's search finds it."""
        at = iso(now_ms())
        metadata = {"response_id": response_id, "vertical": "receipts"}
        trace = {"id": trace_id, "name": "t", "project_name": PROJECT, "start_time": at, "end_time": at}
        self.opik.call("POST", "/v1/private/traces/batch", {"traces": [trace | {"metadata": metadata}]})

    def held(self) -> dict[tuple[str, str], float]:
        """Every user signal in Opik under this rig's project."""
        return self.opik.scores([PROJECT])


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()


def new_trace_id() -> str:
    return str(uuid6.uuid7())


def thumb(rid: str, value: str | None = "down", **more: Any) -> dict[str, Any]:
    event = {"event_id": "e-" + rid, "response_id": rid, "user_id": "u", "value": value, "occurred_at": iso(now_ms())}
    return event | more


def trace(rid: str, trace_id: str, **more: Any) -> dict[str, Any]:
    at = iso(now_ms())
    event = {"event_id": "t-" + rid, "trace_id": trace_id, "response_id": rid, "project_name": PROJECT}
    event |= {"started_at": at, "ended_at": at}
    return event | {"metadata": {"vertical": "receipts", "sub_agent": "s"}} | more


def reroll(rid: str, **more: Any) -> dict[str, Any]:
    event = {"event_id": "r-" + rid, "response_id": rid, "new_response_id": rid + "-2", "session_id": "s"}
    return event | {"elapsed_seconds": 5, "occurred_at": iso(now_ms())} | more
