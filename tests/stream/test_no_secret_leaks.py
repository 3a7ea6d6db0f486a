"""A worker as a process, with canaries for every secret and every user text: none of them comes out anywhere but in the
dead letters' own bytes, which are kept on purpose."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uuid6

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.process import ChildProcess
from rampgate.local.services.redis import RedisServer
from tests.asking import HTTP
from tests.fault.faulty_opik import FaultyOpik
from tests.fault.rig import Rig, now_ms
from tests.fault.turns import Message
from tests.fault.worker_process import WorkerProcess

OPIK_KEY, REDIS_PASSWORD, TOKEN = "canary-opik-key", "canary/redis@password", "canary-http-token"
KAFKA_PASSWORD = "canary-kafka-password"
USER_TEXT = "canary words of a user"
LEAK = re.compile(r"canary", re.IGNORECASE)


class KeyedOpik(FaultyOpik):
    """A local Opik that wants the key."""

    def _prepare(self, folder: Path) -> ChildProcess:
        command = [sys.executable, "-m", "rampgate.local.opik", "--port", str(self.port), "--faults"]
        return ChildProcess(self.name, [*command, "--api-key", OPIK_KEY], folder)


@pytest.fixture(scope="module")
def keyed_opik() -> Iterator[KeyedOpik]:
    with KeyedOpik() as server:
        yield server


@pytest.fixture(scope="module")
def locked_redis() -> Iterator[RedisServer]:
    with RedisServer(password=REDIS_PASSWORD) as server:
        yield server


@pytest.fixture
def start(
    kafka: KafkaCluster, locked_redis: RedisServer, keyed_opik: KeyedOpik, topic_prefix: str, tmp_path: Path
) -> Iterator[Callable[..., tuple[Rig, WorkerProcess]]]:
    """Starts a worker that logs all it can; settings may be overruled."""
    rigs: list[Rig] = []

    def begin(**settings: Any) -> tuple[Rig, WorkerProcess]:
        rig = Rig(kafka, locked_redis, keyed_opik, topic_prefix, tmp_path)
        rigs.append(rig)
        secrets = {"opik_api_key": OPIK_KEY, "token": TOKEN}
        return rig, rig.worker(**(secrets | {"log_level": "debug", "log_format": "json"} | settings))

    yield begin
    for rig in rigs:
        rig.close()


def no_leak(what: str, text: str) -> None:
    for line in text.splitlines():
        assert not LEAK.search(line), f"{what}: {line[:2000]}"


def asked(url: str, token: str | None) -> str:
    return HTTP.get(url, headers={"Authorization": f"Bearer {token}"} if token else {}).text


def messages() -> list[Message]:
    at = now_ms() / 1000
    turns = [f"r{n}" for n in range(6)]
    out = []
    for rid in turns:
        trace = {"event_id": "t" + rid, "trace_id": str(uuid6.uuid7()), "response_id": rid, "project_name": "p"}
        trace |= {"started_at": at - 1, "ended_at": at, "metadata": {"vertical": "v", "session_id": "s" + rid}}
        trace |= {"input": {"messages": [USER_TEXT]}, "output": USER_TEXT}
        out.append(Message("traces", rid.encode(), json.dumps(trace).encode()))
    thumb = {"event_id": "e", "response_id": "r0", "user_id": "u", "value": "down", "occurred_at": at}
    bad: list[Any] = [thumb | {"occurred_at": USER_TEXT}, thumb | {"value": USER_TEXT}, {"said": USER_TEXT}, USER_TEXT]
    bad += [thumb | {"sequence": USER_TEXT}, thumb | {"response_id": {USER_TEXT: USER_TEXT}}]
    bad += [{USER_TEXT: 1}, {"dynamodb": {USER_TEXT: {}}, USER_TEXT: 1}]
    raw = [json.dumps(event).encode() for event in bad] + [USER_TEXT.encode(), b'{"a": "' + USER_TEXT.encode()]
    out += [Message("thumbs", b"r0", value) for value in raw]
    out += [Message("thumbs", rid.encode(), json.dumps(thumb | {"response_id": rid}).encode()) for rid in turns]
    trouble = json.dumps({"trace_id": USER_TEXT, "response_id": "x", "input": USER_TEXT}).encode()
    return [*out, Message("traces", b"x", trouble), Message("rerolls", b"x", trouble)]


def test_a_running_worker_tells_no_secret_and_no_users_words(start: Callable[..., tuple[Rig, WorkerProcess]]) -> None:
    rig, worker = start()
    quoting = {"errors": [f"not stored: {USER_TEXT}"]}
    rig.opik.fault(match={"path": "feedback-scores"}, status=503, body=quoting, times=1)
    rig.send(messages())
    rig.wait("every record settled", rig.drained, 60)
    rig.wait("scores in Opik", lambda: len(rig.opik.writes()) >= 6, 20)
    (url,) = {found[1] for found in re.finditer(r'"url": ?"(http://[^"]+)"', worker.log())}
    for path in ("/metrics", "/livez", "/readyz", "/coverage", "/conservation", "/dead-letters", "/", "/nowhere"):
        no_leak(path, asked(url + path, TOKEN))
        no_leak(path, asked(url + path, None))
    for path in ("/turns/nobody", "/coverage?window=x", "/turns/%00"):
        no_leak(path, asked(url + path, TOKEN))
    letters = rig.dead_letters()
    assert len(letters) == 12
    assert all(b"canary" in letter["value"] for letter in letters), "the bytes are kept: a replay needs them"
    for letter in letters:
        no_leak("a dead letter's header", json.dumps({k: v for k, v in letter.items() if k not in ("key", "value")}))
    for key in rig.state.scan_iter(f"{rig.prefix}*"):
        no_leak("a key in Redis", key.decode(errors="replace"))
    assert worker.terminate() == 0
    no_leak("the log", worker.log())


def named() -> list[tuple[str, dict[str, Any]]]:
    """Records whose names are a user's words: of fields, of what labels come from, of a ramp step that is refused."""
    at = now_ms() / 1000
    trace: dict[str, Any] = {"event_id": "n", "trace_id": str(uuid6.uuid7()), "response_id": "n", "project_name": "p"}
    trace |= {"started_at": at - 1, "ended_at": at, USER_TEXT: USER_TEXT}
    labels = dict.fromkeys(("vertical", "sub_agent", "sub_agent_id", "category"), USER_TEXT)
    trace["metadata"] = labels | {USER_TEXT: {USER_TEXT: USER_TEXT}, "session_id": "s"}
    thumb = {
        "event_id": "n",
        "response_id": "n",
        "user_id": "u",
        "value": "up",
        "occurred_at": at,
        USER_TEXT: USER_TEXT,
    }
    step = {"request_id": "asked", "experiment_id": "e", "agent_id": "a", "agent_version": "1", "from_percent": 0}
    steps = [{USER_TEXT: USER_TEXT}, step | {"to_percent": USER_TEXT}, step | {"to_percent": {USER_TEXT: USER_TEXT}}]
    steps += [step | {"to_percent": 1, "eval_gates": {USER_TEXT: USER_TEXT}, "requested_at": USER_TEXT}]
    reroll = {
        "event_id": USER_TEXT,
        "response_id": "n",
        "occurred_at": at,
        USER_TEXT: [USER_TEXT],
        "elapsed": USER_TEXT,
    }
    told = [("traces", trace), ("thumbs", thumb), ("rerolls", reroll), ("thumbs", thumb | {"value": {USER_TEXT: 1}})]
    return told + [("ramp-steps", one) for one in steps]


def test_names_that_are_a_users_words_are_told_nowhere(start: Callable[..., tuple[Rig, WorkerProcess]]) -> None:
    """Fields, headers, labels, refused ramp steps, and requests over HTTP."""
    rig, worker = start()
    rig.send(messages()[:1])
    rig.wait("the first record settled", rig.drained, 60)
    for topic, event in named():
        headers: Any = [(USER_TEXT, USER_TEXT.encode()), ("rampgate.cause", USER_TEXT.encode())]
        rig._producer.produce(rig.prefix + topic, json.dumps(event).encode(), b"n", headers=headers)
    assert rig._producer.flush(60) == 0
    rig.wait("every record settled", rig.drained, 60)
    rig.wait("ramp steps refused", lambda: len(rig.records("dead-letters")) + len(rig.records("verdicts")) >= 6, 60)
    (url,) = {found[1] for found in re.finditer(r'"url": ?"(http://[^"]+)"', worker.log())}
    asking = {"Authorization": f"Bearer {TOKEN}", "X-Canary": USER_TEXT, "User-Agent": USER_TEXT, "Cookie": "canary=1"}
    for path in ("/canary", "/metrics?canary=canary", "/turns/canary?purpose=canary", "/coverage?canary=1"):
        HTTP.get(url + path, headers=asking)
    for path in ("/metrics", "/readyz", "/coverage", "/conservation", "/dead-letters", "/"):
        no_leak(path, asked(url + path, TOKEN))
    for record in rig.records("verdicts"):
        no_leak("a verdict", repr(record))
    for record in rig.records("dead-letters"):
        ours = [(name, value) for name, value in record.headers if name.startswith("rampgate.")]
        no_leak("a dead letter's header", repr(ours))
    assert worker.terminate() == 0
    no_leak("the log", worker.log())


SASL = '{{"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "user": "u", "secret_file": "{key}"}}'
FAILING: dict[str, tuple[str, dict[str, Any]]] = {
    "a Redis that refuses the password": ("waiting_for_state", {"redis": "redis://:canary-wrong@{redis}/0"}),
    "a Redis URL that is none": ("percent-encoded", {"redis": "redis://:canary/with#signs@{redis}/0"}),
    "an Opik that refuses the key": ("worker_must_stop", {"opik_api_key": "canary-wrong-key"}),
    "an Opik URL with a login": (
        "maintenance_waiting|opik_retry",
        {"opik": "http://user:canary-login@127.0.0.1:1/api", "opik_retry_seconds": 1},
    ),
    "a Kafka login that is refused": (
        "waiting_for_topics",
        {"kafka_security": SASL},
    ),
    "a Kafka password given inline": (
        "kafka_security.password",
        {"kafka_security": '{{"protocol": "SASL_SSL", "password": "canary-inline"}}'},
    ),
    "Kafka settings that are no JSON": ("not valid JSON", {"kafka_security": "{{'password': 'canary-inline'}}"}),
    "a setting that does not exist": ("no such setting", {"opik_apikey": "canary-typo"}),
    "an address that can't be had": ("can't listen", {"http": "203.0.113.7:80"}),
    "a number that is none": ("valid integer", {"batch_records": "canary-number"}),
}
"""What goes wrong -> what the log must say of it, and the settings that bring it about."""


@pytest.mark.parametrize("failure", FAILING)
def test_a_worker_that_fails_at_its_start_tells_no_secret(
    failure: str, start: Callable[..., tuple[Rig, WorkerProcess]], locked_redis: RedisServer, tmp_path: Path
) -> None:
    secret = tmp_path / "kafka-secret"
    secret.write_text(KAFKA_PASSWORD)
    words, told = FAILING[failure]
    places = {"redis": f"127.0.0.1:{locked_redis.port}", "key": secret}
    rig, worker = start(**{k: v.format(**places) if isinstance(v, str) else v for k, v in told.items()})
    rig.send(messages()[:7])
    rig.wait(words, lambda: re.search(words, worker.log()) is not None, 30)
    if worker.running:
        worker.terminate()
    no_leak("the log", worker.log())
    assert "Traceback" not in worker.log(), worker.log()
