"""Draws the round's turns, and finds their texts again: the round's folder keeps none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evalcore.calibration.draw import TooFewTurns, Turn, disagree, draw
from evalcore.registry.judge import Judge
from rampgate.calibration.steps.given import DRAWN, Given, Outcome, drawn_turns, line
from rampgate.calibration.turns import ScoredTurn, read_turns
from rampgate.checks.agreement import read_thresholds
from rampgate.ci_gate.inputs import BadFile
from rampgate.console import Failure
from schemas.calibration_cycle import Cycle, DrawnCategory


def draw_turns(given: Given, cycle: Cycle) -> Outcome:
    """Draws turns of the categories that the vertical's file of agreement names."""
    if given.turns is None:
        raise Failure("--turns FILE: the turns to draw from, as `rampgate export` writes them")
    turns = _turns(given, given.turns)
    categories = [*read_thresholds(given.thresholds_file).categories]
    known = [turn for turn in turns.values() if turn.scores]
    seed = f"{cycle.vertical}/{cycle.round}"
    try:
        drawn = draw([_candidate(turn, given.judges) for turn in known], categories, cycle.size, seed)
    except TooFewTurns as error:
        raise Failure(f"{given.turns}: {error}") from error
    text = ""
    for one in drawn:
        turn = turns[one.turn.item]
        text += line(
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


def texts(given: Given) -> dict[str, ScoredTurn]:
    """The drawn turns with their texts, from --turns: those that were drawn, word for word. Raises Failure."""
    if given.turns is None:
        raise Failure("--turns FILE: the texts of the drawn turns are needed; the round keeps none")
    turns = _turns(given, given.turns)
    for item, one in drawn_turns(given).items():
        if item not in turns or turns[item].hash != one["item_hash"]:
            why = "is another one now" if item in turns else "is missing"
            raise Failure(
                f"{given.turns}: response_id: {item[:80]!r} {why}: give the file that the round was drawn from"
            )
    return turns


def _turns(given: Given, path: Path) -> dict[str, ScoredTurn]:
    try:
        return read_turns(path, given.vertical, given.registry)
    except BadFile as error:
        raise Failure(str(error)) from error


def _candidate(turn: ScoredTurn, judges: Mapping[str, Judge]) -> Turn:
    ranges = {name: judges[name].score_range for name in turn.scores}
    shares = [(score - ranges[name][0]) / (ranges[name][1] - ranges[name][0]) for name, score in turn.scores.items()]
    return Turn(turn.item, turn.category, disagree(turn.thumbs, shares))
