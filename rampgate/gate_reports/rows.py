"""What all reports tell of a judge, once. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from evalcore.gates.limits import figure
from rampgate.gate_run import Outcome
from schemas.dead_letters import clean
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import Code, JudgeScore, Reason, Word

LONGEST = 2_000
_ORDER = tuple(Word)


@dataclass(frozen=True)
class Row:
    """`word` is what the judge alone makes of the gate, and never worse than what the gate came to: where another judge
    warns anyway, one that could score nothing need not block. `why` are the reasons that name it."""

    judge: str
    score: JudgeScore
    word: Word
    why: tuple[Reason, ...]

    @property
    def shown(self) -> str:
        return "none" if self.score.score is None else figure(self.score.score)

    @property
    def interval(self) -> str:
        if self.score.ci95 is None:
            return ""
        low, high = self.score.ci95
        return f"{low:.3g} to {high:.3g}"

    @property
    def baseline(self) -> str:
        score = self.score
        return "" if score.baseline is None else f"{figure(score.baseline)} ({score.baseline_runs})"


def rows(outcome: Outcome) -> list[Row]:
    """Worst first, then by name."""
    verdict = outcome.verdict
    found = []
    for judge, score in verdict.per_judge_scores.items():
        why = tuple(reason for reason in verdict.reasons if _names(reason, judge))
        alone = _word(score, why, verdict.milestone)
        found.append(Row(judge, score, min(alone, verdict.verdict, key=_ORDER.index), why))
    return sorted(found, key=lambda row: (-_ORDER.index(row.word), row.judge))


def of_the_whole(outcome: Outcome) -> list[Reason]:
    """Reasons that are no judge's own."""
    judges = outcome.verdict.per_judge_scores
    return [reason for reason in outcome.verdict.reasons if not any(_names(reason, judge) for judge in judges)]


def said(reason: Reason) -> str:
    """May quote what came from outside: nothing in it is a control character."""
    return f"{reason.code}: {clean(reason.message, LONGEST)}"


def headline(outcome: Outcome) -> str:
    verdict = outcome.verdict
    failing = f": {', '.join(verdict.failing_judges)}" if verdict.failing_judges else ""
    return f"{verdict.milestone}: {verdict.verdict}{failing}"


def facts(outcome: Outcome) -> str:
    golden, traced = outcome.golden, outcome.traced
    if traced is not None:
        asked = f"{len(outcome.ran.pairs)} scores asked for, {outcome.duration_seconds:.1f} s"
        return f"{len(traced.items)} traces of {clean(traced.source, 300)}, {asked}"
    if golden is None:
        return f"no item was judged; {outcome.duration_seconds:.1f} s"
    return (
        f"{len(golden.items)} items of {clean(golden.source, 300)}, {outcome.answered} answered by the candidate, "
        f"{len(outcome.ran.pairs)} scores asked for, {outcome.duration_seconds:.1f} s"
    )


def _names(reason: Reason, judge: str) -> bool:
    """The gate's messages about a judge begin with its name, or with what of it is late."""
    return reason.message.startswith((f"{judge} ", f"the provisional seed of {judge} "))


def _word(score: JudgeScore, why: tuple[Reason, ...], milestone: Milestone) -> Word:
    """The worst that its reasons come to. Some block whatever the judge's enforcement says; a late seed does from
    pre_ramp on (PF-9 AC-9)."""
    if score.passed:
        return Word.PASS
    always = {Code.FLOOR_BREACH, Code.JUDGE_SUSPENDED, Code.JUDGE_UNAVAILABLE}
    if milestone is not Milestone.PRE_MERGE:
        always.add(Code.PROVISIONAL_OVERDUE)
    own = {reason.code for reason in why}
    only_late = own == {Code.PROVISIONAL_OVERDUE}
    blocks = bool(own & always) or (score.enforcement is Enforcement.BLOCK and not only_late)
    return Word.FAIL if blocks else Word.WARN
