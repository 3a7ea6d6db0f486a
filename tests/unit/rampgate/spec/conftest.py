from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rampgate.local.model.server import Running
from tests.unit.rampgate.spec.spec_commands import demo


@pytest.fixture
def rag(tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with demo("rag", tmp_path, model, monkeypatch) as folder:
        yield folder


@pytest.fixture
def dev(tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with demo("dev-agent", tmp_path, model, monkeypatch) as folder:
        yield folder
