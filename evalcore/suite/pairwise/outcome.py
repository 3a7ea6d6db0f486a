"""Says what a judge's answers about a pair come to, in both orders, and counts pairs. Pure.

A preference counts only if it holds in both orders: a judge that prefers what it reads first prefers nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from evalcore.scoring.answers import Judgement, Scored
from evalcore.scoring.calls import Failure
from evalcore.scoring.items import Item
from evalcore.suite.pairwise.question import FIRST, NEITHER, SECOND, PairJudge, alike


class Preferred(StrEnum):
    """How the candidate's answer stands beside the baseline's."""

    WIN = "win"
    TIE = "tie"
    LOSS = "loss"


CANDIDATE_FIRST = {FIRST: Preferred.WIN, SECOND: Preferred.LOSS, NEITHER: Preferred.TIE}
BASELINE_FIRST = {FIRST: Preferred.LOSS, SECOND: Preferred.WIN, NEITHER: Preferred.TIE}


@dataclass(frozen=True)
class Outcome:
    """One pair. `preferred` is None where no one could say. `orders` are what the judge said in both orders, where it
    was asked and answered; `left`: it was not asked, because the run had spent what it may."""

    preferred: Preferred | None = None
    orders: tuple[Preferred, Preferred] | None = None
    left: bool = False


def without_asking(judge: PairJudge, candidate: Item, baseline: Item) -> Outcome | None:
    """Returns what needs no judge: an agent that failed loses to one that answered, and equal answers are a tie. None
    where the judge has to say."""
    if candidate.missing or baseline.missing:
        if candidate.missing and baseline.missing:
            return Outcome(Preferred.TIE)
        return Outcome(Preferred.LOSS if candidate.missing else Preferred.WIN)
    return Outcome(Preferred.TIE) if alike(judge, candidate, baseline) else None


def outcome(candidate_first: Judgement, baseline_first: Judgement) -> Outcome:
    """Returns what both orders come to: a win or a loss where they agree on it, else a tie; nothing where one has no
    answer."""
    said = (_said(candidate_first, CANDIDATE_FIRST), _said(baseline_first, BASELINE_FIRST))
    if said[0] is None or said[1] is None:
        failures = (candidate_first.failure, baseline_first.failure)
        return Outcome(left=Failure.OVER_LIMIT in failures)
    return Outcome(said[0] if said[0] is said[1] else Preferred.TIE, (said[0], said[1]))


def _said(judgement: Judgement, meaning: dict[float, Preferred]) -> Preferred | None:
    return meaning.get(judgement.answer.value) if isinstance(judgement.answer, Scored) else None


@dataclass(frozen=True)
class Tally:
    """How many pairs came to what. `disagreed` of those `answered` got another answer in the other order."""

    wins: int = 0
    ties: int = 0
    losses: int = 0
    unanswered: int = 0
    left: int = 0
    answered: int = 0
    disagreed: int = 0

    @property
    def position_bias(self) -> float | None:
        """The share of the pairs answered whose orders disagree; None without any."""
        return self.disagreed / self.answered if self.answered else None


def tally(found: Iterable[Outcome]) -> Tally:
    """Counts the pairs of a judge."""
    pairs = list(found)
    many = [one.preferred for one in pairs]
    orders = [one.orders for one in pairs if one.orders is not None]
    return Tally(
        wins=many.count(Preferred.WIN),
        ties=many.count(Preferred.TIE),
        losses=many.count(Preferred.LOSS),
        unanswered=sum(one.preferred is None and not one.left for one in pairs),
        left=sum(one.left for one in pairs),
        answered=len(orders),
        disagreed=sum(first is not second for first, second in orders),
    )
