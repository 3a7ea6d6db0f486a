"""A calibration round whose turns are in a local Opik, and the judges' model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rampgate.local.model.server import Running
from tests.contract.opik import sync_rig
from tests.contract.opik.calibration_rig import Rig, rig_of
from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.unit.rampgate.calibration.round_rig import vertical
from tests.unit.rampgate.checks.score_commands import alone
from tests.unit.rampgate.ci_gate.gate_rig import environment, local_model


@pytest.fixture(scope="module")
def judges_model() -> Iterator[Running]:
    with local_model() as running:
        yield running


@pytest.fixture
async def shop_round(
    opik: ScriptedOpik,
    tmp_path: Path,
    judges_model: Running,
    monkeypatch: pytest.MonkeyPatch,
) -> Rig:
    root = vertical(tmp_path)
    alone(tmp_path, monkeypatch)
    for name, value in environment(root, judges_model.url).items():
        monkeypatch.setenv(name, value)
    return rig_of(opik, tmp_path, monkeypatch)


@pytest.fixture
async def rig(tmp_path: Path, opik: ScriptedOpik) -> sync_rig.Rig:
    """The shipped registry's copy; the projects of both verticals have no rule."""
    return await sync_rig.made(tmp_path, opik)
