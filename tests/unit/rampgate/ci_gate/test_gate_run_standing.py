"""`gate run --standing`: what checks found of judges decides as on the stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rampgate.console import Failure
from tests.unit.rampgate.ci_gate.gate_commands import commanded, ran, verdict
from tests.unit.rampgate.ci_gate.gate_rig import Rig, jsonl, standing_record


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from commanded(Rig, tmp_path, monkeypatch)


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
