"""A round that is killed at each of its steps ends with the bytes of one that was not (issue 13, PF-9 AC-8)."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rampgate.calibration.round_rig import agreeing, contents, filled, killed, turn
from tests.unit.rampgate.ci_gate.gate_rig import jsonl

BEGUN = ("--ticket", "PLT-700", "--acceptable", "4", "--runs", "2", "--turns", "turns.jsonl")
RENAMES = 25
"""Files that a round puts in their places: three for most steps, and those of the vertical."""


def test_pf9_5_3_a_round_killed_before_and_after_each_write_ends_with_the_same_bytes(
    calibrate: Callable[..., tuple[int, dict[str, Any], str]],
    configs: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed in turn right before and right after its next file stands there: of the round, the reference set, the
    baseline and the rule files."""
    jsonl(tmp_path / "turns.jsonl", *(turn(n, judge_scores={"helpfulness": float(n * 7 % 5 + 1)}) for n in range(210)))
    assert calibrate(*BEGUN, "--sheet", "sheet.csv")[0] == 0
    filled(tmp_path / "sheet.csv", tmp_path / "scores.csv", ("ann", "ben"), agreeing)
    shutil.rmtree(tmp_path / "specs/verticals/shop/eval/rounds")
    words = (*BEGUN, "--annotations", "scores.csv", "--write")
    tree = tmp_path_factory.mktemp("killed") / "tree"
    shutil.copytree(tmp_path, tree)
    assert calibrate(*words)[0] == 0
    own = ("calibrate", "jade", "--vertical", "shop", "--round", "r1")
    monkeypatch.setenv("RAMPGATE_CONFIGS", str(tree / "configs"))
    told = killed([*own, *words], tree)
    assert int(re.findall(r"killed (\d+) times", told)[-1]) >= 2 * RENAMES, told
    assert contents(tree) == contents(tmp_path)
