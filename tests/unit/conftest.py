"""The small registry, as a process that has just started serves it."""

from __future__ import annotations

from pathlib import Path

import pytest
from registry_live import nothing_serves, served


@pytest.fixture
def just_started(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_serves(monkeypatch)


@pytest.fixture
def root(tmp_path: Path, just_started: None) -> Path:
    return served(tmp_path)
