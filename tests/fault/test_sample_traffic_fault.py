"""The sample is the traffic, on real Kafka and Redis with two workers: whatever came before a trace's record, and
whatever happened to the workers, a gate is shown every turn of its version, and its verdict is the same."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from rampgate.local.services.redis import RedisServer
from tests.fault.faulty_gates import GateRig, Model, step
from tests.fault.held import PARTITIONS
from tests.fault.rig import Rig
from tests.fault.turns import Message, Topic
from tests.stream.gates.ramp_rig import trace

Make = Callable[..., Rig]
SLOW = pytest.mark.slow
PROJECT = "receipts-eval"
TURNS = 180
"""Of each version; a third of them is bad, or rated though good."""
Signal = Literal["thumb", "withdrawn thumb", "reroll"]


@dataclass(frozen=True)
class Version:
    """A version whose trace records come so many seconds after their turns' signals. A bad one is bad just where users
    said something of it."""

    signal: Signal
    seconds: float
    bad: bool

    @property
    def name(self) -> str:
        return f"{self.signal} {self.seconds:g} s {'bad' if self.bad else 'good'}".replace(" ", "-")

    def traces(self) -> list[dict[str, Any]]:
        out = []
        for number in range(TURNS):
            said = f"as told #quality:{0 if self.bad and number % 3 == 0 else 1}"
            one = trace(f"{self.name}/{number}", self.name)
            out.append(one | {"output": {"messages": [{"content": [{"text": said}]}]}})
        return out

    def signals(self, traces: list[dict[str, Any]]) -> list[Message]:
        """Of every third turn."""
        if self.signal == "reroll":
            return [
                _message("rerolls", _said(one, "r", new_response_id="again", elapsed_seconds=3.0))
                for one in traces[::3]
            ]
        return [_message("thumbs", _said(one, "t", value="down", sequence="1")) for one in traces[::3]]

    def withdrawals(self, traces: list[dict[str, Any]]) -> list[Message]:
        if self.signal != "withdrawn thumb":
            return []
        return [_message("thumbs", _said(one, "w", value=None, sequence="2")) for one in traces[::3]]


def _said(trace: dict[str, Any], name: str, **more: Any) -> dict[str, Any]:
    turn = trace["response_id"]
    return {"event_id": f"{name}-{turn}", "response_id": turn, "occurred_at": trace["ended_at"], **more}


def _message(topic: Topic, event: dict[str, Any]) -> Message:
    return Message(topic, event["response_id"].encode(), json.dumps(event).encode())


def in_opik(rig: Rig, traces: list[dict[str, Any]]) -> None:
    """As tracing posts them, before anything of them comes on a topic."""
    found = [
        {
            "id": one["trace_id"], "project_name": one["project_name"], "name": "turn", "input": one["input"],
            "start_time": one["started_at"], "end_time": one["ended_at"], "output": one["output"],
            "metadata": one["metadata"] | {"response_id": one["response_id"]},
        }
        for one in traces
    ]  # fmt: skip
    for first in range(0, len(found), 500):
        rig.opik.call("POST", "/v1/private/traces/batch", {"traces": found[first : first + 500]})


def drained(rig: Rig, seconds: float = 90.0) -> None:
    """Every record of every partition is consumed and counted, once."""
    kinds = {"thumbs": "thumbs", "rerolls": "reroll", "traces": "trace"}
    sent = {kind: sum(message.topic == topic for message in rig.sent) for topic, kind in kinds.items()}

    def all_of_them() -> bool:
        counted = rig.conservation()
        return all(counted.get(kind, {"consumed": 0})["consumed"] == many for kind, many in sent.items() if many)

    rig.wait("all records consumed", all_of_them, seconds)


def looked_up(rig: Rig, traces: list[dict[str, Any]]) -> None:
    """The turns with a signal are known from Opik: their scores stand there."""
    wanted = {one["trace_id"] for one in traces[::3]}
    rig.wait("turns are known from Opik", lambda: {trace for trace, _ in rig.opik.scores([PROJECT])} >= wanted, 60.0)


def check(gates: GateRig, versions: list[Version]) -> None:
    """Each version's gate is shown all of its turns. All differences are told at once."""
    gates.ask(
        *(step(one.name, agent_version=one.name, experiment_id=one.name, deadline_seconds=600) for one in versions)
    )
    found = gates.one_each([one.name for one in versions], 180.0)
    wrong = wrongs(found, versions)
    assert wrong == [], "\n".join(wrong)


def wrongs(found: dict[str, dict[str, Any]], versions: list[Version]) -> list[str]:
    out = []
    for one in versions:
        verdict = found[one.name]
        sample, action = verdict["sample"], "halt" if one.bad else "proceed"
        if verdict["action"] != action:
            codes = sorted({reason["code"] for reason in verdict["reasons"]})
            out.append(f"{one.name}: {verdict['action']} for {codes}, must {action}")
        if sample["size"] != TURNS:
            out.append(f"{one.name}: the sample's size is {sample['size']} of {TURNS}")
        sums = sample.get("eligible"), sample.get("pooled"), sum((sample.get("left_out") or {}).values())
        if sums != (TURNS, TURNS, 0):
            out.append(f"{one.name}: eligible, pooled, left out are {sums}")
        rated, rerolled = {"thumb": (TURNS // 3, 0), "reroll": (0, TURNS // 3)}.get(one.signal, (0, 0))
        signals = sample.get("signals")
        wanted = {"rated": (rated, rated), "rerolled": (rerolled, rerolled)}
        if signals is None or {n: (of["eligible"], of["sampled"]) for n, of in signals.items()} != wanted:
            out.append(f"{one.name}: signals are {signals}, must be {wanted}")
    return out


def versions_of(*seconds: float) -> list[Version]:
    bad = [Version("thumb", 0.0, True), *(Version(signal, one, True) for signal in SIGNALS for one in seconds if one)]
    return [*bad, Version("thumb", max(seconds), False)]


SIGNALS: tuple[Signal, ...] = ("thumb", "withdrawn thumb", "reroll")


def traffic(gates: GateRig, versions: list[Version], between: Callable[[], None] = lambda: None) -> None:
    """The signals first; then, each after its seconds, the records. `between` is done when all signals are in."""
    rig = gates.rig
    made = {one: one.traces() for one in versions}
    for traces in made.values():
        in_opik(rig, traces)
    rig.send(message for one in versions for message in one.signals(made[one]) if one.seconds)
    began = time.monotonic()
    between()
    for one, traces in sorted(made.items(), key=lambda pair: pair[0].seconds):
        if one.seconds:
            looked_up(rig, traces)
            rig.send(one.withdrawals(traces))
            time.sleep(max(0.0, began + one.seconds - time.monotonic()))
            rig.send(_message("traces", event) for event in traces)
        else:
            rig.send([*one.signals(traces), *(_message("traces", event) for event in traces)])
    drained(rig)


def test_rated_turns_whose_records_come_after_the_look_up_stay_in_the_sample(make_rig: Make, model: Model) -> None:
    """Records with their thumbs, and two seconds after thumbs, withdrawn thumbs and rerolls; a worker is killed and
    another one starts in between."""
    gates = GateRig(make_rig, model)
    first = gates.rig.worker()
    gates.rig.worker()
    gates.together(2)

    def restarted() -> None:
        first.kill()
        gates.rig.worker()

    versions = versions_of(0.0, 2.0)
    traffic(gates, versions, restarted)
    check(gates, versions)


@SLOW
@pytest.mark.timeout(600)
def test_however_much_later_the_records_come(make_rig: Make, model: Model) -> None:
    gates = GateRig(make_rig, model, missing_trace_seconds=900)
    for _ in range(2):
        gates.rig.worker()
    gates.together(2)
    versions = versions_of(0.0, 2.0, 12.0, 60.0)
    traffic(gates, versions)
    check(gates, versions)


def emptied(gates: GateRig) -> None:
    gates.rig.state.flushall()
    time.sleep(1.0)


def killed(gates: GateRig) -> None:
    gates.rig.workers[0].kill()
    gates.rig.worker()


def posted_again(gates: GateRig) -> None:
    """By producers that begin again: all of it, in its order."""
    gates.rig.send(list(gates.rig.sent))


def opik_away(gates: GateRig) -> None:
    gates.rig.opik.fault(status=503)
    time.sleep(4.0)
    gates.rig.opik.heal()


def partitions_added(gates: GateRig) -> None:
    """Then all is posted again, which keys bring to other partitions."""
    rig = gates.rig
    admin = AdminClient({"bootstrap.servers": rig.kafka.bootstrap, "log_level": 0})
    topic = rig.prefix + "traces"
    admin.create_partitions([NewPartitions(topic, PARTITIONS * 2)])[topic].result(30)
    time.sleep(2.0)
    producer = Producer({"bootstrap.servers": rig.kafka.bootstrap, "log_level": 0})
    again = [message for message in rig.sent if message.topic == "traces"]
    for message in again:
        producer.produce(topic, message.value, message.key)
        producer.poll(0)
    assert producer.flush(60) == 0
    rig.sent += again


@pytest.mark.parametrize(
    "fault",
    [
        emptied,
        pytest.param(killed, marks=SLOW),
        pytest.param(posted_again, marks=SLOW),
        pytest.param(opik_away, marks=SLOW),
        pytest.param(partitions_added, marks=SLOW),
    ],
)
def test_the_sample_is_the_traffic_after_a_fault(
    make_rig: Make, model: Model, own_redis: RedisServer, fault: Callable[[GateRig], None]
) -> None:
    """What befalls the workers when all was consumed changes nothing of what a gate is shown."""
    gates = GateRig(make_rig, model, redis_server=own_redis)
    for _ in range(2):
        gates.rig.worker()
    gates.together(2)
    versions = [Version("thumb", 0.0, True), Version("reroll", 0.0, False)]
    traffic(gates, versions)
    fault(gates)
    drained(gates.rig, 120.0)
    check(gates, versions)
