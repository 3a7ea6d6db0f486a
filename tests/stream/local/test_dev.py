"""`rampgate dev --json`: a stranger's producer, redis-cli and the official Opik SDK work against it at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from confluent_kafka import Producer

from tests.asking import HTTP

KEYS = {"kafka", "redis", "opik", "http", "judge", "dynamodb"}


def folders() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("rampgate-*")}


def start(*flags: str) -> tuple[subprocess.Popen[str], dict[str, Any], float]:
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "rampgate", "dev", "--json", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, json.loads(line) if line else {}, time.monotonic() - began


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def gone(children: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(children, timeout=15)[1]


def test_strangers_can_use_it_at_once_and_nothing_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    monkeypatch.setenv("OPIK_SENTRY_ENABLE", "false")
    monkeypatch.setenv("OPIK_ANALYTICS_ENABLE", "false")
    import opik

    process, addresses, seconds = start()
    record_property("seconds_to_ready", round(seconds, 1))
    children = family(process)
    opened = [Path(file.path) for child in children for file in child.open_files()]
    mine = {part for path in opened for part in path.parts} & folders()
    try:
        assert mine
        assert addresses.keys() == KEYS
        answer = HTTP.get(f"{addresses['judge']}/models").raise_for_status()
        assert "stand-in" in answer.headers["X-Stand-In"], "no one may take its answers for a model's"
        assert addresses["dynamodb"] is None
        sdk = opik.Opik(host=addresses["opik"], project_name="a-stranger")
        trace = sdk.trace(name="turn", input={"q": 1}, output={"a": 2}, metadata={"response_id": "resp_1"})
        trace.end()
        sdk.flush()
        now = datetime.now(UTC).isoformat()
        event = {"event_id": "e", "response_id": "resp_1", "value": "up", "occurred_at": now}
        producer = Producer({"bootstrap.servers": addresses["kafka"]})
        producer.produce("rampgate.thumbs", key="resp_1", value=json.dumps(event))
        assert producer.flush(15) == 0
        deadline = time.monotonic() + 30
        while not (scores := sdk.get_trace_content(trace.id).feedback_scores):
            assert time.monotonic() < deadline, "no score within 30 s"
            time.sleep(0.1)
        assert {score.name: score.value for score in scores}["user_signal_thumbs"] == 1.0
        with redis.Redis.from_url(addresses["redis"]) as client:
            assert client.exists("rg:t2:resp_1")
        sdk.end()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert process.stdout is not None
    assert process.stdout.read() == ""
    assert gone(children)
    assert not mine & folders()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_services_alone_end_with_their_owner_however_it_ends(number: signal.Signals) -> None:
    process, addresses, _ = start("--no-worker")
    children = family(process)
    assert addresses["http"] is None
    assert redis.Redis.from_url(addresses["redis"]).ping()
    process.send_signal(number)
    assert process.wait(30) == (0 if number == signal.SIGINT else -number)
    assert gone(children)


@pytest.mark.parametrize(
    ("url", "taken"), [("http://127.0.0.1:9/v1", True), ("https://models.example.com/v1", False), ("", False)]
)
def test_a_model_of_this_machine_takes_the_stand_ins_place_and_no_other_does(
    monkeypatch: pytest.MonkeyPatch, url: str, taken: bool
) -> None:
    monkeypatch.setenv("RAMPGATE_MODEL_URL", url)
    process, addresses, _ = start("--no-worker")
    children = [" ".join(child.cmdline()) for child in family(process)]
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert (addresses["judge"] == url) is taken
    assert any("rampgate.local.model" in command for command in children) is not taken
