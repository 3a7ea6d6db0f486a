from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.model.server import Running
from tests.unit.rampgate.calibration.round_rig import vertical
from tests.unit.rampgate.checks.score_commands import alone, ran
from tests.unit.rampgate.ci_gate.gate_rig import environment

Calibrate = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def configs(tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = vertical(tmp_path)
    alone(tmp_path, monkeypatch)
    for name, value in environment(root, model.url).items():
        monkeypatch.setenv(name, value)
    return root


@pytest.fixture
def calibrate(configs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Calibrate:
    """Goes on with the round `r1` of the vertical `shop`."""

    def run(*words: object) -> tuple[int, dict[str, Any], str]:
        own = ("calibrate", "jade", "--vertical", "shop", "--round", "r1", "--json")
        return ran(capsys, monkeypatch, *own, *map(str, words))

    return run
