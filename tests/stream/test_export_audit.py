"""`rampgate export` as a process: the topic on Kafka tells of exactly what it wrote (PF-9 FR-12, AC-12)."""

from __future__ import annotations

import hashlib
import json
import random
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.demo.day import uuid7
from rampgate.local.dev import DevStack
from tests.asking import HTTP
from tests.fault.ledger.kafka_log import KafkaLog
from tests.stream.local.dev_rig import rampgate, running
from tests.waiting import until

PROJECT = "receipts-eval"
MANY = 600
"""More than a page of turns with texts."""


@pytest.fixture(scope="module")
def dev() -> Iterator[DevStack]:
    """The embedded services without a worker: an export needs none."""
    with running(lambda: DevStack(worker=False)) as stack:
        yield stack


def turns(dev: DevStack) -> set[str]:
    """MANY turns, of which every other one is voted down; returns the ids of those."""
    at, rng = datetime.now(UTC) - timedelta(minutes=5), random.Random(1)
    began = at.isoformat()
    traces: list[dict[str, Any]] = [
        {
            "id": uuid7(int(at.timestamp() * 1_000), rng), "project_name": PROJECT, "name": "turn",
            "start_time": began, "end_time": began,
            "input": f"question {number}", "output": f"answer {number}",
            "metadata": {"response_id": f"r-{number}", "vertical": "receipts"},
        }
        for number in range(2 * MANY)
    ]  # fmt: skip
    scores = [
        {"id": trace["id"], "project_name": PROJECT, "name": "user_signal_thumbs", "source": "sdk",
         "value": 1.0 if number % 2 else -1.0}
        for number, trace in enumerate(traces)
    ]  # fmt: skip
    base = f"{dev.addresses['opik']}/v1/private/traces"
    for first in range(0, 2 * MANY, 600):
        HTTP.post(f"{base}/batch", json={"traces": traces[first : first + 600]}).raise_for_status()
        HTTP.put(f"{base}/feedback-scores", json={"scores": scores[first : first + 600]}).raise_for_status()
    return {f"r-{number}" for number in range(0, 2 * MANY, 2)}


def audited(dev: DevStack, export: str, exported: int) -> list[dict[str, Any]]:
    """The records of an export, of each page the last, once they tell of so many turns."""
    log = KafkaLog(dev.addresses["kafka"], "")

    def found() -> dict[int, dict[str, Any]]:
        records = (json.loads(record.value or b"") for record in log.records("ps5.query_audit"))
        return {
            record["query"]["page"]: record
            for record in records
            if record["query"]["export"] == export and "page" in record["query"]
        }

    until(lambda: sum(record["count"] for record in found().values()) >= exported, "the audit records")
    return [found()[page] for page in sorted(found())]


def told(records: list[dict[str, Any]], lines: list[dict[str, Any]]) -> None:
    """The records tell of these lines, page by page, and of no others."""
    begin = 0
    for record in records:
        assert (record["purpose"], record["vertical"]) == ("eval", "receipts")
        ids = sorted(line["response_id"] for line in lines[begin : begin + record["count"]])
        assert record["response_ids_sha256"] == hashlib.sha256("\n".join(ids).encode()).hexdigest()
        begin += record["count"]
    assert begin == len(lines)


@pytest.fixture(scope="module")
def expected(dev: DevStack) -> set[str]:
    return turns(dev)


WORDS = ("export", "--where", "feedback_scores.user_signal_thumbs < 0", "--vertical", "receipts", "--json")


def test_pf9_ac12_counts_and_hashes_on_kafka_are_those_of_the_file(
    dev: DevStack, expected: set[str], tmp_path: Path
) -> None:
    file = tmp_path / "down.jsonl"
    ran = rampgate(dev, *WORDS, "--output", str(file))
    assert ran.code == 0, ran.err
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert {line["response_id"] for line in lines} == expected
    assert len(lines) == MANY
    assert all(line["user_query"].startswith("question ") for line in lines)
    assert all(line["agent_response"].startswith("answer ") for line in lines)
    records = audited(dev, ran.json["export"], MANY)
    assert len(records) == ran.json["pages"] > 1
    told(records, lines)


def test_pf9_ac12_an_export_killed_between_audit_and_lines_goes_on_and_its_records_are_those_of_the_file(
    dev: DevStack, expected: set[str], tmp_path: Path
) -> None:
    """SIGKILL before the first page is written, and, once it is there, before the second one is."""
    file = tmp_path / "down.jsonl"
    for page in (1, 2):
        killed = rampgate(dev, str(page), *WORDS, "--output", str(file), module="tests.stream.killed_export")
        assert killed.code == -signal.SIGKILL, killed.err
        assert not file.exists()
    ran = rampgate(dev, *WORDS, "--output", str(file))
    assert ran.code == 0, ran.err
    assert "goes on with 1 pages of lines" in ran.err
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert {line["response_id"] for line in lines} == expected
    assert len(lines) == MANY
    records = audited(dev, ran.json["export"], MANY)
    assert len(records) == ran.json["pages"]
    told(records, lines)
