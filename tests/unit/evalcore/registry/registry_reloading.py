"""The small registry of `registry_files` as a process serves it, on a fixed day and without waiting for its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import evalcore
from evalcore import api, reloading
from evalcore.reloading import ReloadingRegistry
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.evalcore.registry.registry_files import TODAY

if TYPE_CHECKING:  # else every run of a unit test imports opik, some seconds of a core
    from evalcore.scoring.opik_metric import LLMJudgeMetric

CENTRAL, MANIFEST, OWN = "rules/helpfulness.yaml", "evaluation_manifest.yaml", "rules/shop/helpfulness.yaml"
SETTINGS: dict[str, Any] = {"today": lambda: TODAY, "settle": 0.001}


def alive(root: Path, ttl: float | None = None, **more: Any) -> ReloadingRegistry:
    return ReloadingRegistry(root, ttl, **(SETTINGS | more))


def nothing_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just started."""
    monkeypatch.setattr(reloading, "_chosen", None)
    monkeypatch.setattr(api, "_metrics", None)
    monkeypatch.setattr(api, "_manifest", None)
    defaults = ReloadingRegistry.__init__.__kwdefaults__ or {}
    monkeypatch.setattr(ReloadingRegistry.__init__, "__kwdefaults__", defaults | SETTINGS)


def served(folder: Path) -> Path:
    """The root of the small registry, which `evalcore` serves."""
    root = written(folder)
    evalcore.use(root, ttl=None)
    return root


def ids(metrics: list[LLMJudgeMetric]) -> list[str]:
    return [metric.id for metric in metrics]
