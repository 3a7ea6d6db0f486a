"""Finds judges' scores of the turns of a vertical's reference set: kept of its rounds, from a file, or asked for.

A score counts for the version of the judge that gave it and for no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from evalcore.inversion.reference import People
from evalcore.registry.judge import Judge, digest
from evalcore.registry.registry import Registry
from rampgate.calibration.folder import DRAWN, PAIRS, DrawnTurn, RoundPair
from rampgate.checks.datasets import items_to_judge
from rampgate.checks.score_files import ScoreColumn, VersionedScore
from rampgate.checks.stored_outputs import judged
from rampgate.console import Failure, plain, run
from rampgate.input_files import read
from rampgate.settings import Settings
from schemas.judges import judge_id

ROUNDS = "rounds"
"""The folder of calibration rounds, beside the reference set (`rampgate calibrate jade --vertical`)."""
Scores = Mapping[str, Mapping[str, float]]
"""Of each judge its score of each turn that has one."""
AnyLine = TypeVar("AnyLine", bound=Struct)


def kept_of_rounds(folder: Path, judges: Sequence[Judge], people: Mapping[str, People]) -> Scores:
    """What the judges, as they are now, said when a round held them against people. Raises BadFile."""
    versions = {judge.id: judge.version for judge in judges}
    rounds = {name: {turn.round for turn in one.turns.values()} for name, one in people.items()}
    found: dict[str, dict[str, float]] = {judge.id: {} for judge in judges}
    for name in sorted({one for names in rounds.values() for one in names}):
        for one in _there(folder / ROUNDS / name / PAIRS, RoundPair):
            judge = judge_id(one.judge_id)
            of = people[judge].turns.get(one.item_id) if judge in people else None
            if of is not None and of.round == name and one.judge_version == versions.get(judge):
                found[judge][one.item_id] = one.judge_score
    return found


def draws(folder: Path, people: Mapping[str, People]) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """The weight of each turn in the draw of each round, and the hash of what people read. Raises BadFile."""
    weights: dict[str, dict[str, float]] = {}
    hashes: dict[str, str] = {}
    for name in sorted({turn.round for one in people.values() for turn in one.turns.values()}):
        for one in _there(folder / ROUNDS / name / DRAWN, DrawnTurn):
            weights.setdefault(name, {})[one.item_id] = one.weight
            hashes[one.item_id] = one.item_hash
    return weights, hashes


def from_file(path: Path, judges: Sequence[Judge], people: Mapping[str, People]) -> tuple[Scores, int]:
    """The scores of a file of `{judge_id, judge_version, item_id, score}`, as drift's baseline is one, and how many of
    its lines are of other versions. Raises BadFile."""
    versions = {judge.id: judge.version for judge in judges}
    columns: dict[str, ScoreColumn] = {}
    others = 0
    for number, line in read(path, VersionedScore):
        judge = judge_id(line.judge_id)
        if judge not in versions:
            continue
        if line.judge_version != versions[judge]:
            others += 1
            continue
        columns.setdefault(judge, ScoreColumn(path)).add(number, line.item_id, line.score)
    found = {}
    for judge, column in columns.items():
        scored = dict(zip(column.numbers, column.scores, strict=True))
        turns = people[judge].turns if judge in people else {}
        found[judge] = {item: scored[at] for item, at in column.items.items() if at in scored and item in turns}
    return found, others


def asked(
    settings: Settings,
    registry: Registry,
    judges: Sequence[Judge],
    people: Mapping[str, People],
    outputs: Path,
    hashes: Mapping[str, str],
    beside: Path,
) -> Scores:
    """What the judges say of the stored outputs now. Raises Failure: also where an output is another one than people
    read."""
    items = {item.id: item for item in items_to_judge(outputs, registry, "", 0)}
    for name, item in items.items():
        if name in hashes and digest([item.source.get("input"), item.source.get("output")]) != hashes[name]:
            raise Failure(
                f"{outputs}: {plain(name, 80)} is another turn than people scored: give the round's --outputs"
            )
    alike: dict[frozenset[str], list[Judge]] = {}
    for judge in judges:
        alike.setdefault(frozenset(items.keys() & people[judge.id].turns.keys()), []).append(judge)
    found: dict[str, Mapping[str, float]] = {}
    for names, group in alike.items():
        if not names:
            continue
        these = [item for name, item in items.items() if name in names]
        (said,) = run(partial(judged, settings, group, these, beside=beside, purpose="inversion"))
        for judge in group:
            of = said.get(judge.id, {}).items()
            found[judge.id] = {item: float(score) for item, score in of if isinstance(score, (int, float))}
    return found


def _there(path: Path, kind: type[AnyLine]) -> list[AnyLine]:
    return [line for _, line in read(path, kind)] if path.exists() else []
