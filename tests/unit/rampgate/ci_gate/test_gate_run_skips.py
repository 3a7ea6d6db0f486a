"""`gate run --skips`: an override on its topic skips a rollout's gate as it does on the stream (PC5 §5.5)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.ports import Unavailable
from evalcore.gates.skips import Skips
from rampgate.settings import Settings
from schemas.publish.examples import EXAMPLES
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.rampgate.ci_gate.gate_commands import codes, commanded, ran, refused, verdict
from tests.unit.rampgate.ci_gate.gate_rig import jsonl
from tests.unit.rampgate.ci_gate.traced_rig import FEW, TRACES, Traced, trace

WHO = ("--agent-id", "receipts-agent", "--agent-version", "abc")


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    for made in commanded(Traced, tmp_path, monkeypatch):
        of(made, "receipts-agent", "abc")
        yield made


def of(rig: Traced, agent: str, version: str) -> None:
    """The traces are of this agent definition."""
    jsonl(rig.traces, *(trace(number, agent_id=agent, agent_version=version) for number in range(TRACES)))


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the topic of overrides has."""
    (example,) = EXAMPLES["gate-override"]
    until = (TODAY + timedelta(days=7)).isoformat()
    records = [{**example, "agent_id": "receipts-agent", "agent_version": "abc", "expires": until}]

    async def read_skips(settings: Settings) -> Skips:
        known = Skips()
        for one in records:
            known.add(one, 1_800_000_000_000)
        return known

    monkeypatch.setattr("rampgate.overrides.read_skips", read_skips)
    return records


def on(rig: Traced, milestone: str = "pre_ramp") -> tuple[object, ...]:
    return "--milestone", milestone, "--traces", rig.traces


def unhelpful(rig: Traced) -> None:
    """The quality judge gives each trace its worst."""
    worst = 'prompt: "Rate {{output}} as an answer to {{input}}. The score must be 1."'
    rig.registry({"evaluation_manifest.yaml": FEW, "rules/helpfulness.yaml": worst})


def test_a_skip_leaves_the_safety_judges_and_is_cited(rig: Traced, topic: list[dict[str, Any]]) -> None:
    unhelpful(rig)
    assert verdict(*on(rig), code=1)["verdict"] == "fail"
    assert verdict(*on(rig), *WHO, code=1)["verdict"] == "fail", "nobody asked for skips"
    found = verdict(*on(rig), "--skips", *WHO)
    assert (found["verdict"], codes(found)) == ("warn", {"gate_skipped"})
    assert set(found["per_judge_scores"]) == {"refusal", "honesty"}
    assert topic[0]["event_id"] in found["reasons"][0]["message"]


def test_it_is_one_versions_at_one_gate_and_until_its_day(rig: Traced, topic: list[dict[str, Any]]) -> None:
    unhelpful(rig)
    for other in (("--agent-id", "receipts-agent", "--agent-version", "abd"), ("--agent-id", "a", "--commit", "abc")):
        of(rig, other[1], other[3])
        assert "gate_skipped" not in codes(verdict(*on(rig), "--skips", *other, code=1))
    of(rig, "receipts-agent", "abc")
    assert "gate_skipped" not in codes(verdict(*on(rig, "pre_full"), "--skips", *WHO, code=1))
    topic[0]["expires"] = (TODAY - timedelta(days=1)).isoformat()
    assert "gate_skipped" not in codes(verdict(*on(rig), "--skips", *WHO, code=1))


def test_where_the_topic_can_not_be_read_the_gate_runs_whole(rig: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    async def read_skips(settings: Settings) -> Skips:
        raise Unavailable("Kafka: the topic of overrides can't be read: away")

    monkeypatch.setattr("rampgate.overrides.read_skips", read_skips)
    done = ran(*on(rig), "--skips", *WHO)
    assert done.exit_code == 0
    assert "--skips: no override is honoured: Kafka: the topic of overrides can't be read: away" in done.stderr
    unhelpful(rig)
    assert ran(*on(rig), "--skips", *WHO).exit_code == 1


def test_no_override_skips_the_gate_before_a_merge_and_each_is_a_definitions(rig: Traced) -> None:
    assert "not at pre_merge" in refused("--dataset", rig.dataset, "--outputs", rig.outputs, "--skips", *WHO)
    for some in ((), WHO[:2], WHO[2:]):
        assert "--agent-id ID" in refused(*on(rig), "--skips", *some)
