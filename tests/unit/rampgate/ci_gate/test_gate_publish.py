"""`gate run --publish`: the gate before a merge enters the history that a rollout's steps ask (PC5 §5.5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from agents.ports import Unavailable
from evalcore.gates.history import History
from evalcore.gates.verdict import Moment, as_json, of_pull_request
from rampgate.ci_gate import publish as subject
from rampgate.console import Failure
from rampgate.settings import Settings
from schemas.judges import Milestone
from schemas.publish.contracts import schema
from schemas.verdicts import GateVerdict, Verdict, VerdictLevel
from schemas.wire_forms import ScoreEvent
from tests.unit.agents.live.live_rig import events
from tests.unit.rampgate.ci_gate.gate_commands import ran, verdict
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, Rig

WHO = ("--publish", "--agent-id", "shop-agent", "--agent-version", "abc")


class Sent(list[Verdict]):
    """What would be on the topics: the verdicts, and the judges' scores before them."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[ScoreEvent] = []

    async def publish(self, settings: Settings, made: Verdict, events: Iterable[ScoreEvent]) -> None:
        self.events += events
        self.append(made)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    found = Sent()
    monkeypatch.setattr("rampgate.ci_gate.publish.publish", found.publish)
    return found


def on(rig: Rig) -> tuple[object, ...]:
    return "--dataset", rig.dataset, "--outputs", rig.outputs


def test_the_outcome_is_the_record_whatever_it_is(rig: Rig, sent: Sent) -> None:
    passed = verdict(*on(rig), *WHO)
    rig.answers(lambda n: 0.1)
    verdict(*on(rig), *WHO, code=1)
    first, second = sent
    assert (first.verdict, second.verdict) == (passed["verdict"], "fail") == ("pass", "fail")
    assert first.request_id != second.request_id, "each run is a request of its own"
    assert (first.agent_id, first.agent_version, first.milestone) == ("shop-agent", "abc", "pre_merge")
    assert first.evidence.config_hash == passed["evidence"]["config_hash"]
    assert first.sample is not None
    assert first.sample.composition.golden == ITEMS
    history = History()
    history.add(as_json(first))
    assert history.stand("shop-agent", "abc", "pre_merge").passes
    history.add(as_json(second))
    assert not history.stand("shop-agent", "abc", "pre_merge").passes


def test_the_commit_is_the_version_where_none_is_named(rig: Rig, sent: Sent) -> None:
    verdict(*on(rig), "--publish", "--agent-id", "shop-agent", "--commit", "c0ffee")
    assert sent[0].agent_version == "c0ffee"


def test_pc5_9_4_each_score_of_the_run_is_an_event_of_its_request(rig: Rig, sent: Sent) -> None:
    """An item is named with its dataset, as in a rollout's gate, and is no trace."""
    found = verdict(*on(rig), *WHO)
    assert len(sent.events) == found["evidence"]["judged"] == sum(n["n"] for n in found["per_judge_scores"].values())
    assert len({event["event_id"] for event in sent.events}) == len(sent.events)
    named = found["dataset"]["name"], found["dataset"]["version"]
    for event in sent.events:
        Draft202012Validator(schema("judge-score")).validate(event)
        assert (event["trace_id"], event["source"], event["milestone"]) == (None, "gate", "pre_merge")
        assert (event["agent_id"], event["agent_version"]) == ("shop-agent", "abc")
        assert event["request_id"] == sent[0].request_id
        assert event["item_id"].startswith("{} v{}: ".format(*named))
        assert event["judge_version"] == found["per_judge_scores"][event["judge_id"]]["judge_version"]
    scores = [event["score"] for event in sent.events if event["judge_id"] == "brevity"]
    assert sum(scores) / len(scores) == pytest.approx(found["per_judge_scores"]["brevity"]["score"])


def test_without_the_option_nothing_is_published(rig: Rig, sent: Sent) -> None:
    verdict(*on(rig))
    assert sent == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--publish",), "--agent-id ID"),
        (("--publish", "--agent-id", "a"), "--agent-version VERSION"),
        (("--milestone", "pre_ramp", "--traces", "x.jsonl", *WHO), "not at pre_ramp"),
    ],
)
def test_what_names_no_definition_or_is_a_rollouts_own_gate_is_refused_before_anything_is_judged(
    rig: Rig, sent: Sent, options: tuple[str, ...], why: str
) -> None:
    on_items = on(rig) if "--traces" not in options else ()
    done = ran(*on_items, *options)
    assert isinstance(done.exception, Failure)
    assert why in str(done.exception)
    assert sent == []


def test_a_topic_out_of_reach_is_told_after_the_outcome(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def publish(*_: object) -> None:
        raise Unavailable("Kafka producer: no one there")

    monkeypatch.setattr("rampgate.ci_gate.publish.publish", publish)
    done = ran(*on(rig), *WHO, "--json")
    assert orjson.loads(done.stdout)["verdict"] == "pass"
    assert isinstance(done.exception, Failure)
    assert "no one there" in str(done.exception)


async def test_what_is_sent_is_the_verdict_under_its_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    class Producer:
        def __init__(self, access: object) -> None: ...

        async def send(self, messages: list[Any]) -> None:
            told.extend(messages)

        async def close(self) -> None:
            told.append("closed")

    monkeypatch.setattr("rampgate.wiring.Producer", Producer)
    made = of_pull_request(
        "shop-agent",
        "abc",
        GateVerdict({}, VerdictLevel.PASS, [], Milestone.PRE_MERGE),
        Moment("2026-11-21T12:00:00.000+00:00", 1.0),
        request_id="gate-run-1",
    )
    scores = list(events(2))
    await subject.publish(Settings(topic_prefix="mine."), made, scores)
    (*before, (topic, key, raw, headers), closed) = told
    assert (topic, key, orjson.loads(raw), closed) == ("mine.verdicts", b"shop-agent", as_json(made), "closed")
    assert {name for name, _ in headers} == {"rampgate.request-body", "rampgate.request-place"}
    assert [(topic, orjson.loads(raw)) for topic, _, raw, _ in before] == [
        ("mine.judge-scores", event) for event in scores
    ]


async def test_without_its_scores_a_verdict_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    class Producer:
        def __init__(self, access: object) -> None: ...

        async def send(self, messages: list[Any]) -> None:
            told.extend(topic for topic, *_ in messages)
            raise Unavailable("the topic takes nothing")

        async def close(self) -> None: ...

    monkeypatch.setattr("rampgate.wiring.Producer", Producer)
    moment = Moment("2026-11-21T12:00:00.000+00:00", 1.0)
    made = of_pull_request(
        "a", "v", GateVerdict({}, VerdictLevel.PASS, [], Milestone.PRE_MERGE), moment, request_id="gate-run-1"
    )
    with pytest.raises(Unavailable):
        await subject.publish(Settings(), made, events(1))
    assert set(told) == {"rampgate.judge-scores"}
