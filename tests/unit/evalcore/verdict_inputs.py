"""What the platform's verdicts depend on, as a file that is reviewed (PF-9 NFR-4, PC5 NFR-5).

`.venv/bin/python -m tests.unit.evalcore.verdict_inputs` writes `snapshots/verdict_inputs.json` again; the difference
belongs in the review of whatever changed it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from evalcore.registry.disk import read_tree
from evalcore.registry.files import Tree
from evalcore.registry.registry import Judge, Registry, build
from evalcore.validation import checked
from tests.root import ROOT

SNAPSHOT = ROOT / "tests" / "unit" / "snapshots" / "verdict_inputs.json"
DAY = date(2026, 11, 21)


def registry(tree: Tree) -> Registry:
    files, findings = checked(tree, DAY)
    assert [found for found in findings if found.severity == "error"] == []
    return build(files)


def shipped() -> Tree:
    return read_tree(ROOT / "configs")


def inputs(of: Registry, vertical: str | None = None) -> dict[str, Any]:
    """Everything of one view that decides a verdict, but for the rubrics, which the judge's version stands for."""
    return {
        "judges": {judge.id: _judge(judge) for judge in of.all(vertical)},
        "categories": {
            name: [judge.id for judge in of.category(name, vertical)]
            for name, category in sorted(of.category_files.items())
            if category.vertical in (None, vertical)
        },
        "composites": {name: found.model_dump(mode="json") for name, found in sorted(of.composites.items())},
        "gates": of.gates.model_dump(mode="json"),
    }


def _judge(judge: Judge) -> dict[str, Any]:
    return {
        "version": judge.version,
        "classification": judge.classification,
        "score_range": judge.score_range,
        "thresholds": _plain(judge.thresholds),
        "floor": judge.floor,
        "tolerance": judge.tolerance,
        "enforcement": _plain(judge.enforcement),
        "filter": judge.filter.model_dump(mode="json") if judge.filter else None,
        "applies_to": judge.rule.applies_to,
        "sampling_rate": judge.rule.sampling_rate,
        "enabled": judge.rule.enabled,
        "dimensions": {
            name: {"thresholds": _plain(limits.thresholds), "floor": limits.floor}
            for name, limits in judge.dimensions.items()
        },
    }


def _plain(by_milestone: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(milestone): value for milestone, value in by_milestone.items()}


def text(of: Registry) -> str:
    return json.dumps(inputs(of), indent=2, sort_keys=True, default=str) + "\n"


if __name__ == "__main__":
    SNAPSHOT.parent.mkdir(exist_ok=True)
    SNAPSHOT.write_text(text(registry(shipped())))
