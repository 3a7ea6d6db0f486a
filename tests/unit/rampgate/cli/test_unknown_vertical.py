"""A `--vertical` that nobody registered: each command refuses it in the same words, and names those that are near."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.root import ROOT
from tests.unit.rampgate.checks.score_commands import alone, ran, scored
from tests.unit.rampgate.ci_gate.gate_rig import jsonl
from tests.unit.rampgate.cli.vertical_commands import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_the_same_of_a_vertical_that_is_not_there(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone(tmp_path, monkeypatch)
    jsonl(tmp_path / "scores.jsonl", *scored("helpfulness", [0.8, 0.9]))
    words = (*COMMANDS[command], "--vertical", "reciepts", "--configs", str(ROOT / "configs"))
    code, _, told = ran(capsys, monkeypatch, *words)
    assert (code, told) == (2, "rampgate: --vertical: no vertical 'reciepts'; did you mean receipts?\n")
