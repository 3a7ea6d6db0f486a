"""A registry that serves, of some of the shipped judges, over files that are what a test says they are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp.test_utils import TestClient, TestServer

from evalcore.registry.files import RegistryFiles
from evalcore.registry.registry import Registry, build
from evalcore.yaml.findings import Finding, Severity, ValidationResult
from evalcore.yaml.loader import Document, Parsed
from rampgate.http.routes import Side, make_app
from rampgate.registry.serving import ServedRegistry
from schemas.answers import Health
from schemas.judges import RuleFile, VerticalRuleFile
from schemas.manifests import ManifestFile
from streams.metrics import Metrics
from tests.root import ROOT

RULES = ROOT / "configs/rules"
TODAY = date(2026, 6, 1)
MANIFEST: dict[str, Any] = {
    "dataset": {"name": "consumer-agent-eval", "version": 7, "items": 345},
    "schema": {"input": {"type": "string", "required": True}},
    "categories": {
        "general_qa": {"judges": ["response_quality"]},
        "receipt_scan": {"judges": ["response_quality", "ux_quality"], "vertical": "receipts"},
    },
    "global_metrics": {"judges": ["data_integrity"]},
    "thresholds": {"response_quality": {"pre_merge": 4, "pre_ramp": 3, "pre_full": 4}, "jailbreaking": True},
}
OVERLAY = {
    "classification": "quality",
    "baseline_source": "provisional_seed",
    "calibration_ref": "PLT-812",
    "recalibration_due": "2026-08-22",
    "calibration": {"seeded_on": "2026-05-26"},
    "threshold": 4.5,
    "filter": {"field": "sub_agent_id", "operator": "equals", "value": "receipts"},
}
BROKEN = Finding("configs/rules/ux_quality.yaml", 7, 1, "score_type", "schema", "'INT' is no score type", "PC5 FR-3")
DRIFT = Finding(
    "configs/evaluation_manifest.yaml", 9, 5, "categories.x", "manifest-judge-exists", "there is no judge 'x'"
)
LATE = Finding("configs/rules/ux_quality.yaml", 9, 1, "x", "cadence", "is overdue", severity=Severity.WARNING)
JUDGES = ("response_quality", "ux_quality", "data_integrity", "jailbreaking", "safety_restricted")


def registry(due: date = TODAY, **manifest: Any) -> Registry:
    """Of some of the shipped judges, each due on a day."""

    def rule(name: str) -> Parsed[RuleFile]:
        data = yaml.safe_load((RULES / f"{name}.yaml").read_text()) | {"recalibration_due": due}
        return Parsed(Document(name, data), RuleFile.model_validate(data))

    content = deepcopy(MANIFEST) | manifest
    return build(
        RegistryFiles(
            TODAY,
            rules={name: rule(name) for name in JUDGES},
            vertical_rules={
                ("receipts", "response_quality"): Parsed(
                    Document("overlay", OVERLAY), VerticalRuleFile.model_validate(OVERLAY)
                )
            },
            manifest=Parsed(Document("manifest", content), ManifestFile.model_validate(content)),
            verticals=frozenset({"receipts", "rewards_assistant"}),
        )
    )


class Files:
    """Stands for `evalcore.reloading`: `next` is what the next refresh finds, a registry or findings, None
    for no files."""

    def __init__(self, first: Registry | list[Finding] | Exception | None) -> None:
        self.next = first
        self.serving: Registry | None = None
        self.reads = 0
        self.hold = threading.Event()
        self.hold.set()

    def use(self, root: Path, ttl: float | None) -> None:
        assert ttl is None, "a second look beside ours would be neither counted nor told"
        self.root = root

    def loaded(self) -> Registry | None:
        return self.serving

    def refresh(self) -> ValidationResult:
        self.reads += 1
        assert self.hold.wait(10)
        if isinstance(self.next, Exception):
            raise self.next
        if isinstance(self.next, Registry):
            self.serving = self.next
            return ValidationResult.of(self.root, [])
        return ValidationResult.of(self.root, self.next or [Finding(str(self.root), 0, 0, "", "read", "no manifest")])


class World:
    def __init__(self, root: Path, first: Registry | list[Finding] | Exception | None) -> None:
        self.files, self.metrics, self.day = Files(first), Metrics(), TODAY
        self.served = ServedRegistry(root, self.metrics, self.files, lambda: self.day)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)

    @asynccontextmanager
    async def client(self, token: str | None = None) -> AsyncIterator[TestClient[Any, Any]]:
        def healthy() -> Health:
            return Health(ok=True, reasons=[], checks={})

        side = Side(self.metrics, healthy, healthy, token, registry=self.served)
        async with TestClient(TestServer(make_app(side))) as client:
            yield client


def folder(tmp_path: Path) -> Path:
    """A folder with something in it, so that it is not empty."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/ux_quality.yaml").write_text("id: ux_quality\n")
    return tmp_path


async def serving(root: Path) -> World:
    """What a good registry serves."""
    it = World(root, registry())
    await it.served.refresh("start")
    return it


async def reads(world: World, least: int) -> None:
    for _ in range(1000):
        if world.files.reads >= least:
            return
        await asyncio.sleep(0.005)
    pytest.fail(f"read {world.files.reads} times, not {least}")
