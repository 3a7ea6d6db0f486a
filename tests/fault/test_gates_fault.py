"""Gates while parts die: every ramp-step request has exactly one verdict, as a plain consumer reads it (PC5 AC-4)."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from rampgate.local.services.redis import RedisServer
from tests.fault.faulty_gates import CALLS, TRACES, GateRig, Model, step
from tests.fault.held import PARTITIONS
from tests.fault.rig import Rig

Make = Callable[..., Rig]
SLOW = pytest.mark.slow
LATENCY = 0.3
"""Of a model call: with 20 at once, a gate takes about six seconds."""


def passed(verdict: dict[str, Any]) -> None:
    assert (verdict["action"], verdict["failing_judges"]) == ("proceed", []), verdict["reasons"]
    assert {reason["code"] for reason in verdict["reasons"]} <= {"gate_missing"}, verdict["reasons"]
    assert verdict["sample"]["size"] == TRACES
    assert {row["unscored"] for row in verdict["per_judge_scores"].values()} == {0}


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=SLOW)])
def test_pc5_ac4_a_worker_killed_in_a_gate_is_taken_over_and_the_gate_resumed(
    make_rig: Make, model: Model, kills: int
) -> None:
    """What was scored before is not asked for again, but for the calls that were under way."""
    gates = GateRig(make_rig, model)
    worker = gates.rig.worker()
    gates.joined()
    model.tell(latency_seconds=LATENCY)
    gates.ask(step("r-1", deadline_seconds=600))
    for number in range(kills):
        gates.began(60 * (number + 1))
        worker.kill()
        worker = gates.rig.worker()
    passed(gates.one_each(["r-1"])["r-1"])
    assert CALLS <= model.calls() <= CALLS + kills * 40


def test_pc5_ac4_a_worker_that_joins_in_the_middle_of_a_gate_doubles_nothing(make_rig: Make, model: Model) -> None:
    """A rebalance may take the request away from who decides it; then that one dies, too."""
    gates = GateRig(make_rig, model)
    first = gates.rig.worker()
    gates.joined()
    model.tell(latency_seconds=5.0)  # the gate outlasts the other's start
    gates.ask(step("r-1", deadline_seconds=600))
    gates.began(20)
    gates.rig.worker()
    gates.together(2)
    model.tell(latency_seconds=LATENCY)
    gates.began(CALLS // 2)
    assert gates.verdicts() == [], "the gate is under way"
    first.kill()
    passed(gates.one_each(["r-1"])["r-1"])


def test_pc5_ac4_a_worker_killed_as_its_verdict_appears_does_not_give_it_twice(make_rig: Make, model: Model) -> None:
    """Between a verdict and the acknowledgement of its request there is a moment; a crash in it must not show."""
    gates = GateRig(make_rig, model, commit_interval_seconds=10)
    worker = gates.rig.worker()
    gates.joined()  # and that was acknowledged just now
    gates.ask(step("r-1", deadline_seconds=600))
    gates.rig.wait("the verdict", lambda: worker.logged('"verdict_id"'), 60, 0.02)
    worker.kill()
    assert len(gates.verdicts()) == 1
    assert not gates.acknowledged()
    gates.rig.worker(commit_interval_seconds=0.2)
    passed(gates.one_each(["r-1"])["r-1"])


@pytest.mark.parametrize(("seconds", "patience"), [(5.0, 30.0), pytest.param(60.0, 90.0, marks=SLOW)])
def test_pc5_9_5_a_model_that_is_away_for_a_while_is_waited_for(
    make_rig: Make, model: Model, seconds: float, patience: float
) -> None:
    """For a minute, too, where the gate has the patience: one verdict, decided on scores."""
    gates = GateRig(make_rig, model, model_patience_seconds=patience)
    gates.rig.worker()
    gates.joined()
    model.tell(latency_seconds=LATENCY)
    gates.ask(step("r-1", deadline_seconds=600))
    gates.began()
    model.kill()
    time.sleep(seconds)
    model.start()
    passed(gates.one_each(["r-1"])["r-1"])


@pytest.mark.parametrize(
    ("patience", "deadline"),
    [(2.0, 600), (600.0, 15), pytest.param(30.0, 600, marks=SLOW)],
    ids=["its patience ends", "its deadline comes first", "as shipped"],
)
def test_pc5_9_5_a_model_that_is_down_for_longer_fails_closed_and_the_next_request_passes(
    make_rig: Make, model: Model, patience: float, deadline: int
) -> None:
    """With `judge_unavailable` and nothing else, before the deadline; what was scored by then is kept."""
    gates = GateRig(make_rig, model, model_patience_seconds=patience)
    gates.rig.worker()
    gates.joined()
    model.tell(latency_seconds=LATENCY)
    request = step("r-1", deadline_seconds=deadline)
    gates.ask(request)
    gates.began()
    model.kill()
    failed = gates.one_each(["r-1"], 180)["r-1"]
    assert {reason["code"] for reason in failed["reasons"]} == {"judge_unavailable"}
    assert "has answered no call for" in str(failed["reasons"])
    asked, decided = (datetime.fromisoformat(at) for at in (request["requested_at"], failed["evidence"]["decided_at"]))
    assert (decided - asked).total_seconds() < deadline
    model.start()
    gates.ask(step("r-2", deadline_seconds=600))
    passed(gates.one_each(["r-1", "r-2"])["r-2"])
    assert model.calls() <= CALLS - 40, "counted since the model is back; 60 were answered before, 20 of them at once"


@pytest.mark.parametrize("persistent", [True, False], ids=["keeps its data", "comes back empty"])
def test_pc5_ac4_redis_restarts_during_a_gate(make_rig: Make, model: Model, persistent: bool) -> None:
    """With what it held, or without: then the pools of traces are made again from their topic."""
    with RedisServer(persistent=persistent) as redis_server:
        gates = GateRig(make_rig, model, redis_server=redis_server)
        gates.rig.worker()
        gates.joined()
        model.tell(latency_seconds=LATENCY)
        gates.ask(step("r-1", deadline_seconds=600))
        gates.began()
        redis_server.kill()
        time.sleep(2.0)
        redis_server.start()
        passed(gates.one_each(["r-1"])["r-1"])


def test_pc5_ac4_a_request_right_after_redis_was_emptied_waits_for_the_whole_sample(
    make_rig: Make, model: Model
) -> None:
    """Before anybody has noticed, and in a worker that holds only part of the traces: half a sample fails no gate."""
    with RedisServer(persistent=False) as redis_server:
        gates = GateRig(make_rig, model, redis_server=redis_server)
        for _ in range(2):
            gates.rig.worker()
        gates.together(2)
        gates.joined()
        asked: list[str] = []
        for partition in range(PARTITIONS):
            gates.rig.state.flushall()
            asked.append(f"r-{partition}")
            gates.ask(step(asked[-1], deadline_seconds=600), partitions=[partition])
            passed(gates.one_each(asked)[asked[-1]])


def test_a_gate_after_an_older_snapshot_of_redis_waits_for_the_rest_and_not_for_another_record(
    make_rig: Make, model: Model
) -> None:
    """Redis comes back with a state from before the traces of the version, and nothing but the request is consumed."""
    with RedisServer(persistent=False) as redis_server:
        gates = GateRig(make_rig, model, redis_server=redis_server)
        gates.rig.worker()
        gates.joined("v1")
        gates.rig.state.save()
        snapshot = redis_server.folder / "dump.rdb"
        older = snapshot.read_bytes()
        gates.joined("v2")
        redis_server.kill()
        snapshot.write_bytes(older)
        redis_server.start()
        gates.ask(step("r-1", deadline_seconds=600))
        passed(gates.one_each(["r-1"], 60.0)["r-1"])


def test_a_worker_that_sleeps_while_it_publishes_and_wakes_up_after_its_lease_doubles_nothing(
    make_rig: Make, model: Model
) -> None:
    """Stopped in the middle of 600 verdicts, longer than the session timeout; then every lease has ended, and another
    worker answers all the rest."""
    gates = GateRig(make_rig, model)
    sleeper = gates.rig.worker()
    gates.joined()
    requests = [step(f"r-{n}", from_percent=5, to_percent=25, experiment_id=f"e-{n}") for n in range(600)]
    gates.ask(*requests, partitions=range(PARTITIONS))
    gates.rig.wait("it publishes", lambda: sleeper.logged('"verdict_id"'), 60, 0.005)
    sleeper.pause()
    gates.rig.state.flushall()
    gates.rig.worker()
    names = [request["request_id"] for request in requests]
    gates.rig.wait("the other has answered", lambda: len(gates.verdicts()) >= 600, 120.0)
    sleeper.resume()
    gates.together(2)
    gates.one_each(names)


def test_pc5_ac4_requests_that_two_producers_repeat_get_one_verdict_each(make_rig: Make, model: Model) -> None:
    """On every partition, so that two workers have the same request at once."""
    gates = GateRig(make_rig, model)
    workers = [gates.rig.worker(), gates.rig.worker()]
    gates.together(2)
    gates.joined()
    requests = [step(f"gate-{n}", deadline_seconds=600) for n in range(4)]
    requests += [step(f"between-{n}", from_percent=5, to_percent=25) for n in range(20)]
    requests += [step(f"invalid-{n}", to_percent=101) for n in range(4)]
    producers = []
    for number in range(2):
        shuffled = list(requests)
        random.Random(number).shuffle(shuffled)
        everywhere = {"partitions": range(PARTITIONS)}
        producers.append(threading.Thread(target=gates.ask, args=shuffled, kwargs=everywhere))
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join()
    found = gates.one_each([request["request_id"] for request in requests])
    assert {(name.partition("-")[0], verdict["action"]) for name, verdict in found.items()} == {
        ("gate", "proceed"), ("between", "proceed"), ("invalid", "halt"),
    }  # fmt: skip
    assert all(worker.running for worker in workers)
    assert gates.rig.dead_letters() == []
