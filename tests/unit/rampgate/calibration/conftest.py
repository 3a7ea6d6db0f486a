from __future__ import annotations

from pathlib import Path

import pytest

from rampgate.local.model.server import Running
from tests.unit.rampgate.calibration.round_rig import vertical
from tests.unit.rampgate.checks.score_commands import alone
from tests.unit.rampgate.ci_gate.gate_rig import environment


@pytest.fixture
def configs(tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = vertical(tmp_path)
    alone(tmp_path, monkeypatch)
    for name, value in environment(root, model.url).items():
        monkeypatch.setenv(name, value)
    return root
