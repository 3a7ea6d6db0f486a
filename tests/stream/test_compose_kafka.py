"""The compose file's Kafka: each user does its work with the rights that it is given, and no one else does anything."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from evalcore.gates.verdict import Moment, of_pull_request
from rampgate.ci_gate.publish import publish
from rampgate.local.services.process import ServiceUnavailable
from rampgate.local.services.redis import RedisServer
from rampgate.settings import KafkaSecurity, Settings
from schemas.judges import Milestone
from schemas.publish.examples import EXAMPLES
from schemas.topics import Topics
from schemas.verdicts import GateVerdict, VerdictLevel
from tests.action_program import ACTIONS, action_beside_a_program
from tests.fault.faulty_opik import FaultyOpik
from tests.fault.worker_process import WorkerProcess, environment
from tests.giving_up import give_up
from tests.root import ROOT
from tests.stream.commands import in_process_of_its_own
from tests.stream.compose_kafka import SERVICES, ComposeKafka, refusal
from tests.stream.plain_events import PROJECT, thumb, trace_event
from tests.unit.agents.live.live_rig import events
from tests.waiting import until

STRANGER = "a-password-that-is-right"


@pytest.fixture(scope="module")
def compose_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeKafka]:
    broker = ComposeKafka(tmp_path_factory.mktemp("compose"))
    try:
        broker.start()
    except ServiceUnavailable as error:
        give_up(error)
    broker.enrol("stranger", STRANGER)
    yield broker
    broker.close()


@pytest.fixture
def settings(
    compose_kafka: ComposeKafka, redis_server: RedisServer, scripted_opik: FaultyOpik, topic_prefix: str
) -> Callable[[str], dict[str, Any]]:
    """The settings of a service of the compose file."""
    scripted_opik.heal()

    def of(service: str) -> dict[str, Any]:
        return {
            "kafka": compose_kafka.address,
            "kafka_security": compose_kafka.security(service),
            "redis": redis_server.url,
            "redis_prefix": topic_prefix,
            "opik": scripted_opik.url,
            "http": "127.0.0.1:0",
            "write": SERVICES[service]["environment"]["RAMPGATE_WRITE"],
            "log_format": "json",
            "commit_interval_seconds": 0.2,
            "trace_lookup_seconds": 0.5,
        }

    return of


def send(options: dict[str, Any], topic: str, event: Any, key: str = "k") -> None:
    """Raises KafkaException where the broker refuses it."""
    told: list[Any] = []
    producer = Producer(options | {"message.timeout.ms": 20_000, "enable.idempotence": True})
    producer.produce(
        topic,
        event if isinstance(event, bytes) else json.dumps(event),
        key,
        on_delivery=lambda error, _: told.append(error),
    )
    assert producer.flush(30) == 0
    if told[0] is not None:
        raise KafkaException(told[0])


def read(options: dict[str, Any], topic: str, partitions: int = 4) -> list[Any]:
    """All values of a topic. Raises KafkaException where the broker refuses to give them."""
    more = {
        "group.id": "controller-of-the-test",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    found, ended = [], 0
    with closing(Consumer(options | more)) as consumer:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        while ended < partitions:
            message = consumer.poll(20)
            assert message is not None, "the broker neither answers nor refuses"
            error = message.error()
            if error is None:
                found.append(json.loads(message.value()))
            elif error.name() == "_PARTITION_EOF":
                ended += 1
            elif error.name() != "GROUP_AUTHORIZATION_FAILED":  # what is assigned is read without a group
                raise KafkaException(error)
    return found


def hidden(options: dict[str, Any], topic: str) -> bool:
    """True where the broker tells this user nothing about a topic, so that it can't be read either."""
    error = AdminClient(options).list_topics(topic, timeout=20).topics[topic].error
    return error is not None and error.name() == "TOPIC_AUTHORIZATION_FAILED"


def test_worker_feed_console_and_controller_do_their_work_with_their_own_rights(
    compose_kafka: ComposeKafka,
    settings: Callable[[str], dict[str, Any]],
    scripted_opik: FaultyOpik,
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    """A worker joins, scores, dead-letters, commits and publishes a verdict; the console lists the dead letter."""
    now = datetime.now(UTC)
    turn = trace_event(f"{topic_prefix}turn", "receipts", now)
    held = {"id": turn["trace_id"], "name": "turn", "project_name": PROJECT, "start_time": now.isoformat()}
    scripted_opik.call("POST", "/v1/private/traces/batch", {"traces": [held]})
    worker = WorkerProcess(settings("worker"), tmp_path / "worker.log")
    try:
        send(compose_kafka.login("events"), "rampgate.traces", turn)
        send(compose_kafka.login("feed"), "rampgate.thumbs", thumb(turn["response_id"], now))
        send(compose_kafka.login("feed"), "rampgate.thumbs", b"no thumb at all")
        step = {
            "request_id": f"{topic_prefix}step",
            "experiment_id": "compose",
            "agent_id": "compose",
            "agent_version": "1",
            "from_percent": 50,
            "to_percent": 60,
            "ramp_steps": [1, 50, 60, 100],
            "eval_gates": {"pre_ramp": [], "pre_full": []},
            "requested_at": now.isoformat(),
        }
        send(compose_kafka.login("controller"), "rampgate.ramp-steps", step)
        until(lambda: (turn["trace_id"], "user_signal_thumbs") in scripted_opik.writes(), "the thumb's score")
        until(lambda: read(compose_kafka.login("controller"), "rampgate.verdicts"), "a verdict")
        (verdict,) = read(compose_kafka.login("controller"), "rampgate.verdicts")
        assert verdict["request_id"] == step["request_id"]

        def listed() -> Any:
            ran = in_process_of_its_own(environment(settings("console")), "dead-letters", "list", "--json")
            assert ran.code == 0, ran.err
            return [letter["cause"] for letter in ran.json["letters"]]

        until(lambda: listed() == ["malformed"], "the dead letter")
        assert worker.terminate() == 0
    finally:
        if worker.running:
            worker.kill()
    assert "AuthorizationFailed" not in worker.log()


def test_a_stranger_who_can_log_in_may_neither_read_nor_write(compose_kafka: ComposeKafka) -> None:
    options = compose_kafka.login("stranger", STRANGER)
    for topic in ("rampgate.thumbs", "rampgate.verdicts", "rampgate.dead-letters"):
        with pytest.raises(KafkaException) as refused:
            send(options, topic, {})
        assert refusal(refused.value) == "TOPIC_AUTHORIZATION_FAILED"
        assert hidden(options, topic)


@pytest.mark.parametrize(
    ("user", "topic"),
    [("events", "rampgate.thumbs"), ("feed", "rampgate.verdicts"), ("controller", "rampgate.verdicts")],
)
def test_a_user_may_not_write_what_is_not_its_own(compose_kafka: ComposeKafka, user: str, topic: str) -> None:
    """Else a tracer makes thumbs up, and a controller its own verdicts."""
    with pytest.raises(KafkaException) as refused:
        send(compose_kafka.login(user), topic, {})
    assert refusal(refused.value) == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("user", ["events", "controller"])
def test_users_texts_are_read_by_worker_and_console_alone(compose_kafka: ComposeKafka, user: str) -> None:
    assert hidden(compose_kafka.login(user), "rampgate.dead-letters")


@pytest.mark.parametrize(
    ("user", "topic"), [("feed", "rampgate.thumbs"), ("feed", "rampgate.dead-letters"), ("events", "rampgate.traces")]
)
def test_who_writes_a_topic_does_not_read_it(compose_kafka: ComposeKafka, user: str, topic: str) -> None:
    with pytest.raises(KafkaException) as refused:
        read(compose_kafka.login(user), topic)
    assert refusal(refused.value) == "TOPIC_AUTHORIZATION_FAILED"


def test_pf9_fr6_the_sweeps_user_reads_the_rerolls_that_the_middleware_sends(compose_kafka: ComposeKafka) -> None:
    send(compose_kafka.login("events"), "rampgate.rerolls", {"event_id": "seen by the sweep"})
    assert {"event_id": "seen by the sweep"} in read(compose_kafka.login("feed"), "rampgate.rerolls")


def test_ci_publishes_overrides_and_verdicts_by_the_action_and_may_do_nothing_else(
    compose_kafka: ComposeKafka, tmp_path: Path
) -> None:
    """The action's own step, with the password that it is handed; what it sends a worker may read."""
    (example,) = EXAMPLES["gate-override"]
    made, target = tmp_path / "rampgate-overrides", tmp_path / "target"
    made.mkdir()
    target.mkdir()
    audited = {name: value for name, value in example.items() if name != "event_id"}
    noise = {"kind": "skip", "topic": "rampgate.thumbs"}
    (made / "audit.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in (noise, audited)))
    security = {"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-512", "user": "ci"}
    told = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(tmp_path), "TARGET": str(target),
        "ACTION": str(action_beside_a_program(tmp_path / "program", ACTIONS / "overrides")),
        "KAFKA": compose_kafka.address, "KAFKA_SECURITY": json.dumps(security),
        "KAFKA_PASSWORD": compose_kafka.login("ci")["sasl.password"],
    }  # fmt: skip
    command = ["bash", str(Path(told["ACTION"]) / "publish.sh")]
    done = subprocess.run(command, env=told, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, json.loads(done.stdout or "null")) == (0, {"published": 1}), done.stderr
    (entry,) = read(compose_kafka.login("worker"), "rampgate.gate-overrides", 1)
    assert entry.items() > audited.items()
    assert not list(tmp_path.glob("kafka.*")), "the password's file is gone"

    secret = tmp_path / "secret"
    secret.write_text(told["KAFKA_PASSWORD"])
    access = Settings(kafka=compose_kafka.address, kafka_security=KafkaSecurity(**security, secret_file=secret))
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    gate = GateVerdict({}, VerdictLevel.PASS, [], Milestone.PRE_MERGE)
    verdict = of_pull_request("shop-agent", "v2", gate, Moment(now, 1.0), request_id="gate-run-of-ci")
    asyncio.run(publish(access, verdict, events(1)))
    found = read(compose_kafka.login("worker"), "rampgate.verdicts")
    assert "gate-run-of-ci" in [one["request_id"] for one in found]

    ci = compose_kafka.login("ci")
    written = {"rampgate.verdicts", "rampgate.gate-overrides", "rampgate.judge-scores"}
    assert {topic for topic in Topics().all if not hidden(ci, topic)} == written
    for topic in written:
        with pytest.raises(KafkaException) as refused:
            read(ci, topic, 1)
        assert refusal(refused.value) == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("how", ["a wrong password", "no password"])
def test_who_does_not_log_in_gets_nothing(compose_kafka: ComposeKafka, how: str) -> None:
    options = compose_kafka.login("worker", "wrong")
    if how == "no password":
        options = {"bootstrap.servers": compose_kafka.address, "log_level": 0}
    told: list[str] = []
    producer = Producer(options | {"error_cb": lambda error: told.append(error.name()), "message.timeout.ms": 20_000})
    with pytest.raises(KafkaException):
        producer.list_topics(timeout=3)
    producer.poll(0)
    if how == "a wrong password":
        assert "_AUTHENTICATION" in told
