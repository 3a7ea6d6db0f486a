"""A pull request's or a rollout's gate on this machine, whose registry and model commands find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.rampgate.ci_gate.gate_commands import commanded
from tests.unit.rampgate.ci_gate.gate_rig import Rig


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from commanded(tmp_path, monkeypatch)
