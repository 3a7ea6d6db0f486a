"""The steps of a calibration round: what each reads, and what it leaves (PF-9 §5.3)."""

from __future__ import annotations

import json
import os.path
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from evalcore.calibration.draw import TooFewTurns, Turn, disagree, draw
from evalcore.registry.files import AGREEMENT, REFERENCE_SET
from evalcore.registry.judge import Judge, digest
from evalcore.registry.registry import Registry
from evalcore.scoring.items import Item, dataset_item
from rampgate.calibration.folder import Folder, evaluation_folder, sha256, write_whole
from rampgate.calibration.people import against_people, agreements, bounds_of, enter, pairs, reference
from rampgate.calibration.report import report_files
from rampgate.calibration.sheets import Rating, read_sheets, sheet
from rampgate.calibration.turns import ScoredTurn, read_turns
from rampgate.checks.agreement import read_thresholds
from rampgate.checks.stored_outputs import (
    Run,
    Stored,
    asked_judges,
    baseline_file,
    judged,
    limits,
    write_baseline,
)
from rampgate.ci_gate.inputs import BadFile, lines
from rampgate.console import Failure, run
from rampgate.limits.calibration import Calibrated, Options, proposals
from rampgate.limits.rule_files import NewLimits, write_limits
from rampgate.settings import Settings
from schemas.calibration_cycle import Cycle, DrawnCategory, NewDriftLimit, NewFloor, State, Step
from schemas.judges import BaselineSource

DRAWN, RATINGS, PAIRS, ON_SCALE, ANSWERS, DIFF = (
    "draw.jsonl", "ratings.jsonl", "pairs.jsonl", "pairs-on-scale.jsonl", "answers.jsonl", "limits.diff",
)  # fmt: skip
LEAST_KL = 1e-6
"""A limit below it would be that of a judge that never answered otherwise: any other answer would be drift."""


@dataclass(frozen=True)
class Given:
    """What one run of the round has."""

    settings: Settings
    registry: Registry
    vertical: str
    folder: Folder
    turns: Path | None
    sheets: tuple[Path, ...]
    empty_sheet: Path | None
    outputs: Path | None
    write: bool

    @property
    def judges(self) -> dict[str, Judge]:
        """The judges as the vertical sees them."""
        return {judge.id: judge for judge in self.registry.all(self.vertical)}

    def hashes(self, *names: str) -> dict[str, str]:
        return self.folder.hashes(*names)


@dataclass(frozen=True)
class Outcome:
    """What a step left: files of the round's folder by name, and fields of its document."""

    state: State = State.DONE
    told: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, Any] = field(default_factory=dict)


def draw_turns(given: Given, cycle: Cycle) -> Outcome:
    """Draws turns of the categories that the vertical's file of agreement names."""
    if given.turns is None:
        raise Failure("--turns FILE: the turns to draw from, as `rampgate export` writes them")
    turns = _turns(given, given.turns)
    categories = [*read_thresholds(_thresholds_file(given, cycle)).categories]
    known = [turn for turn in turns.values() if turn.scores]
    seed = f"{cycle.vertical}/{cycle.round}"
    try:
        drawn = draw([_candidate(turn, given.judges) for turn in known], categories, cycle.size, seed)
    except TooFewTurns as error:
        raise Failure(f"{given.turns}: {error}") from error
    text = ""
    for one in drawn:
        turn = turns[one.turn.item]
        text += _line(
            {
                "item_id": turn.item, "trace_id": turn.trace, "category": turn.category, "weight": one.weight,
                "disagreeing": one.turn.disagreeing, "item_hash": turn.hash,
                "judge_scores": dict(sorted(turn.scores.items())),
            }
        )  # fmt: skip
    of = [_candidate(turn, given.judges) for turn in known]
    table = [
        DrawnCategory(
            category=name,
            turns=sum(turn.category == name for turn in of),
            drawn=sum(one.turn.category == name for one in drawn),
            disagreeing=sum(turn.category == name and turn.disagreeing for turn in of),
            disagreeing_drawn=sum(one.turn.category == name and one.turn.disagreeing for one in drawn),
        )
        for name in categories
    ]
    left = len(turns) - sum(one.turns for one in table)
    told = f"{len(drawn)} of {len(turns)} turns; {left} have no score, or a category without a threshold of agreement"
    return Outcome(told=told, files={DRAWN: text}, found={"draw": table})


def annotate(given: Given, cycle: Cycle) -> Outcome:
    """Takes what people said; waits for them while a drawn turn lacks a score of anybody."""
    drawn = _drawn(given)
    asked = {item: frozenset(one["judge_scores"]) for item, one in drawn.items()}
    every = [(item, judge) for item in drawn for judge in sorted(asked[item])]
    if given.empty_sheet is not None:
        _write_sheet(given, given.empty_sheet, every)
    if not given.sheets:
        return Outcome(State.WAITING, f"{len(every)} scores of people are to come: --sheet FILE writes the sheet")
    try:
        ratings = read_sheets(given.sheets, asked, given.judges)
    except BadFile as error:
        raise Failure(str(error)) from error
    rated = {(one.item, one.judge) for one in ratings}
    text = "".join(
        _line({"item_id": one.item, "judge_id": one.judge, "annotator": one.annotator, "score": one.score})
        for one in ratings
    )
    if missing := [one for one in every if one not in rated]:
        item, judge = missing[0]
        told = f"{len(missing)} of {len(every)} have no score yet, such as {item} for {judge}"
        return Outcome(State.WAITING, told, {RATINGS: text})
    return Outcome(
        told=f"{len(ratings)} scores of {len({one.annotator for one in ratings})} people", files={RATINGS: text}
    )


def agree(given: Given, cycle: Cycle) -> Outcome:
    """Nothing of the round counts, or enters the reference set, before every category clears (PF-9 FR-14)."""
    folder, drawn, ratings = evaluation_folder(given.settings.configs, cycle.vertical), _drawn(given), _ratings(given)
    stated = bounds_of(read_thresholds(_thresholds_file(given, cycle)), reference(folder / REFERENCE_SET), cycle)
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
    """Holds judges' scores against the mean of people's."""
    drawn, ratings = _drawn(given), _ratings(given)
    means = pairs(ratings, drawn, given.judges, on_scale=False)
    rounded = pairs(ratings, drawn, given.judges, on_scale=True)
    found = against_people(means)
    inverted = [one.judge_id for one in found if one.inverted]
    told = f"inverted: {', '.join(inverted)}" if inverted else f"none of {len(found)} judges is inverted"
    files = {PAIRS: "".join(map(_line, means)), ON_SCALE: "".join(map(_line, rounded))}
    return Outcome(told=told, files=files, found={"inversion": found})


def floors(given: Given, cycle: Cycle) -> Outcome:
    """The 5th percentile of judges' scores where people found the turn acceptable."""
    table = []
    for one in _proposed(given, cycle):
        of, judge = one.found, given.judges[one.judge]
        table.append(
            NewFloor(
                judge_id=one.judge, old=judge.floor, floor=of.limit, acceptable=_cut(cycle, one.judge),
                traces=one.traces, n=of.n, mean=of.mean, sigma=of.sigma, breach_probability=of.breach,
                detectable_drop=of.detectable, proposed=one.new is not None, reason=of.reason,
            )
        )  # fmt: skip
    return Outcome(told=f"{sum(one.proposed for one in table)} of {len(table)} judges", found={"floors": table})


def ask(given: Given, cycle: Cycle) -> Outcome:
    """Asks the judges, as they are now, about the drawn turns, as often as the round says."""
    items, judges = _items(given, cycle), _asked(given)
    beside = given.folder.path / ANSWERS
    runs = run(partial(judged, given.settings, judges, items, cycle.runs, beside=beside, purpose="calibrate"))
    hashes = Stored(items).hashes()
    text = "".join(
        _line({"run": number, "judge_id": judge, "item_id": item, "score": score, "item_hash": hashes[item]})
        for number, one in enumerate(runs)
        for judge, said in one.items()
        for item, score in said.items()
    )
    return Outcome(told=f"{cycle.runs} runs of {len(judges)} judges", files={ANSWERS: text})


def limit_drift(given: Given, cycle: Cycle) -> Outcome:
    """The judges' baseline, and the limit that their own runs give of their drift (PF-9 FR-13)."""
    runs: list[dict[str, dict[str, Any]]] = [{} for _ in range(cycle.runs)]
    hashes: dict[str, str] = {}
    for _, one in lines(given.folder.path / ANSWERS):
        runs[one["run"]].setdefault(one["judge_id"], {})[one["item_id"]] = one["score"]
        hashes[one["item_id"]] = one["item_hash"]
    judges = _asked(given)
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
    return Outcome(told=f"baseline of {len(table)} judges", found={"drift": table})


def report(given: Given, cycle: Cycle) -> Outcome:
    return Outcome(files=report_files(cycle))


def diff(given: Given, cycle: Cycle) -> Outcome:
    """What would change in the vertical's rule files."""
    changes = write_limits(given.settings.configs, cycle.vertical, _new(given, cycle), write=False)
    # From the folder of both, so that the same round is the same bytes wherever it is checked out.
    above = given.settings.configs.resolve().parent
    text = "".join(replace(change, path=Path(os.path.relpath(change.path.resolve(), above))).diff for change in changes)
    return Outcome(told=f"{len(changes)} rule files", files={DIFF: text})


def write(given: Given, cycle: Cycle) -> Outcome:
    """Changes them, on somebody's word alone."""
    if not given.write:
        return Outcome(State.NOT_BEGUN, "--write changes the rule files")
    new = _new(given, cycle)
    write_limits(given.settings.configs, cycle.vertical, new)
    return Outcome(told=f"limits of {len(new)} judges")


def _nothing(given: Given, cycle: Cycle) -> dict[str, str]:
    """A round is drawn once: another export of the same days is no reason to ask people about other turns."""
    return {}


def _of_annotate(given: Given, cycle: Cycle) -> dict[str, str]:
    known = cycle.step(Step.ANNOTATE).inputs
    sheets = {
        f"sheet {number}": sha256(path.read_bytes()) for number, path in enumerate(given.sheets, 1) if path.is_file()
    }
    if not sheets:
        sheets = {name: hash_ for name, hash_ in known.items() if name.startswith("sheet ")}
    return {**given.hashes(DRAWN), **sheets}


def _of_agree(given: Given, cycle: Cycle) -> dict[str, str]:
    file = _thresholds_file(given, cycle)
    return {**given.hashes(DRAWN, RATINGS), AGREEMENT: sha256(file.read_bytes()) if file.is_file() else ""}


def _of_floors(given: Given, cycle: Cycle) -> dict[str, str]:
    return {**given.hashes(ON_SCALE), "inversion": _digest(cycle.inversion)}


def _of_ask(given: Given, cycle: Cycle) -> dict[str, str]:
    return {**given.hashes(DRAWN), "judges": digest([[one.id, one.version] for one in _asked(given)])}


def _of_results(given: Given, cycle: Cycle) -> dict[str, str]:
    of: list[Sequence[Any]] = [cycle.draw, cycle.agreement, cycle.inversion, cycle.floors, cycle.drift]
    return {"results": digest([_digest(one) for one in of])}


Run_ = Callable[[Given, Cycle], Outcome]
Reads = Callable[[Given, Cycle], dict[str, str]]
STEPS: Mapping[Step, tuple[Run_, Reads]] = {
    Step.DRAW: (draw_turns, _nothing),
    Step.ANNOTATE: (annotate, _of_annotate),
    Step.AGREEMENT: (agree, _of_agree),
    Step.INVERSION: (invert, lambda given, _: given.hashes(DRAWN, RATINGS)),
    Step.FLOORS: (floors, _of_floors),
    Step.ASK: (ask, _of_ask),
    Step.DRIFT: (limit_drift, lambda given, _: given.hashes(ANSWERS)),
    Step.REPORT: (report, _of_results),
    Step.DIFF: (diff, _of_results),
    Step.WRITE: (write, lambda given, _: given.hashes(DIFF)),
}


def _thresholds_file(given: Given, cycle: Cycle) -> Path:
    return evaluation_folder(given.settings.configs, cycle.vertical) / AGREEMENT


def _turns(given: Given, path: Path) -> dict[str, ScoredTurn]:
    try:
        return read_turns(path, given.vertical, given.registry)
    except BadFile as error:
        raise Failure(str(error)) from error


def _candidate(turn: ScoredTurn, judges: Mapping[str, Judge]) -> Turn:
    ranges = {name: judges[name].score_range for name in turn.scores}
    shares = [(score - ranges[name][0]) / (ranges[name][1] - ranges[name][0]) for name, score in turn.scores.items()]
    return Turn(turn.item, turn.category, disagree(turn.thumbs, shares))


def _drawn(given: Given) -> dict[str, dict[str, Any]]:
    return {str(one["item_id"]): one for _, one in lines(given.folder.path / DRAWN)}


def _ratings(given: Given) -> list[Rating]:
    return [
        Rating(one["item_id"], one["judge_id"], one["annotator"], one["score"])
        for _, one in lines(given.folder.path / RATINGS)
    ]


def _texts(given: Given) -> dict[str, ScoredTurn]:
    """The drawn turns with their texts, from --turns: those that were drawn, word for word. Raises Failure."""
    if given.turns is None:
        raise Failure("--turns FILE: the texts of the drawn turns are needed; the round keeps none")
    turns = _turns(given, given.turns)
    for item, one in _drawn(given).items():
        if item not in turns or turns[item].hash != one["item_hash"]:
            why = "is another one now" if item in turns else "is missing"
            raise Failure(
                f"{given.turns}: response_id: {item[:80]!r} {why}: give the file that the round was drawn from"
            )
    return turns


def _write_sheet(given: Given, path: Path, every: Sequence[tuple[str, str]]) -> None:
    if path.exists():
        raise Failure(f"--sheet: {path}: is there already; people may have written on it")
    write_whole(path, sheet(every, _texts(given), given.judges))


def _items(given: Given, cycle: Cycle) -> list[Item]:
    turns, schema = _texts(given), given.registry.manifest.get("schema", {})
    stored = [
        {
            "input": turns[item].question, "output": turns[item].answer,
            "metadata": {
                "id": item, "category": turns[item].category, "vertical": cycle.vertical,
                "sub_agent": turns[item].sub_agent,
            },
        }
        for item in _drawn(given)
    ]  # fmt: skip
    if given.outputs is not None:
        write_whole(given.outputs, "".join(map(_line, stored)))
    return [dataset_item(one, schema, number) for number, one in enumerate(stored)]


def _asked(given: Given) -> list[Judge]:
    """The judges of the drawn turns that ask a model, in one order."""
    drawn = {judge for one in _drawn(given).values() for judge in one["judge_scores"]}
    return asked_judges([given.judges[name] for name in sorted(drawn)])


def _proposed(given: Given, cycle: Cycle) -> list[Calibrated]:
    inverted = {one.judge_id: one for one in cycle.inversion if one.inverted}
    told = f"Inverted: {', '.join(sorted(inverted))}." if inverted else f"None of {len(cycle.inversion)} judges."
    cuts = {name: cut for name, cut in cycle.acceptable.items() if name != "*"}
    path, source = given.folder.path / ON_SCALE, BaselineSource.JADE_CALIBRATION
    of = (cycle.acceptable.get("*"), None, None, cycle.vertical, given.settings.configs, True)
    options = Options(source, path, *of, False, cycle.ticket, cycle.report, day=cycle.day, cuts=cuts)
    out = []
    for one in proposals(options, given.registry)[0]:
        if one.judge in inverted:
            out.append(one.refused(inverted[one.judge].reason))
        elif _cut(cycle, one.judge) is None:
            why = f"nobody said from which score on a turn is acceptable: --acceptable {one.judge}=SCORE"
            out.append(one.refused(why))
        elif one.new is not None:
            out.append(replace(one, new=replace(one.new, facts={**one.new.facts, "inverted_findings": told})))
        else:
            out.append(one)
    return out


def _new(given: Given, cycle: Cycle) -> list[NewLimits]:
    of_drift = {one.judge_id: one.kl_limit for one in cycle.drift}
    return [
        replace(one.new, kl_threshold=of_drift.get(one.judge)) for one in _proposed(given, cycle) if one.new is not None
    ]


def _cut(cycle: Cycle, judge: str) -> float | None:
    return cycle.acceptable.get(judge, cycle.acceptable.get("*"))


def _worst(items: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(one["item_id"]) for one in items[:10]]


def _digest(of: Sequence[Any]) -> str:
    return digest([one.model_dump(mode="json") for one in of])


def _line(one: Mapping[str, Any]) -> str:
    return f"{json.dumps(one, ensure_ascii=False)}\n"
