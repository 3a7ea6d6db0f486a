"""Collects what all of a gate's reports tell: a row for each judge, and how its scores spread over its scale. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from evalcore.gates.limits import figure
from evalcore.registry.registry import Judge
from evalcore.scoring.answers import NotApplicable, Scored
from rampgate.ci_gate.run import GateRun
from schemas.counting import counted
from schemas.dead_letters import clean
from schemas.judges import ScoreType
from schemas.verdicts import Code, JudgeScore, Reason, VerdictLevel

LONGEST = 2_000
_ORDER = tuple(VerdictLevel)
OF_SUITE = {
    Code.SUITE_FAILED: VerdictLevel.FAIL, Code.SUITE_UNUSABLE: VerdictLevel.FAIL, Code.SUITE_WARNED: VerdictLevel.WARN,
}  # fmt: skip
FLOAT_BINS = 20
WIDEST = 40
"""An INTEGER scale of fewer values than this has a bin for each."""
BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Row:
    """One judge in a report. `word` is the verdict that the judge alone would give, never worse than the gate's own: a
    judge that could score nothing need not block where another one warns anyway. `why` are the reasons that name it."""

    judge: str
    score: JudgeScore
    word: VerdictLevel
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
    def again(self) -> str:
        """How many failing answers were asked for again, how many items of those do not count as failing, and how many
        count as a person says."""
        score = self.score
        asked = f"{score.asked_again}, {score.overturned} overturned" if score.asked_again else ""
        person = f"{score.adjudicated} adjudicated" if score.adjudicated else ""
        return "; ".join(filter(None, (asked, person)))

    @property
    def finds(self) -> str:
        """The smallest fall that this sample finds with 80 % power; empty where no noise was measured."""
        return "" if self.score.detectable_drop is None else f"{self.score.detectable_drop:.3g}"

    @property
    def clean_passes(self) -> str:
        """How often a candidate without a fault passes this judge; empty where no noise was measured."""
        chance = self.score.clean_pass_probability
        return "" if chance is None else f"{chance:.2%}"

    @property
    def baseline(self) -> str:
        score = self.score
        if score.baseline is None:
            return ""
        unsure = f", {score.compared}: {score.items_needed} items would" if score.items_needed is not None else ""
        return f"{figure(score.baseline)} ({score.baseline_runs}){unsure}"

    @property
    def standing(self) -> str:
        """What the judge's limits rest on, and the day by which it is calibrated again."""
        return f"{self.score.standing or 'unknown'} {self.score.recalibration_due or ''}".strip()


def rows(outcome: GateRun) -> list[Row]:
    """Worst first, then by name."""
    verdict = outcome.verdict
    found = []
    for judge, score in verdict.per_judge_scores.items():
        why = tuple(reason for reason in verdict.reasons if _names(reason, judge))
        found.append(Row(judge, score, min(score.verdict, verdict.verdict, key=_ORDER.index), why))
    return sorted(found, key=lambda row: (-_ORDER.index(row.word), row.judge))


def of_the_whole(outcome: GateRun) -> list[Reason]:
    """The reasons that name no judge and no suite."""
    judges = outcome.verdict.per_judge_scores
    others = [reason for reason in outcome.verdict.reasons if reason.code not in OF_SUITE]
    return [reason for reason in others if not any(_names(reason, judge) for judge in judges)]


def of_the_suite(outcome: GateRun) -> tuple[VerdictLevel, list[Reason]]:
    """What the suite's run alone would give, and its reasons."""
    why = [reason for reason in outcome.verdict.reasons if reason.code in OF_SUITE]
    return max((OF_SUITE[reason.code] for reason in why), default=VerdictLevel.PASS, key=_ORDER.index), why


def said(reason: Reason) -> str:
    """The reason's code and message, without control characters: a message may quote text from outside."""
    return f"{reason.code}: {clean(reason.message, LONGEST)}"


def headline(outcome: GateRun) -> str:
    """The verdict, and what decided it: a judge that only warns is not named where something else blocks."""
    verdict = outcome.verdict
    word, _ = of_the_suite(outcome)
    if verdict.verdict is VerdictLevel.PASS:
        return f"{verdict.milestone}: {verdict.verdict}"
    whole = [reason.code for reason in of_the_whole(outcome) if reason.code is not Code.GATE_SKIPPED]
    names = [*dict.fromkeys(whole), *(row.judge for row in rows(outcome) if row.word is verdict.verdict)]
    names += ["its suite"] if word is verdict.verdict else []
    failing = f": {', '.join(names)}" if names else ""
    return f"{verdict.milestone}: {verdict.verdict}{failing}"


def facts(outcome: GateRun) -> str:
    golden = outcome.golden
    if outcome.sample is not None:
        asked = f"{counted(len(outcome.scored.assignments), 'score')} asked for, {outcome.duration_seconds:.1f} s"
        without = f"; its filter fits no trace: {', '.join(outcome.without)}" if outcome.without else ""
        return f"{outcome.sample.size} traces of {clean(outcome.source, 300)}, {asked}{without}"
    if golden is None:
        return f"no item was judged; {outcome.duration_seconds:.1f} s"
    empty = clean(outcome.wanted.unrecorded, 300)
    return (
        f"{counted(len(golden.items), 'item')} of {clean(golden.source, 300)}, "
        f"{outcome.answered} answered by the candidate, "
        f"{counted(len(outcome.scored.assignments), 'score')} asked for, {outcome.duration_seconds:.1f} s"
        f"{f'; {empty} has no run of main, so nothing can have regressed: record one there' if empty else ''}"
    )


def _names(reason: Reason, judge: str) -> bool:
    """Tells whether a reason is about the judge: such a message begins with its name, or with its overdue seed."""
    return reason.message.startswith((f"{judge} ", f"the provisional seed of {judge} "))


@dataclass(frozen=True)
class Low:
    """One of a judge's lowest scores; `reason` are the judge's words."""

    item: str
    score: float
    reason: str


@dataclass(frozen=True)
class Distribution:
    """A judge's scores in bins. There is one edge more than counts; a whole value is in the middle of its bin."""

    judge: Judge
    edges: tuple[float, ...]
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    unscored: int
    not_applicable: int
    lowest: tuple[Low, ...]

    @property
    def drawn(self) -> str:
        """One block character for each bin, higher for more scores; a dot for an empty bin."""
        most = max(self.counts, default=0)
        return "".join(BLOCKS[(count * 8 - 1) // most] if count else "·" for count in self.counts) if most else ""


def distributions(outcome: GateRun, lowest: int = 5) -> dict[str, Distribution]:
    """The distribution of each judge by its id, with its `lowest` lowest scores."""
    values: dict[str, list[Low]] = {}
    missing: dict[str, list[int]] = {}
    judges: dict[str, Judge] = {}
    for (judge, item), found in zip(outcome.scored.assignments, outcome.scored.judgements, strict=True):
        judges[judge.id] = judge
        values.setdefault(judge.id, [])
        counted = missing.setdefault(judge.id, [0, 0])
        if isinstance(found.answer, Scored):
            values[judge.id].append(Low(item.id, found.answer.value, found.reason))
        else:
            counted[isinstance(found.answer, NotApplicable)] += 1
    return {name: _spread(judge, values[name], missing[name], lowest) for name, judge in judges.items()}


def _spread(judge: Judge, found: Sequence[Low], missing: Sequence[int], lowest: int) -> Distribution:
    low, high = judge.score_range
    edges: tuple[float, ...]
    labels: tuple[str, ...]
    if judge.score_type is ScoreType.BOOLEAN:
        edges, labels = (-0.5, 0.5, 1.5), ("false", "true")
    elif judge.score_type is ScoreType.INTEGER and high - low < WIDEST:
        whole = range(round(low), round(high) + 1)
        edges, labels = (*(value - 0.5 for value in whole), high + 0.5), tuple(map(str, whole))
    else:
        edges = tuple(low + (high - low) * step / FLOAT_BINS for step in range(FLOAT_BINS + 1))
        labels = tuple(f"{from_:g} to {to:g}" for from_, to in pairwise(edges))
    counts = [0] * len(labels)
    for one in found:
        share = (one.score - edges[0]) / (edges[-1] - edges[0])
        counts[min(max(int(share * len(counts) + 1e-9), 0), len(counts) - 1)] += 1
    worst = tuple(sorted(found, key=lambda one: (one.score, one.item))[:lowest])
    unscored, not_applicable = missing
    return Distribution(judge, edges, labels, tuple(counts), unscored, not_applicable, worst)
