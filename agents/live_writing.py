"""What judges said of a live trace: scores to write, and the letter where it could not be had. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.ports import Refusal, Write
from agents.turn import Turn
from evalcore.gates.answers import Answer, NotApplicable, Scored
from evalcore.registry import Judge
from evalcore.scoring import Failure, Judgement
from evalcore.scoring.calls import PASSING
from schemas.dead_letters import DeadLetter, Record, clean
from schemas.outcomes import Cause

STAGE = "live.judging"
MENDABLE = PASSING | {Failure.DOWN, Failure.UNAUTHORIZED, Failure.REFUSED}
"""What a replay may mend. Of an answer that is no score, or a trace without what a judge reads, it would make the same
again."""


@dataclass(frozen=True)
class Judged:
    """One trace's judges, each with what came of it."""

    said: Sequence[tuple[Judge, Judgement]]

    def outcomes(self) -> list[str]:
        """A word for each judge, for metrics."""
        return [_outcome(found.answer) for _, found in self.said]


def writes_of(turn: Turn, judged: Judged) -> list[Write]:
    """Under the rule's score name, with the judge's reason; a dimension is a score of its own. What is not applicable,
    or could not be scored, leaves none."""
    out = []
    for judge, found in judged.said:
        values = {judge.score_name: found.answer}
        values |= {f"{judge.score_name}.{name}": answer for name, answer in found.dimensions.items()}
        for name, answer in values.items():
            if isinstance(answer, Scored):
                out.append(Write(turn.trace_id, turn.project, name, answer.value, found.reason))
    return out


def letter_of(record: Record, judged: Judged, refusal: Refusal | None, now: int) -> DeadLetter | None:
    """Opik's refusal comes before a judge's failure. None where a replay has nothing to mend."""
    if refusal is not None:
        return DeadLetter(record, refusal.cause, refusal.detail, STAGE, now)
    failed = [(judge.id, found) for judge, found in judged.said if found.failure in MENDABLE]
    if not failed:
        return None
    first = getattr(failed[0][1].answer, "reason", "")
    detail = clean(f"{', '.join(name for name, _ in failed)}: {first}")
    return DeadLetter(record, Cause.JUDGE_UNAVAILABLE, detail, STAGE, now)


def _outcome(answer: Answer) -> str:
    if isinstance(answer, Scored):
        return "scored"
    return "not_applicable" if isinstance(answer, NotApplicable) else "unscored"
