"""Has a suite's checks and judges score what the candidate generates, each answer as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from evalcore.gates.golden import CandidateAnswer, Evidenced, with_output
from evalcore.judges.kinds import needs_model
from evalcore.judges.score_parsing import NOT_APPLICABLE
from evalcore.registry.judge import Judge
from evalcore.scoring.answers import Answer, NotApplicable, Scored, Unscored
from evalcore.scoring.assignments import arrived, assign, score_assignments
from evalcore.scoring.calls import CircuitBreaker, Failure, Spend
from evalcore.scoring.items import Failed, Item
from evalcore.scoring.runner import Scorer
from evalcore.suite.checks import AnswerCheck, Checked, Total
from rampgate.suite.generation import Generated, Left
from rampgate.suite.suite_files import SuiteCase

Numbered = tuple[SuiteCase, int]
"""A case, and the number of a sample of it."""
Place = tuple[str, int]
"""A case's id, and the number of a sample of it."""
Answering = Callable[[], Coroutine[Any, Any, Generated]]
Asking = Callable[[Sequence[Numbered]], Coroutine[Any, Any, Sequence[Answering]]]
"""Gets ready what gives the answers to some samples."""
PORTION: Final = 128
"""Samples."""
PORTIONS: Final = 3
"""Beside one another: while the last answers of one are judged, the next one's are already asked for."""
VERSION: Final = 16
"""Characters of a version that results tell."""


@dataclass(slots=True)
class ScoredSample:
    """A candidate's answer to a case with its scores. None could not be scored, "N/A" does not apply. `left` are the
    scores that were not asked for, because the run had spent what it may. `pairwise`: by judge, how the answer stands
    beside the baseline's. Judges answered `judged` times, `judged_kept` of them without a call; those of `cut` were
    shown a part of the answer alone."""

    case: SuiteCase
    generated: Generated
    scores: dict[str, float | str | None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    pairwise: dict[str, str] = field(default_factory=dict)
    judged: int = 0
    judged_kept: int = 0
    cut: list[str] = field(default_factory=list)

    @property
    def error(self) -> str | None:
        """Why the candidate gave no output, where it was asked."""
        answer = self.generated.answer
        return answer.why if isinstance(answer, Failed) and not isinstance(answer, Left) else None


@dataclass(frozen=True)
class Rubric:
    """What looks at a suite's outputs, beside a case's own checks and judges. `schema` is the manifest's of a dataset's
    items. `evidence`: what answers say of workflows on the cluster is ours, since our own command gives them."""

    judges: Sequence[Judge]
    checks: Mapping[str, AnswerCheck]
    schema: Mapping[str, Any]
    evidence: bool = False

    def item(self, row: Mapping[str, Any], answer: CandidateAnswer) -> Item:
        """Returns a case's row with the candidate's answer, as checks and judges read it."""
        if self.evidence and not isinstance(answer, Failed):
            answer = Evidenced(answer)
        return with_output(row, answer, self.schema)

    def versions_of(self, case: SuiteCase) -> dict[str, str]:
        """Returns the version of what gives each of the case's scores: of the judge, or of the check."""
        return _versions({**self.checks, **case.checks, **case.totals}, [*self.judges, *case.judges])

    async def score(
        self,
        wanted: Sequence[Numbered],
        asking: Asking,
        scorer: Scorer | None,
        spend: Spend,
    ) -> list[ScoredSample]:
        """Returns the samples in the order asked for. Each is judged as soon as it is generated.

        So many samples as a portion has are under way together, and some portions beside one another, so that what
        judging takes of memory does not grow with the suite. With a limit of spending portions come one by one: which
        samples are left over must not depend on what was answered first.
        """
        breaker = scorer.breaker() if scorer is not None else None
        more = scorer.at_once // PORTION if scorer is not None else 0
        room = asyncio.Semaphore(1 if spend.limited else PORTIONS + more)

        async def portion(some: Sequence[Numbered]) -> list[ScoredSample]:
            async with room:
                return await self._score(some, await asking(some), scorer, spend, breaker)

        async with asyncio.TaskGroup() as group:
            made = [
                group.create_task(portion(wanted[start : start + PORTION])) for start in range(0, len(wanted), PORTION)
            ]
        return [sample for task in made for sample in task.result()]

    async def _score(
        self,
        wanted: Sequence[Numbered],
        asked: Sequence[Answering],
        scorer: Scorer | None,
        spend: Spend,
        breaker: CircuitBreaker | None,
    ) -> list[ScoredSample]:
        there: dict[str, ScoredSample] = {}

        async def later(name: str, case: SuiteCase, generate: Answering) -> Item:
            generated = await generate()
            there[name] = ScoredSample(case, generated)
            return replace(self.item(case.row, generated.answer), id=name)

        names = [f"{case.id}#{sample}" for case, sample in wanted]
        items = [
            Item(name, "offline", case.row, later=partial(later, name, case, generate))
            for name, (case, _), generate in zip(names, wanted, asked, strict=True)
        ]
        async with arrived(scorer, "suite", self.judges, items, spend, breaker) as (found, scoring):
            answered = [item for item in found if not item.missing]
            for item in answered:
                self._check(there[item.id], item)
            pairs = assign(self.judges, answered)
            pairs += [pair for item in answered for pair in assign(_own_judges(there[item.id]), [item])]
            judgements = await score_assignments(scoring, pairs)
        for sample in there.values():
            if isinstance(sample.generated.answer, Left):
                sample.left = [*self.versions_of(sample.case)]
                sample.scores |= dict.fromkeys(sample.left)
        for (judge, item), made in zip(pairs, judgements, strict=True):
            sample = there[item.id]
            if made.failure is Failure.OVER_LIMIT:
                sample.left.append(judge.id)
            if made.failure is None and needs_model(judge):
                sample.judged += 1
                sample.judged_kept += made.cached
            if not isinstance(made.answer, Unscored) and made.answer.cut:
                sample.cut.append(judge.id)
            _note(sample, judge.id, made.answer, made.reason)
            for dimension, answer in made.dimensions.items():
                _note(sample, f"{judge.id}.{dimension}", answer, "")
        for item in answered:
            self._total(there[item.id])
        return [there[name] for name in names]

    def _check(self, sample: ScoredSample, item: Item) -> None:
        for name, checker in {**self.checks, **sample.case.checks}.items():
            _enter(sample, name, checker.check(item.source))

    def _total(self, sample: ScoredSample) -> None:
        for name, one in sample.case.totals.items():
            _enter(sample, name, one.total(sample.scores, sample.reasons))


def _enter(sample: ScoredSample, name: str, found: Checked) -> None:
    sample.scores[name] = found.score
    if found.reason:
        sample.reasons[name] = found.reason


def _versions(checks: Mapping[str, AnswerCheck | Total], judges: Sequence[Judge]) -> dict[str, str]:
    found = {
        name: one.version[:VERSION]
        for one in judges
        for name in (one.id, *(f"{one.id}.{part}" for part in one.dimensions))
    }
    return {name: checker.version[:VERSION] for name, checker in checks.items()} | found


def _own_judges(sample: ScoredSample) -> list[Judge]:
    """The judges of its case alone. Where a check of the case fails, those of safety; the others do not apply."""
    case = sample.case
    failed = next((name for name in case.checks if sample.scores[name] != 1.0), None)
    if failed is None:
        return [*case.judges]
    for name in _versions({}, [one for one in case.judges if not one.safety]):
        sample.scores[name], sample.reasons[name] = NOT_APPLICABLE, f"not asked: the check {failed} does not hold"
    return [one for one in case.judges if one.safety]


def _note(sample: ScoredSample, name: str, answer: Answer, reason: str) -> None:
    if isinstance(answer, Scored):
        sample.scores[name] = answer.value
    elif isinstance(answer, NotApplicable):
        sample.scores[name] = NOT_APPLICABLE
    else:
        sample.scores[name], reason = None, answer.reason
    if reason:
        sample.reasons[name] = reason
