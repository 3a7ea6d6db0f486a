"""The small registry, as a process that has just started serves it; and a day that does not pass."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.unit.evalcore.registry.registry_reloading import nothing_serves, served


@pytest.fixture
def a_fixed_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.registry.disk.today", lambda: date(2026, 11, 21))


@pytest.fixture
def just_started(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_serves(monkeypatch)


@pytest.fixture
def root(tmp_path: Path, just_started: None) -> Path:
    return served(tmp_path)
