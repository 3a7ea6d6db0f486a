"""`gate run --scores`: each score as a line that the commands on files of scores read (contracts §5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rampgate.checks.score_files import read_scores
from tests.unit.rampgate.ci_gate.gate_commands import commanded, gate
from tests.unit.rampgate.ci_gate.gate_rig import CATEGORIES, ITEMS, Rig, answer, jsonl


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from commanded(Rig, tmp_path, monkeypatch)


def test_each_judge_s_score_of_each_item_is_a_line(rig: Rig, tmp_path: Path) -> None:
    jsonl(rig.outputs, *(answer(n) for n in range(1, ITEMS)))
    gate(rig, "--scores", tmp_path / "scores.jsonl", code=1)
    told = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    first = next(one for one in told if (one["judge_id"], one["item_id"]) == ("helpfulness", "i1"))
    assert first["score"] == 5.0
    assert first["category"] == CATEGORIES[1]
    assert {one["score"] for one in told if one["item_id"] == "i0"} == {None}
    columns = read_scores(tmp_path / "scores.jsonl")
    assert len(columns["helpfulness"].scores) == ITEMS - 1
    assert columns["helpfulness"].unscored == 1


def test_a_dimension_has_lines_of_its_own(rig: Rig, tmp_path: Path) -> None:
    rig.registry({"rules/helpfulness.yaml": "{dimensions: {tone: {description: T}}}"})
    gate(rig, "--scores", tmp_path / "scores.jsonl")
    assert len(read_scores(tmp_path / "scores.jsonl")["helpfulness.tone"].scores) == ITEMS
