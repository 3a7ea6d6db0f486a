"""Puts what people said in a vertical's reference set beside a judge's scores (PF-9 FR-10). Pure.

An item of the set is a judge and a turn, `judge/turn`: people score by the judge's rubric, on its scale. A turn that
was rated in several rounds counts as the last of them has it. What other judges' items are does not change a judge's
version of the set, so a new entry about another one is no new chance to call this one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalcore.inversion.check import Pairs
from schemas.judges import judge_id

ENOUGH = 0.9
"""Share of the turns of a judge's last round that need a score of it, before anything is decided: who leaves out the
others could choose what is found."""


@dataclass
class _Turn:
    round: str
    category: str
    ratings: list[float] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The mean of what people said."""
        return math.fsum(self.ratings) / len(self.ratings)


@dataclass(frozen=True)
class People:
    """What people said of one judge's turns in one vertical."""

    judge: str
    vertical: str
    turns: Mapping[str, _Turn]
    last_round: str

    @property
    def version(self) -> str:
        """The version of the set for this judge: the same turns with the same scores of people."""
        told = sorted((name, turn.score) for name, turn in self.turns.items())
        return hashlib.sha256(json.dumps([self.vertical, self.judge, told]).encode()).hexdigest()[:16]

    def missing(self, scores: Mapping[str, float]) -> int:
        """How many turns of the last round have no score."""
        return sum(turn.round == self.last_round and name not in scores for name, turn in self.turns.items())

    def enough(self, scores: Mapping[str, float]) -> bool:
        """Tells whether so many turns of the last round have a score that these can decide."""
        last = sum(turn.round == self.last_round for turn in self.turns.values())
        return last - self.missing(scores) >= ENOUGH * last

    def beside(self, scores: Mapping[str, float], version: str, weights: Mapping[str, Mapping[str, float]]) -> Pairs:
        """The pairs of the turns that have a score. `weights` are the draw's by round and turn; rounds count as many
        turns as they have, and one whose draw is not known has no weights."""
        import numpy as np

        found = [(name, turn) for name, turn in self.turns.items() if name in scores]
        known = _evened([(turn.round, weights.get(turn.round, {}).get(name)) for name, turn in found])
        values = list(dict.fromkeys(["", *(turn.category for _, turn in found)]))
        return Pairs(
            [name for name, _ in found],
            np.array([scores[name] for name, _ in found], dtype=np.float64),
            np.array([turn.score for _, turn in found], dtype=np.float64),
            {"category": (values, np.array([values.index(turn.category) for _, turn in found], dtype=np.int64))},
            version,
            np.array(known) if len(set(known)) > 1 else None,
            people=self.version,
        )


def people(entries: Iterable[Mapping[str, Any]], vertical: str) -> tuple[dict[str, People], int]:
    """Returns what people said by judge, and how many ratings are of no judge, or labels: no one is compared with
    them. `entries` are a reference set's, in its order."""
    found: dict[str, dict[str, _Turn]] = {}
    rounds: dict[str, str] = {}
    others = 0
    for entry in entries:
        name, of_a_judge, item = str(entry["item_id"]).partition("/")
        score, judge = entry["score"], judge_id(name)
        if not of_a_judge or not item or isinstance(score, (str, bool)):
            others += 1
            continue
        turns, of_round = found.setdefault(judge, {}), str(entry["round"])
        rounds[judge] = of_round
        turn = turns.get(item)
        if turn is None or turn.round != of_round:
            turn = turns[item] = _Turn(of_round, str(entry["category"]))
        turn.ratings.append(float(score))
    return {judge: People(judge, vertical, turns, rounds[judge]) for judge, turns in found.items()}, others


def _evened(drawn: list[tuple[str, float | None]]) -> list[float]:
    """Weights with a mean of 1 in each round: weights of two draws are on scales of their own."""
    by_round: dict[str, list[float | None]] = {}
    for name, weight in drawn:
        by_round.setdefault(name, []).append(weight)
    means = {name: _mean(weights) for name, weights in by_round.items()}
    return [weight / mean if weight is not None and (mean := means[name]) else 1.0 for name, weight in drawn]


def _mean(weights: list[float | None]) -> float | None:
    """None where a weight is not known: the others alone are not those of the draw."""
    known = [weight for weight in weights if weight is not None]
    return math.fsum(known) / len(known) if len(known) == len(weights) else None
