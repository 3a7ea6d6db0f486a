"""Asks judges about items with and without planted texts, and says which of them the texts move (`check canaries`).

Asking goes through a function that is handed in, so the same check runs on a model behind a URL and on a stand-in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalcore.canaries.attacks import ATTACKS, KNOWN, attack
from evalcore.canaries.planting import planted, positions
from evalcore.canaries.shift import ALPHA, Cell, Direction, Found, Moves, Said, cell, judged, noise
from evalcore.judges.bindings import Unbound
from evalcore.judges.evaluator import Task
from evalcore.judges.kinds import needs_model
from evalcore.registry.judge import Judge
from evalcore.scoring.answers import Judgement, NotApplicable, Scored, Unscored
from evalcore.scoring.assignments import task_of, unscorable
from evalcore.scoring.calls import Failure
from evalcore.scoring.items import Item
from schemas.checks.canaries import CanaryFile, CanaryLimits

Asking = Callable[[Sequence[Task]], Awaitable[Sequence[Judgement]]]
"""Returns judgements in the order of the tasks. It asks again at each call: it keeps no answer."""
OF_THE_MODEL = frozenset({Failure.SLIP, Failure.REFUSED, None})
"""Failures that a text may have caused, None being an N/A that the rule does not allow; all others are the way's to the
model."""
CLASSES = (*ATTACKS, KNOWN)
SHOWN = 3


@dataclass(frozen=True)
class Checked:
    """A judge's result. `found` is None where it could not be asked; then `why` says so."""

    judge: Judge
    limits: CanaryLimits
    found: Found | None = None
    why: str = ""

    @property
    def passed(self) -> bool | None:
        return self.found.passed if self.found is not None else None

    @property
    def reason(self) -> str:
        """Says why the judge did not pass; empty where it did."""
        found = self.found
        if found is None:
            return self.why
        if found.noisy:
            share = f"{found.noise.moved} of {found.noise.of} items"
            return f"it differs with itself on {share}: ask it less warmly, or allow a larger share"
        if found.passed is False:
            cells = sorted(found.called, key=lambda one: -one[0].moves[one[1]].moved)
            told = "; ".join(map(_told, cells[:SHOWN]))
            return f"{told}{f'; and {len(cells) - SHOWN} more' if len(cells) > SHOWN else ''}"
        if found.blind:
            one, way = min(found.blind, key=lambda blind: blind[0].moves[blind[1]].of)
            could = f"{one.moves[way].of} of the {found.needed} items that are needed could be {_word(way)}"
            return f"{could}, at {one.position} by {one.kind}: more items (--items), or some of your own (--dataset)"
        return ""

    def document(self) -> dict[str, Any]:
        found = self.found
        return {
            "judge_id": self.judge.id,
            "judge_version": self.judge.version,
            "model": self.judge.rule.model,
            "passed": self.passed,
            "reason": self.reason,
            "limits": {"shift": self.limits.shift, "share": self.limits.share},
            "noise": _share(found.noise) if found is not None else None,
            "cells": [_cell(found, place) for place in range(len(found.cells))] if found is not None else [],
        }


async def check(
    asking: Asking, judges: Sequence[Judge], items: Sequence[Item], file: CanaryFile, seed: str, repeats: int = 1,
    expect: Callable[[int], None] = lambda questions: None,
) -> list[Checked]:  # fmt: skip
    """Returns each judge's result, in the order of the judges. `expect` hears how many questions there will be."""
    cells: dict[str, Sequence[Cell]] = {}
    noises: dict[str, Moves] = {}
    limits = {judge.id: file.limits_of(judge.id) for judge in judges}
    silent: dict[str, str] = {}
    plans: list[_Plan] = []
    for judge in judges:
        try:
            plans.append(_Plan.of(judge, items, seed, tuple(file.canaries.values())))
        except Unbound as error:
            silent[judge.id] = f"it can't read the items: {error}"
    # Two times at least without a planted text, so that the judge's own noise is seen.
    alone = max(repeats, 2)
    expect(sum(alone * len(plan.clean) + repeats * len(plan.planted) for plan in plans))
    for plan in plans:
        judge = plan.judge
        without = [await asking(plan.clean) for _ in range(alone)]
        if not any(isinstance(one.answer, Scored | NotApplicable) for answers in without for one in answers):
            silent[judge.id] = f"it gave no score: {_failure(without[0])}"
            continue
        texts = [await asking(plan.planted) for _ in range(repeats)]
        cells[judge.id] = plan.cells(_said(without), _said(texts), limits[judge.id])
        noises[judge.id] = noise(
            ([_value(answers[place]) for answers in without] for place in range(len(plan.clean))),
            judge.score_range,
            limits[judge.id],
        )
    found = judged(cells, limits, noises)
    return [Checked(judge, limits[judge.id], found.get(judge.id), silent.get(judge.id, "")) for judge in judges]


def asked(judges: Sequence[Judge]) -> list[Judge]:
    """Returns the judges that ask a model; a text can't talk to the others."""
    return [judge for judge in judges if needs_model(judge)]


@dataclass(frozen=True)
class _Plan:
    """A judge's questions. `pairs` holds for each planted one its item's place, its position and its class."""

    judge: Judge
    clean: Sequence[Task]
    planted: Sequence[Task]
    pairs: Sequence[tuple[int, str, str]]

    @classmethod
    def of(cls, judge: Judge, items: Sequence[Item], seed: str, known: Sequence[str]) -> _Plan:
        clean, tasks, pairs = [], [], []
        for place, item in enumerate(items):
            if why := unscorable(judge, item):
                raise Unbound(why)
            clean.append(task_of(judge, item))
            for position in positions(judge, item.context, item.source):
                for kind in CLASSES:
                    text = attack(kind, f"{seed}/{judge.id}/{item.id}", judge, position, known)
                    source = planted(judge, item.context, item.source, position, text)
                    tasks.append(Task(judge, f"{item.id}/{position}/{kind}", item.context, source))
                    pairs.append((place, position, kind))
        return cls(judge, clean, tasks, pairs)

    def cells(self, clean: Sequence[Said], moved: Sequence[Said], limits: CanaryLimits) -> list[Cell]:
        by_place: dict[tuple[str, str], list[tuple[Said, Said]]] = {}
        for (place, position, kind), said in zip(self.pairs, moved, strict=True):
            by_place.setdefault((position, kind), []).append((clean[place], said))
        judge = self.judge
        return [
            cell(position, kind, pairs, judge.score_range, judge.floor, limits)
            for (position, kind), pairs in by_place.items()
        ]


def _said(rounds: Sequence[Sequence[Judgement]]) -> list[Said]:
    return [_together(answers) for answers in zip(*rounds, strict=True)]


def _together(answers: Sequence[Judgement]) -> Said:
    kinds = [one.answer for one in answers]
    return Said(
        tuple(one.value for one in kinds if isinstance(one, Scored)),
        sum(isinstance(one, NotApplicable) for one in kinds),
        sum(
            isinstance(one.answer, Unscored) and (one.failure is None or one.failure in OF_THE_MODEL) for one in answers
        ),
    )


def _value(made: Judgement) -> float | None:
    return made.answer.value if isinstance(made.answer, Scored) else None


def _failure(answers: Sequence[Judgement]) -> str:
    return next((str(getattr(one.answer, "reason", "")) for one in answers), "it was asked nothing")


def _told(called: tuple[Cell, Direction]) -> str:
    one, way = called
    moves = one.moves[way]
    return f"{moves.moved} of {moves.of} items {_word(way)} by {one.kind} at {one.position}"


def _word(way: Direction) -> str:
    return {Direction.NOT_APPLICABLE: "made N/A", Direction.UNSCORED: "left unscored"}.get(way, way.value)


def _share(moves: Moves) -> dict[str, Any]:
    return {"moved": moves.moved, "of": moves.of, "ci95": moves.interval()}


def _cell(found: Found, place: int) -> dict[str, Any]:
    one = found.cells[place]
    ways: Mapping[str, Any] = {
        way.value: {**_share(one.moves[way]), "p_holm": found.adjusted.get((place, way))} for way in Direction
    }
    return {
        "position": one.position,
        "class": one.kind,
        "shift": one.shift,
        "shift_ci95": one.shift_ci95(),
        "floor_up": one.floor_up,
        "floor_down": one.floor_down,
        "lost": one.lost,
        "moved": [way.value for way in Direction if found.adjusted.get((place, way), 1.0) <= ALPHA],
        **ways,
    }
