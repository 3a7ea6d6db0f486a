from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rampgate.local.model.server import Running
from tests.unit.rampgate.checks import score_commands
from tests.unit.rampgate.ci_gate.gate_rig import local_model


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs in an empty folder."""
    score_commands.alone(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def started_model() -> Iterator[Running]:
    with local_model() as running:
        yield running


@pytest.fixture
def model(started_model: Running) -> Iterator[Running]:
    """The model's stand-in. Each test counts its calls from zero, and what one tells it holds for that test alone."""
    started_model.model.requests.clear()
    yield started_model
    started_model.model.tell(None)
