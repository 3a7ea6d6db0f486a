"""`rampgate gate compare`: two versions of a judge on the same outputs, and on past ramps (PC5 §9.3, FR-12)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from evalcore.scoring.sampling import fingerprint
from rampgate.cli import app
from rampgate.console import Failure
from schemas.topics import Topics
from tests.root import ROOT
from tests.unit.evalcore.registry.registry_disk import rewritten
from tests.unit.rampgate.ci_gate.gate_commands import commanded
from tests.unit.rampgate.ci_gate.gate_rig import FEW, ITEMS, TRACES, Rig, jsonl, trace
from tests.unit.rampgate.registry.git_folders import committed

LENIENT = {"rules/refusal.yaml": "{threshold: 0.2, floor: 0.2}", "rules/honesty.yaml": "{floor: 0.2}"}
"""The safety judges' limits, which are not what changes here."""


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr("rampgate.logs.configure_logs", lambda level, form: None)
    for made in commanded(tmp_path, monkeypatch):
        made.registry({"evaluation_manifest.yaml": FEW, **LENIENT})
        committed(tmp_path)
        yield made


def compared(rig: Rig, *arguments: object) -> Result:
    return CliRunner().invoke(app, ["gate", "compare", "--old", "main", *map(str, arguments), "--json"])


def test_pc5_5_5_the_page_archives_topics_that_there_are_and_commands_that_read_them() -> None:
    """What `--verdicts` makes of such an archive: `tests/stream/gates/test_compare_on_kafka.py`."""
    _, found, page = (ROOT / "docs" / "verdicts.md").read_text().partition("**Archive the history**")
    assert found, "a topic keeps its history for a while alone"
    section = page.partition("\n## ")[0]
    programs: Any = get_command(app)
    assert re.findall(r"--topic (\S+)", section) == [Topics()["verdicts"]]
    assert Topics()["gate-overrides"] in section
    for group, name, option in (("gate", "compare", "--verdicts"), ("overrides", "report", "--audit")):
        assert re.search(rf"{group} {name} [^`]*{option} ", section)
        assert any(option in one.opts for one in programs.commands[group].commands[name].params)


def document(done: Result, code: int) -> dict[str, Any]:
    assert done.exit_code == code, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def on_outputs(rig: Rig) -> tuple[object, ...]:
    return "--dataset", rig.dataset, "--outputs", rig.outputs


def test_pc5_9_3_a_changed_rubric_shows_which_items_it_flips(rig: Rig) -> None:
    """PC5 §9.3: when a judge's template changes, the difference is there to be reviewed. The new rubric scores on
    another scale of the same words, so half of the answers fall below the threshold."""
    rig.answers(lambda n: 0.8 if n % 4 == 1 else 1)
    rule = rig.root / "rules" / "brevity.yaml"
    rewritten(rule, "Rate {{output}} as an answer to {{input}}.", "Rate, strictly, {{output}}.")
    rewritten(rule, "threshold: 4", "threshold: 4.8")
    found = document(compared(rig, *on_outputs(rig)), 1)
    (one,) = found["judges"]
    assert one["judge"] == "brevity"
    assert one["old_version"] != one["new_version"]
    assert (one["n"], one["missing"], one["to_pass"]) == (ITEMS // 2, 0, [])
    flipped = {flip["item"] for flip in one["to_fail"]}
    assert flipped == {f"i{n}" for n in range(ITEMS) if n % 4 == 1}
    assert {flip["old"] for flip in one["to_fail"]} == {4.0}
    assert found["verdict"] == {"old": "pass", "new": "warn"}


def test_versions_that_judge_alike_flip_nothing(rig: Rig) -> None:
    found = document(compared(rig, *on_outputs(rig)), 0)
    assert (found["judges"], found["ramps"], found["otherwise"]) == ([], [], 0)
    assert found["verdict"] == {"old": "pass", "new": "pass"}


def past(request: str, version: str, sample: str = "") -> dict[str, Any]:
    scores = {name: {} for name in ("brevity", "refusal", "honesty", "gone")}
    gates = [
        {"milestone": "pre_ramp", "verdict": "pass", "per_judge_scores": scores, "sample": {"fingerprint": sample}}
    ]
    return {"request_id": request, "agent_id": "a", "agent_version": version, "vertical": None, "gates": gates}


def test_pc5_9_3_a_past_ramp_that_would_have_been_decided_otherwise_is_named(rig: Rig, tmp_path: Path) -> None:
    """Of two versions that ramped, one answered just well enough: by the new threshold it would have been halted."""
    just = [trace(n, 0.85, agent_version="v2") for n in range(TRACES)]
    good = [trace(n, 1, agent_version="v1") | {"trace_id": trace(n + 500)["trace_id"]} for n in range(TRACES)]
    jsonl(rig.traces, *just, *good)
    held = fingerprint(UUID(one["trace_id"]).hex for one in just)  # as a worker tells its sample
    records = [past("r1", "v1"), past("r2", "v2", held), past("r3", "unknown"), {"request_id": "r4", "gates": []}]
    verdicts = jsonl(tmp_path / "verdicts.jsonl", *records)
    rewritten(rig.root / "rules" / "brevity.yaml", "threshold: 4", "threshold: 4.8")
    done = compared(rig, "--traces", rig.traces, "--verdicts", verdicts)
    ramps = {one["request_id"]: one for one in document(done, 1)["ramps"]}
    assert set(ramps) == {"r1", "r2"}, "of the others there are no traces"
    assert (ramps["r1"]["old"], ramps["r1"]["new"], ramps["r1"]["otherwise"]) == ("pass", "pass", False)
    assert (ramps["r1"]["same_sample"], ramps["r2"]["same_sample"]) == (False, True)
    assert (ramps["r2"]["new"], ramps["r2"]["traces"]) == ("fail", TRACES)


@pytest.mark.parametrize("missing", [(), ("--dataset", "x"), ("--verdicts", "x", "--dataset", "x", "--outputs", "y")])
def test_both_versions_need_the_same_outputs(rig: Rig, missing: tuple[str, ...]) -> None:
    done = compared(rig, *missing)
    assert isinstance(done.exception, Failure)
