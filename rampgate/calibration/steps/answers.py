"""Asks the judges, as they are now, about the drawn turns: whatever follows is of the versions that the round is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from evalcore.scoring.items import Item, dataset_item
from rampgate.calibration.folder import ANSWERS, RoundAnswer, line, write_whole
from rampgate.calibration.steps.draw import texts
from rampgate.calibration.steps.given import Given, Outcome, drawn_turns, judges_to_ask
from rampgate.checks.stored_outputs import Run, Stored, baseline_file, judged, limits, write_baseline
from rampgate.console import run
from rampgate.input_files import read
from schemas.calibration_cycle import Cycle, NewDriftLimit
from schemas.counting import counted

LEAST_KL = 1e-6
"""A limit below it would be that of a judge that never answered otherwise: any other answer would be drift."""


@dataclass(frozen=True)
class Now:
    """What the judges say now, by judge and turn. `told`: of how many scores the judges were asked again, and which are
    left out."""

    scores: Mapping[tuple[str, str], float]
    told: str


def ask(given: Given, cycle: Cycle) -> Outcome:
    """Asks the judges, as they are now, about the drawn turns, as often as the round says."""
    items, judges = _items(given, cycle), judges_to_ask(given)
    beside = given.folder.path / ANSWERS
    runs = run(partial(judged, given.settings, judges, items, cycle.runs, beside=beside, purpose="calibrate"))
    hashes = Stored(items).hashes()
    text = "".join(
        line(RoundAnswer(number, judge, item, score, hashes[item]))
        for number, one in enumerate(runs)
        for judge, said in one.items()
        for item, score in said.items()
    )
    return Outcome(told=f"{counted(cycle.runs, 'run')} of {counted(len(judges), 'judge')}", files={ANSWERS: text})


def scores_now(given: Given) -> Now:
    """What the judges say of the drawn turns as they are now: their answers in the first run. Opik tells no version
    with a score, so a turn's own may be another version's; it stands only for a judge that is code, which is not
    asked."""
    asked = {judge.id for judge in judges_to_ask(given)}
    answers = read(given.folder.path / ANSWERS, RoundAnswer)
    said = {(one.judge_id, one.item_id): one.score for _, one in answers if one.run == 0}
    found: dict[tuple[str, str], float] = {}
    own = left = 0
    for item, one in drawn_turns(given).items():
        for judge, score in one.judge_scores.items():
            if judge not in asked:
                found[judge, item], own = score, own + 1
            elif isinstance(now := said.get((judge, item)), float):
                found[judge, item] = now
            else:
                left += 1
    told = f"{len(found) - own} scores were asked again of the judges as they are now"
    told += f", {own} are the turns' own, of judges without a model" if own else ""
    return Now(found, told + (f"; {left} are left out: no score, or not applicable" if left else ""))


def limit_drift(given: Given, cycle: Cycle) -> Outcome:
    """The judges' baseline, and the limit that their own runs give of their drift (PF-9 FR-13)."""
    runs: list[dict[str, dict[str, Any]]] = [{} for _ in range(cycle.runs)]
    hashes: dict[str, str] = {}
    for _, one in read(given.folder.path / ANSWERS, RoundAnswer):
        runs[one.run].setdefault(one.judge_id, {})[one.item_id] = one.score
        hashes[one.item_id] = one.item_hash
    judges = judges_to_ask(given)
    last: Run = runs[-1]
    write_baseline(baseline_file(given.settings, cycle.vertical), last, judges, hashes)
    table = []
    for judge, (name, limit) in zip(judges, limits(runs, judges).items(), strict=True):
        said = last.get(name, {})
        told = limit is not None and limit >= LEAST_KL
        table.append(
            NewDriftLimit(
                judge_id=name, judge_version=judge.version, items=len(said),
                unscored=sum(score is None for score in said.values()),
                old=float(judge.drift.kl_threshold) if judge.drift is not None else None,
                kl_limit=float(f"{limit:.4g}") if told and limit is not None else None,
                reason="" if told else "its runs do not differ: they give no limit",
            )
        )  # fmt: skip
    return Outcome(told=f"baseline of {counted(len(table), 'judge')}", found={"drift": table})


def _items(given: Given, cycle: Cycle) -> list[Item]:
    turns, schema = texts(given, cycle), given.registry.manifest.get("schema", {})
    stored = [
        {
            "input": turns[item].question, "output": turns[item].answer,
            "metadata": {
                "id": item, "category": turns[item].category, "vertical": cycle.vertical,
                "sub_agent": turns[item].sub_agent,
            },
        }
        for item in drawn_turns(given)
    ]  # fmt: skip
    if given.outputs is not None:
        write_whole(given.outputs, "".join(map(line, stored)))
    return [dataset_item(one, schema, number) for number, one in enumerate(stored)]
