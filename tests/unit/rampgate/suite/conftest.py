from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rampgate.local.model.server import Running
from tests.unit.rampgate.suite.suite_commands import suite_folder


@pytest.fixture
def folder(tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with suite_folder(tmp_path, model, monkeypatch) as made:
        yield made
