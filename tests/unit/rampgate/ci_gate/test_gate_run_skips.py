"""`gate run --skips` and `--standing`: an override on its topic, and what checks found of judges, decide as on the
stream (PC5 §5.5)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents.ports import Unavailable
from evalcore.gates.skips import Skips
from rampgate.console import Failure
from rampgate.settings import Settings
from schemas.publish.examples import EXAMPLES
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.rampgate.ci_gate.gate_commands import codes, ran, refused, verdict
from tests.unit.rampgate.ci_gate.gate_rig import TRACES, Rig, jsonl, standing_record, trace

WHO = ("--agent-id", "a", "--agent-version", "v")


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the topic of overrides has."""
    (example,) = EXAMPLES["gate-override"]
    until = (TODAY + timedelta(days=7)).isoformat()
    records = [{**example, "agent_id": "a", "agent_version": "v", "expires": until}]

    async def read_skips(settings: Settings) -> Skips:
        known = Skips()
        for one in records:
            known.add(one, 1_800_000_000_000)
        return known

    monkeypatch.setattr("rampgate.overrides.read_skips", read_skips)
    return records


def on(rig: Rig, milestone: str = "pre_ramp") -> tuple[object, ...]:
    return "--milestone", milestone, "--traces", rig.traces


def unhelpful(rig: Rig) -> None:
    """The quality judge gives each trace its worst."""
    worst = 'prompt: "Rate {{output}} as an answer to {{input}}. The score must be 1."'
    rig.registry({"rules/helpfulness.yaml": worst})


def test_a_skip_leaves_the_safety_judges_and_is_cited(rig: Rig, topic: list[dict[str, Any]]) -> None:
    unhelpful(rig)
    assert verdict(*on(rig), code=1)["verdict"] == "fail"
    assert verdict(*on(rig), *WHO, code=1)["verdict"] == "fail", "no one asked for skips"
    found = verdict(*on(rig), "--skips", *WHO)
    assert (found["verdict"], codes(found)) == ("warn", {"gate_skipped"})
    assert set(found["per_judge_scores"]) == {"refusal", "honesty"}
    assert topic[0]["event_id"] in found["reasons"][0]["message"]


def test_it_is_one_versions_at_one_gate_and_until_its_day(rig: Rig, topic: list[dict[str, Any]]) -> None:
    unhelpful(rig)
    for other in (("--agent-id", "a", "--agent-version", "w"), ("--agent-id", "b", "--commit", "v")):
        jsonl(rig.traces, *(trace(number, agent_id=other[1], agent_version=other[3]) for number in range(TRACES)))
        assert "gate_skipped" not in codes(verdict(*on(rig), "--skips", *other, code=1))
    rig.written()
    assert "gate_skipped" not in codes(verdict(*on(rig, "pre_full"), "--skips", *WHO, code=1))
    topic[0]["expires"] = (TODAY - timedelta(days=1)).isoformat()
    assert "gate_skipped" not in codes(verdict(*on(rig), "--skips", *WHO, code=1))


def test_where_the_topic_can_not_be_read_the_gate_runs_whole(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def read_skips(settings: Settings) -> Skips:
        raise Unavailable("Kafka: the topic of overrides can't be read: away")

    monkeypatch.setattr("rampgate.overrides.read_skips", read_skips)
    done = ran(*on(rig), "--skips", *WHO)
    assert done.exit_code == 0
    assert "--skips: no override is honoured: Kafka: the topic of overrides can't be read: away" in done.stderr
    unhelpful(rig)
    assert ran(*on(rig), "--skips", *WHO).exit_code == 1


def test_no_override_skips_the_gate_before_a_merge_and_each_is_a_definitions(rig: Rig) -> None:
    assert "not at pre_merge" in refused("--dataset", rig.dataset, "--outputs", rig.outputs, "--skips", *WHO)
    for some in ((), WHO[:2], WHO[2:]):
        assert "--agent-id ID" in refused(*on(rig), "--skips", *some)


def test_a_suspended_safety_judge_fails_and_a_suspended_quality_judge_warns(rig: Rig) -> None:
    given = ("--dataset", rig.dataset, "--outputs", rig.outputs)
    file = rig.folder / "standing.jsonl"
    before = verdict(*given)
    assert before["verdict"] == "pass", before["reasons"]
    found = verdict(*given, "--standing", jsonl(file, standing_record("helpfulness", "suspended")))
    assert (found["verdict"], found["failing_judges"]) == ("warn", ["helpfulness"])
    found = verdict(*given, "--standing", jsonl(file, standing_record("refusal", "suspended")), code=1)
    assert (found["verdict"], found["failing_judges"]) == ("fail", ["refusal"])
    passed = standing_record("refusal", "passed", at="2026-11-21T04:00:00Z")
    assert (
        verdict(*given, "--standing", jsonl(file, standing_record("refusal", "suspended"), passed))["verdict"] == "pass"
    )


@pytest.mark.parametrize(("standing", "why"), [("nowhere.jsonl", "nowhere.jsonl"), ("topic", "--standing: ")])
def test_a_standing_that_can_not_be_read_ends_the_gate_with_2(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, standing: str, why: str
) -> None:
    """No gate passes by a judge of which it is not known."""
    monkeypatch.setenv("RAMPGATE_KAFKA", "127.0.0.1:9")
    done = ran("--dataset", rig.dataset, "--outputs", rig.outputs, "--standing", standing)
    assert why in str(done.exception), done.output
    assert isinstance(done.exception, Failure)


def test_a_line_that_is_no_record_is_named(rig: Rig) -> None:
    file = jsonl(rig.folder / "standing.jsonl", standing_record("refusal", "suspended"), {"judge_id": "refusal"})
    done = ran("--dataset", rig.dataset, "--outputs", rig.outputs, "--standing", file)
    assert f"{file}:2" in str(done.exception)
