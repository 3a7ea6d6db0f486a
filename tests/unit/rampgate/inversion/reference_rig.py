"""A vertical `shop` whose people scored turns of its judges: a reference set, and what its round left beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from evalcore.agreement.check import Rated
from evalcore.agreement.reference import extended, verified
from evalcore.registry.disk import read_tree, today
from evalcore.registry.judge import Judge, digest
from evalcore.registry.registry import build
from evalcore.validation import checked
from rampgate.calibration.folder import DrawnTurn, RoundPair
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.rampgate.ci_gate.gate_rig import MANIFEST, jsonl

TURNS = 40
Says = Callable[[int], float]


def quality(number: int) -> int:
    return number * 7 % 5 + 1


def turned(number: int) -> int:
    return 6 - quality(number)


def output(number: int, says: Says = quality) -> dict[str, Any]:
    """A turn as a round's --outputs has it; the model's stand-in scores it as `says`."""
    return {
        "input": f"how do I do {number}?", "output": f"so {number} #quality:{(says(number) - 1) / 4}",
        "metadata": {"id": f"r{number}", "category": "shop_returns", "vertical": "shop", "sub_agent": "shop"},
    }  # fmt: skip


class Shop:
    def __init__(self, folder: Path) -> None:
        self.root = written(folder, {"evaluation_manifest.yaml": MANIFEST})
        self.folder = folder / "specs/verticals/shop/eval"

    def judge(self, name: str = "helpfulness") -> Judge:
        return build(checked(read_tree(self.root), today())[0]).judge(name, "shop")

    def changed(self, name: str = "helpfulness") -> Judge:
        """The judge after a change of its rubric: another version."""
        file = self.root / f"rules/{name}.yaml"
        file.write_text(file.read_text().replace("You judge", "You strictly judge"))
        return self.judge(name)

    def people(self, name: str = "r1", says: Says = quality, judge: str = "helpfulness", turns: int = TURNS) -> None:
        """Two people score so many turns in a round, for a judge."""
        file = self.folder / "reference-set.jsonl"
        known = verified(map(json.loads, file.read_text().splitlines())) if file.exists() else []
        items = [n for n in range(turns) for _ in range(2)]
        rated = Rated(
            [f"{judge}/r{n}" for n in range(turns)], ["ann", "ben"], items, [0, 1] * turns, [says(n) for n in items]
        )
        entries = [*known, *extended(known, {"shop_returns": rated}, name, "2026-11-20T00:00:00+00:00")]
        jsonl(file, *entries)

    def round(self, *judges: Judge, name: str = "r1", says: Says = quality, weights: Mapping[int, float] = {}) -> None:
        """What a round left of it: the draw, and what the judges said then."""
        folder = self.folder / "rounds" / name
        folder.mkdir(parents=True, exist_ok=True)
        hashes = [digest([output(n)["input"], output(n)["output"]]) for n in range(TURNS)]
        drawn = [
            DrawnTurn(f"r{n}", f"t{n}", "shop_returns", weights.get(n, 1.0), False, hashes[n], {}) for n in range(TURNS)
        ]
        pairs = [
            RoundPair(judge.id, judge.version, f"r{n}", says(n), quality(n), "shop_returns", weights.get(n, 1.0))
            for judge in judges
            for n in range(TURNS)
        ]
        jsonl(folder / "draw.jsonl", *map(to_builtins, drawn))
        jsonl(folder / "pairs.jsonl", *map(to_builtins, pairs))

    def score(self, judge: Judge, number: int, says: Says) -> dict[str, Any]:
        return {"judge_id": judge.id, "judge_version": judge.version, "item_id": f"r{number}", "score": says(number)}

    def records(self, file: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in file.read_text().splitlines()]
