"""Ways by which absent, stale, cut or repeated evidence passed a gate from CI, found by fresh eyes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rampgate.ci_gate.gate_commands import codes, commanded, gate, refused
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, jsonl
from tests.unit.rampgate.ci_gate.traced_rig import TRACES, Traced, trace

COMMIT = "c0ffee" * 6 + "c0ff"


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    yield from commanded(Traced, tmp_path, monkeypatch)


def test_a_smoke_set_is_no_evidence_for_a_merge(rig: Traced) -> None:
    told = {
        "suite": "desk", "agent": "desk", "configuration": "a" * 64, "commit": COMMIT, "set": "smoke",
        "verdict": "pass", "left": None, "comparison": {"score": "ok", "verdict": "pass", "reasons": []},
    }  # fmt: skip
    path = rig.root / "suite.json"
    path.write_text(json.dumps(told))
    found = gate(rig, "--suite", path, "--commit", COMMIT, code=1)
    assert (found["verdict"], codes(found)) == ("fail", {"suite_unusable"})
    assert "is of the smoke set" in found["reasons"][0]["message"]


@pytest.mark.parametrize("other", [{"agent_id": "b"}, {"agent_version": "w"}, {"agent_version": None}])
def test_traces_of_another_version_than_the_one_named_are_refused(rig: Traced, other: dict[str, Any]) -> None:
    jsonl(rig.traces, *(trace(number, **(other if number == 0 else {})) for number in range(TRACES)))
    on = ("--milestone", "pre_ramp", "--traces", rig.traces)
    said = refused(*on, "--agent-id", "a", "--agent-version", "v")
    assert f"1 of {TRACES} traces are not of a v" in said


@pytest.mark.parametrize("output", ["", " \n"])
def test_a_blank_text_is_no_output(rig: Traced, output: str) -> None:
    jsonl(rig.outputs, *({"id": f"i{number}", "output": output} for number in range(ITEMS)))
    assert codes(gate(rig, code=1)) == {"judge_unavailable"}
    jsonl(rig.outputs, *({"id": f"i{n}", "output": output, "tool_calls": [{"name": "f"}]} for n in range(ITEMS)))
    assert "judge_unavailable" not in codes(gate(rig, code=1)), "who calls a tool may say nothing beside it"
