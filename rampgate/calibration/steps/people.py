"""Has people score the drawn turns, and holds what they say against one another and against the judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalcore.registry.files import REFERENCE_SET
from rampgate.calibration.folder import (
    DRAWN,
    ON_SCALE,
    PAIRS,
    RATINGS,
    Rating,
    evaluation_folder,
    line,
    write_whole,
)
from rampgate.calibration.people import against_people, agreements, bounds_of, enter, pairs
from rampgate.calibration.queue import ANNOTATORS, lacking
from rampgate.calibration.sheets import read_sheets, sheet
from rampgate.calibration.steps.answers import scores_now
from rampgate.calibration.steps.draw import texts
from rampgate.calibration.steps.given import Given, Outcome, drawn_turns, ratings_of
from rampgate.checks.agreement import read_reference, read_thresholds
from rampgate.console import Failure
from schemas.calibration_cycle import Cycle, State


def annotate(given: Given, cycle: Cycle) -> Outcome:
    """Takes what people said, on sheets or in a queue in Opik; waits for them while a drawn turn lacks a score: of
    anybody on a sheet, of as many people as the queue asks for there."""
    drawn = drawn_turns(given)
    asked = {item: frozenset(one.judge_scores) for item, one in drawn.items()}
    every = [(item, judge) for item in drawn for judge in sorted(asked[item])]
    if given.empty_sheet is not None:
        _write_sheet(given, cycle, given.empty_sheet, every)
    if given.queue and given.sheets:
        raise Failure("--annotations: people score in the queue; give either --annotations or --queue")
    if given.queue or (cycle.queue is not None and not given.sheets):
        return _in_queue(given, cycle, every)
    if not given.sheets:
        told = f"{len(every)} scores of people are to come: --queue has them given in Opik, --sheet FILE on a sheet"
        return Outcome(State.WAITING, told)
    ratings = read_sheets(given.sheets, asked, given.judges)
    rated = {(one.item, one.judge) for one in ratings}
    return _rated(ratings, every, [one for one in every if one not in rated], "have no score yet")


def _in_queue(given: Given, cycle: Cycle, every: Sequence[tuple[str, str]]) -> Outcome:
    queue = cycle.queue or given.people().make(cycle, given.hashes(DRAWN)[DRAWN])
    ratings = given.queued(queue)
    why = f"have no score of {ANNOTATORS} people yet in {queue.name!r} of {queue.project}"
    return replace(_rated(ratings, every, lacking(ratings, every), why), found={"queue": queue})


def _rated(
    ratings: Sequence[Rating], every: Sequence[tuple[str, str]], missing: Sequence[tuple[str, str]], why: str
) -> Outcome:
    text = "".join(map(line, ratings))
    if missing:
        item, judge = missing[0]
        told = f"{len(missing)} of {len(every)} {why}, such as {item} for {judge}"
        return Outcome(State.WAITING, told, {RATINGS: text})
    return Outcome(
        told=f"{len(ratings)} scores of {len({one.annotator for one in ratings})} people", files={RATINGS: text}
    )


def agree(given: Given, cycle: Cycle) -> Outcome:
    """Nothing of the round counts, or enters the reference set, before every category clears (PF-9 FR-14)."""
    folder, drawn = evaluation_folder(given.settings.configs, cycle.vertical), drawn_turns(given)
    ratings = ratings_of(given)
    stated = bounds_of(read_thresholds(given.thresholds_file), read_reference(folder / REFERENCE_SET), cycle)
    found = agreements(ratings, drawn, stated)
    if refused := [one for one in found if not one.passed]:
        told = "; ".join(
            f"{one.category}, {one.judge_id}: {one.reason}; score again {', '.join(_worst(one.items)) or 'all'}"
            for one in refused
        )
        return Outcome(State.REFUSED, told, found={"agreement": found})
    version = enter(folder, cycle, ratings, drawn)
    told = f"{len(ratings)} ratings are in the reference set"
    return Outcome(told=told, found={"agreement": found, "reference_version": version})


def invert(given: Given, cycle: Cycle) -> Outcome:
    """Holds the scores of judges, as they are now, against the mean of people's."""
    ratings, now = ratings_of(given), scores_now(given)
    drawn = drawn_turns(given)
    means = pairs(ratings, drawn, given.judges, now.scores, on_scale=False)
    rounded = pairs(ratings, drawn, given.judges, now.scores, on_scale=True)
    found = against_people(means)
    inverted = [one.judge_id for one in found if one.inverted]
    told = f"inverted: {', '.join(inverted)}" if inverted else f"none of {len(found)} judges is inverted"
    files = {PAIRS: "".join(map(line, means)), ON_SCALE: "".join(map(line, rounded))}
    return Outcome(told=f"{told}; {now.told}", files=files, found={"inversion": found})


def _write_sheet(given: Given, cycle: Cycle, path: Path, every: Sequence[tuple[str, str]]) -> None:
    if path.exists():
        raise Failure(f"--sheet: {path}: is there already; people may have written on it")
    write_whole(path, sheet(every, texts(given, cycle), given.judges))


def _worst(items: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(one["item_id"]) for one in items[:10]]
