"""Has judges judge stored outputs, at their calibration and again later, and keeps what they said then.

The outputs are the same both times, so that a change of the agent is no change of the judge. A baseline holds ids,
hashes and scores, and no text: `{judge_id, item_id, score, judge_version, item_hash}` a line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from evalcore.drift.divergence import between_runs
from evalcore.drift.scale import declared
from evalcore.judges.evaluator import Task
from evalcore.manifest.discovery import components
from evalcore.registry.files import COMPONENTS, VERTICALS, Tree
from evalcore.registry.judge import Judge, digest
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Judgement, written
from evalcore.scoring.assignments import assign, task_of, unscorable
from evalcore.scoring.items import Item
from rampgate.asking import asking
from rampgate.checks.score_files import ScoreColumn, VersionedScore
from rampgate.console import Failure
from rampgate.files import replace_file
from rampgate.input_files import lines, read
from rampgate.settings import Settings
from schemas.counting import counted
from schemas.judges import judge_id

if TYPE_CHECKING:
    from evalcore.drift.scale import Scores

BASELINE = "drift-baseline.jsonl"
Said = float | Literal["N/A"] | None
"""A score, "N/A", or None for an item that is unscored."""
Run = Mapping[str, Mapping[str, Said]]
"""What each judge, and each of its dimensions, said of each item of one run."""


class StoredScore(VersionedScore, gc=False):
    """A line of a baseline."""

    item_hash: Annotated[
        str, Meta(description="the hash of the item's output", extra={"remedy": "`check drift --capture` writes it"})
    ]


@dataclass(frozen=True)
class Stored:
    """What was judged, by the item's id: the hash of all that a judge may have read."""

    items: Sequence[Item]

    def hashes(self) -> dict[str, str]:
        return {item.id: digest(item.source) for item in self.items}


def changed_judges(before: Tree, now: Tree, registry: Registry, vertical: str | None) -> list[Judge]:
    """The judges whose rule file, or a prompt component it names, is another one than before (PF-9 FR-13). A vertical's
    rule file counts for that vertical."""
    folders = ["rules"] + ([f"rules/{vertical}"] if vertical is not None else [])
    changed = {judge for folder in folders for judge in _differing(_rules(before, folder), _rules(now, folder))}
    parts = _differing(_components(before), _components(now))
    return [
        judge
        for judge in registry.all(vertical)
        if judge.id in changed or parts & {judge_id(name) for name in judge.rule.components}
    ]


async def judged(
    settings: Settings,
    judges: Sequence[Judge],
    items: Sequence[Item],
    runs: int = 1,
    *,
    beside: Path | None = None,
    purpose: str = "drift",
) -> list[Run]:
    """What the judges say of the items, as often as asked. Each run reaches the model, whatever is kept of its answers:
    a hosted model changes silently. Killed, it goes on by what stands `beside` that file, for the same `purpose`.
    Raises Failure without a model, or where it answers nothing."""
    pairs = [(judge, item) for judge, item in assign(judges, items) if not unscorable(judge, item)]
    tasks: list[Task] = [task_of(judge, item) for judge, item in pairs]
    found: list[Run] = []
    known = (purpose, runs)
    async with asking(settings, "drift", judges, items, *known, beside=beside, total=runs * len(tasks)) as model:
        for number in range(runs):
            answers = await model.ask(tasks, f"run {number}")
            if answers and all(one.failure for one in answers):
                raise Failure(f"the model answered none of {counted(len(answers), 'question')}: {_why(answers[0])}")
            found.append(_run(pairs, answers))
    return found


def columns(run: Run, path: Path, then: Mapping[str, ScoreColumn]) -> dict[str, ScoreColumn]:
    """A run's answers as the columns of a file: of a judge that is in `then` about the items that it judged there."""
    found: dict[str, ScoreColumn] = {}
    for judge, said in run.items():
        column = found.setdefault(judge, ScoreColumn(path))
        for place, (item, score) in enumerate(said.items(), start=1):
            if judge not in then or item in then[judge].items:
                column.add(place, item, score)
    return found


def limits(runs: Sequence[Run], judges: Sequence[Judge], seed: int = 0) -> dict[str, float | None]:
    """The limit for each judge's drift that its own runs give (`evalcore.drift.limits`)."""
    scales = {judge.id: declared(judge.score_type, judge.score_range) for judge in judges}
    return {name: between_runs([_scores(run, name) for run in runs], scale, seed) for name, scale in scales.items()}


def baseline_file(settings: Settings, vertical: str | None) -> Path:
    """Where a baseline is kept: the platform's beside the registry, a vertical's among its own files."""
    return settings.configs / (BASELINE if vertical is None else f"{VERTICALS}/{vertical}/eval/{BASELINE}")


def write_baseline(path: Path, run: Run, judges: Sequence[Judge], hashes: Mapping[str, str]) -> None:
    """Put the judges' answers in the place of those that the file has of them. Raises Failure."""
    versions = {judge.id: judge.version for judge in judges}
    try:
        kept = [one for _, one in lines(path) if _judge(one) not in versions] if path.exists() else []
        ours = [
            {
                "judge_id": judge, "item_id": item, "score": score,
                "judge_version": versions[judge.partition(".")[0]], "item_hash": hashes[item],
            }
            for judge, said in run.items()
            for item, score in said.items()
        ]  # fmt: skip
        whole = sorted([*kept, *ours], key=lambda one: str(one["judge_id"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, "".join(f"{json.dumps(one)}\n" for one in whole))
    except OSError as error:
        raise Failure(f"{path}: can't be written: {error}") from error


def read_baseline(path: Path, stored: Stored) -> tuple[dict[str, ScoreColumn], dict[str, set[str]]]:
    """What judges said of the stored outputs at their calibration, and the versions that said it. Items whose output is
    another one now are left out. Raises BadFile."""
    hashes = stored.hashes()
    found: dict[str, ScoreColumn] = {}
    versions: dict[str, set[str]] = {}
    for number, line in read(path, StoredScore):
        versions.setdefault(line.judge_id, set()).add(line.judge_version)
        if hashes.get(line.item_id) == line.item_hash:
            found.setdefault(line.judge_id, ScoreColumn(path)).add(number, line.item_id, line.score)
    return found, versions


def _run(pairs: Sequence[tuple[Judge, Item]], answers: Sequence[Judgement]) -> Run:
    found: dict[str, dict[str, Said]] = {}
    for (judge, item), said in zip(pairs, answers, strict=True):
        for name, answer in said.named(judge.id):
            found.setdefault(name, {})[item.id] = written(answer)
    return found


def _scores(run: Run, judge: str) -> Scores:
    """A judge's scores in the order of the items, NaN where there is none."""
    said = run.get(judge, {}).values()
    return np.array([one if isinstance(one, float) else np.nan for one in said], dtype=np.float64)


def _why(said: Judgement) -> str:
    return getattr(said.answer, "reason", "") or str(said.failure)


def _judge(one: Mapping[str, Any]) -> str:
    return judge_id(str(one.get("judge_id", ""))).partition(".")[0]


def _rules(tree: Tree, folder: str) -> dict[str, bytes]:
    """The rule files right in a folder, by judge."""
    own = [Path(name) for name in tree.files if Path(name).parent == Path(folder)]
    return {judge_id(path.stem): tree.files[path.as_posix()] for path in own}


def _components(tree: Tree) -> dict[str, tuple[bytes, ...]]:
    """The files of prompt components by the component's id; of one that can't be read by the file's name."""
    files = tree.below(COMPONENTS, ".xml")
    named = {component.file: component.id.name for component in components(files)[0]}
    found: dict[str, tuple[bytes, ...]] = {}
    for file, content in files.items():
        name = judge_id(named.get(file, Path(file).stem))
        found[name] = (*found.get(name, ()), content)
    return found


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> set[str]:
    return {name for name in {*before, *now} if before.get(name) != now.get(name)}
