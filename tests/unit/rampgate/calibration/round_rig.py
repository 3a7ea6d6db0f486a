"""A vertical whose judges are calibrated: a registry, turns to draw from, and people who score sheets."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from evalcore.registry.disk import today
from tests.fork_server import ran
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.rampgate.checks import score_commands
from tests.unit.rampgate.ci_gate.gate_rig import MANIFEST, jsonl

OWN = "rules/shop/helpfulness.yaml"
JUDGES = ("brevity", "helpfulness")
TURNS = 240
BEGUN = ("--ticket", "PLT-700", "--acceptable", "4", "--runs", "2", "--turns", "turns.jsonl")
ROUND = "specs/verticals/shop/eval/rounds/r1"
Row = dict[str, str]


def quality(number: int) -> int:
    return number * 7 % 5 + 1


def turn(number: int, **changed: Any) -> dict[str, Any]:
    """The turn of that number, as an export has it; of one in six the user and the judges say the opposite."""
    score = quality(number)
    thumbs = (1.0 if score >= 3 else -1.0) * (-1.0 if number % 6 == 0 else 1.0)
    return {
        "trace_id": f"t{number}", "response_id": f"r{number}", "vertical": "shop", "sub_agent": "shop",
        "prompt_version": "1", "category": "shop_returns" if number % 2 else "general_qa",
        "timestamp": "2026-11-20T10:00:00Z", "user_query": f"=how do I do {number}?",
        "agent_response": f"so {number} #quality:{(score - 1) / 4}",
        "judge_scores": dict.fromkeys(JUDGES, float(score)), "feedback_scores": {"user_signal_thumbs": thumbs},
        **changed,
    }  # fmt: skip


def vertical(folder: Path) -> Path:
    """The registry's root; `travel` has rule files too, and `shop` thresholds of agreement."""
    root = written(folder, {"evaluation_manifest.yaml": MANIFEST})
    (root / "rules/travel").mkdir()
    (root / "rules/travel/helpfulness.yaml").write_text((root / OWN).read_text().replace("shop", "travel"))
    since, due = today() - timedelta(days=1), today() + timedelta(days=80)
    stated = f"{{threshold: 0.667, baseline_source: provisional_seed, set_on: {since}, recalibration_due: {due}}}"
    file = folder / "specs/verticals/shop/eval/agreement.yaml"
    file.write_text(f"vertical: shop\ncategories:\n  shop_returns: {stated}\n  general_qa: {stated}\n")
    jsonl(folder / "turns.jsonl", *map(turn, range(TURNS)))
    return root


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def filled(sheet: Path, out: Path, people: Iterable[str], says: Callable[[Row, str], object]) -> Path:
    """The sheet with what people said; None is a row left empty."""
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        for person in people:
            for row in rows:
                said = says(row, person)
                writer.writerow({**row, "annotator": person, "score": "" if said is None else said})
    return out


def agreeing(row: Row, person: str) -> int:
    """What people say who mostly agree with one another and with the judges."""
    number = int(row["item_id"].removeprefix("r"))
    return max(1, quality(number) - (person == "ben" and number % 10 == 1))


def killed(words: list[str], folder: Path, step: str = "write") -> str:
    """What the command said on stderr that was killed again and again in that folder until the step was done."""
    done = ran(step, *words, module="tests.unit.rampgate.calibration.killed", folder=folder, seconds=900)
    assert done.returncode == 0, done.stderr
    return done.stderr


def calibrate(*words: object) -> tuple[int, dict[str, Any], str]:
    """Resumes the round `r1` of the vertical `shop` in the working directory."""
    return score_commands.ran("calibrate", "jade", "--vertical", "shop", "--round", "r1", "--json", *words)
