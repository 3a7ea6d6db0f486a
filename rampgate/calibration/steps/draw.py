"""Draws the round's turns, and finds their texts again: the round's folder keeps none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalcore.calibration.draw import Drawn, TooFewTurns, Turn, disagree, draw
from evalcore.registry.judge import Judge
from rampgate.calibration.folder import DRAWN, DrawnTurn, line
from rampgate.calibration.steps.given import Given, Outcome, drawn_turns
from rampgate.calibration.turns import ScoredTurn, read_turns
from rampgate.checks.agreement import read_thresholds
from rampgate.console import Failure
from schemas.calibration_cycle import Cycle, DrawnCategory, Window


def draw_turns(given: Given, cycle: Cycle) -> Outcome:
    """Draws turns of the categories that the vertical's file of agreement names."""
    if cycle.window is not None:
        return _from_opik(given, cycle, cycle.window)
    if given.turns is None:
        raise Failure("--turns FILE: the round began with turns of a file")
    turns = read_turns(given.turns, given.vertical, given.registry)
    drawn = _drawn(given, cycle, turns.values(), str(given.turns))
    return Outcome(**_found(given, turns, drawn, turns))


def texts(given: Given, cycle: Cycle) -> dict[str, ScoredTurn]:
    """The drawn turns with their texts, from --turns, or else from Opik: those that were drawn, word for word. Raises
    Failure."""
    drawn = drawn_turns(given)
    if given.turns is not None:
        turns = read_turns(given.turns, given.vertical, given.registry)
        where = f"{given.turns}: response_id"
        remedy = "give the file that the round was drawn from"
    elif cycle.window is not None:
        turns = given.opik.whole({item: one.trace_id for item, one in drawn.items()}, _query(cycle))
        where, remedy = f"{cycle.window.project}: response_id", "begin another round, with another --round"
    else:
        raise Failure("--turns FILE: the texts of the drawn turns are needed; the round keeps none")
    for item, one in drawn.items():
        if item not in turns or turns[item].hash != one.item_hash:
            why = "is another one now" if item in turns else "is missing"
            raise Failure(f"{where}: {item[:80]!r} {why}: {remedy}")
    return turns


def _from_opik(given: Given, cycle: Cycle, window: Window) -> Outcome:
    """Reads texts of drawn turns alone. Where one of them has none, the draw goes on without it."""
    opik = given.opik
    read = opik.read(window)
    pool, whole = dict(read.turns), dict[str, ScoredTurn]()
    while True:
        drawn = _drawn(given, cycle, pool.values(), window.project)
        new = {one.turn.item: pool[one.turn.item].trace for one in drawn if one.turn.item not in whole}
        found = opik.whole(new, _query(cycle))
        whole |= found
        lacking = [item for item in new if item not in found or None in (found[item].question, found[item].answer)]
        if not lacking:
            break
        read.left_out["no text"] += len(lacking)
        pool = {item: turn for item, turn in pool.items() if item not in lacking}
    outcome = _found(given, pool, drawn, whole)
    left = "".join(f"; {many} left out: {why}" for why, many in sorted(read.left_out.items()))
    told = f"{outcome['told']} of {window.project}, {window.since:%F %R} to {window.until:%F %R}{left}"
    about = window.model_copy(update={"turns": len(read.turns), "sha256": read.sha256})
    return Outcome(told=told, files=outcome["files"], found={**outcome["found"], "window": about})


def _drawn(given: Given, cycle: Cycle, turns: Iterable[ScoredTurn], where: str) -> list[Drawn]:
    categories = [*read_thresholds(given.thresholds_file).categories]
    candidates = [_candidate(turn, given.judges) for turn in turns if turn.scores]
    try:
        return draw(candidates, categories, cycle.size, f"{cycle.vertical}/{cycle.round}")
    except TooFewTurns as error:
        raise Failure(f"{where}: {error}") from error


def _found(
    given: Given, turns: Mapping[str, ScoredTurn], drawn: Sequence[Drawn], whole: Mapping[str, ScoredTurn]
) -> dict[str, Any]:
    """What a draw leaves; `whole` has the drawn turns' texts."""
    text = ""
    for one in drawn:
        turn = turns[one.turn.item]
        scores = dict(sorted(turn.scores.items()))
        of_turn = (turn.item, turn.trace, turn.category, one.weight, one.turn.disagreeing, whole[turn.item].hash)
        text += line(DrawnTurn(*of_turn, scores))
    of = [_candidate(turn, given.judges) for turn in turns.values() if turn.scores]
    table = [
        DrawnCategory(
            category=name,
            turns=sum(turn.category == name for turn in of),
            drawn=sum(one.turn.category == name for one in drawn),
            disagreeing=sum(turn.category == name and turn.disagreeing for turn in of),
            disagreeing_drawn=sum(one.turn.category == name and one.turn.disagreeing for one in drawn),
        )
        for name in read_thresholds(given.thresholds_file).categories
    ]
    left = len(turns) - sum(one.turns for one in table)
    told = f"{len(drawn)} of {len(turns)} turns; {left} have no score, or a category without a threshold of agreement"
    return {"told": told, "files": {DRAWN: text}, "found": {"draw": table}}


def _query(cycle: Cycle) -> dict[str, Any]:
    """What the audit's record says was asked for."""
    return {"calibration": cycle.round, "ticket": cycle.ticket}


def _candidate(turn: ScoredTurn, judges: Mapping[str, Judge]) -> Turn:
    shares = [judges[name].share(score) for name, score in turn.scores.items()]
    return Turn(turn.item, turn.category, disagree(turn.thumbs, shares))
