"""The steps in their order, each with what it reads: a step that is done is done again where that is another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalcore.registry.files import AGREEMENT, REFERENCE_SET
from evalcore.registry.judge import digest
from rampgate.calibration.folder import ANSWERS, DIFF, DRAWN, ON_SCALE, RATINGS, Folder, evaluation_folder, sha256
from rampgate.calibration.report import report_files
from rampgate.calibration.steps.answers import ask, limit_drift
from rampgate.calibration.steps.draw import draw_turns
from rampgate.calibration.steps.given import Given, Outcome, judges_to_ask
from rampgate.calibration.steps.limits import diff, floors, of_diff, write
from rampgate.calibration.steps.people import agree, annotate, invert
from rampgate.checks.agreement import read_reference
from rampgate.console import Failure
from schemas.calibration_cycle import Cycle, State, Step


def report(given: Given, cycle: Cycle) -> Outcome:
    return Outcome(files=report_files(cycle, _round_before(given, cycle)))


def require_reference(given: Given, cycle: Cycle) -> None:
    """Raises Failure where the reference set lacks the version that a round of the vertical left: it was cut, emptied
    or made again."""
    path = evaluation_folder(given.settings.configs, cycle.vertical) / REFERENCE_SET
    there = {"", *(str(entry["hash"]) for entry in read_reference(path))}
    for one in (cycle, *_others(given)):
        if one.reference_version not in there:
            told = f"has not the ratings of {one.round} any more, version {one.reference_version[:12]}"
            raise Failure(f"{path}: {told}; take the file from the history")


def _others(given: Given) -> list[Cycle]:
    """The vertical's other rounds."""
    others = [Folder(path).document() for path in given.folder.path.parent.iterdir() if path != given.folder.path]
    return [one for one in others if one is not None]


def _round_before(given: Given, cycle: Cycle) -> Cycle | None:
    """The vertical's last round that was reported before this one began."""
    earlier = [
        one
        for one in _others(given)
        if (one.day, one.round) < (cycle.day, cycle.round) and one.step(Step.REPORT).state is State.DONE
    ]
    return max(earlier, key=lambda one: (one.day, one.round), default=None)


def _of_draw(given: Given, cycle: Cycle) -> dict[str, str]:
    """Nothing: a round is drawn once. Another export of the same days is no reason to ask people about other turns."""
    return {}


def _of_annotate(given: Given, cycle: Cycle) -> dict[str, str]:
    known = cycle.step(Step.ANNOTATE).inputs
    sheets = {
        f"sheet {number}": sha256(path.read_bytes()) for number, path in enumerate(given.sheets, 1) if path.is_file()
    }
    if not sheets:
        sheets = {name: hash_ for name, hash_ in known.items() if name.startswith("sheet ")}
    if given.queue or (not sheets and cycle.queue is not None):
        return {**given.hashes(DRAWN), **_of_queue(given, cycle)}
    return {**given.hashes(DRAWN), **sheets}


def _of_queue(given: Given, cycle: Cycle) -> dict[str, str]:
    """What people said, until it counts: what is said later changes nothing of the round."""
    known = cycle.step(Step.ANNOTATE).inputs
    if cycle.step(Step.AGREEMENT).state is State.DONE and "queue" in known:
        return {"queue": known["queue"]}
    if cycle.queue is not None:
        given.queued(cycle.queue)
    said = [one for ratings in given.in_queue.values() for one in ratings]
    return {"queue": digest([[one.item, one.judge, one.annotator, one.score] for one in said])}


def _of_agree(given: Given, cycle: Cycle) -> dict[str, str]:
    file = given.thresholds_file
    return {**given.hashes(DRAWN, RATINGS), AGREEMENT: sha256(file.read_bytes()) if file.is_file() else ""}


def _of_ask(given: Given, cycle: Cycle) -> dict[str, str]:
    return {**given.hashes(DRAWN), "judges": digest([[one.id, one.version] for one in judges_to_ask(given)])}


def _of_inversion(given: Given, cycle: Cycle) -> dict[str, str]:
    return {**_of_ask(given, cycle), **given.hashes(RATINGS, ANSWERS)}


def _of_floors(given: Given, cycle: Cycle) -> dict[str, str]:
    return {**given.hashes(ON_SCALE), "inversion": _digest(cycle.inversion)}


def _of_results(given: Given, cycle: Cycle) -> dict[str, str]:
    of: list[Sequence[Any]] = [cycle.draw, cycle.agreement, cycle.inversion, cycle.floors, cycle.drift]
    return {"results": digest([_digest(one) for one in of])}


def _of_diff(given: Given, cycle: Cycle) -> dict[str, str]:
    return {**_of_results(given, cycle), "rule files": of_diff(given, cycle)}


Job = Callable[[Given, Cycle], Outcome]
Reads = Callable[[Given, Cycle], dict[str, str]]
STEPS: Mapping[Step, tuple[Job, Reads]] = {
    Step.DRAW: (draw_turns, _of_draw),
    Step.ANNOTATE: (annotate, _of_annotate),
    Step.AGREEMENT: (agree, _of_agree),
    Step.ASK: (ask, _of_ask),
    Step.INVERSION: (invert, _of_inversion),
    Step.FLOORS: (floors, _of_floors),
    Step.DRIFT: (limit_drift, lambda given, _: given.hashes(ANSWERS)),
    Step.REPORT: (report, _of_results),
    Step.DIFF: (diff, _of_diff),
    Step.WRITE: (write, lambda given, _: given.hashes(DIFF)),
}


def _digest(of: Sequence[Any]) -> str:
    return digest([one.model_dump(mode="json") for one in of])
