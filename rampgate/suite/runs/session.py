"""One run of a suite on its store: plans it, or has the candidate answer and the judges score."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agents.ports import Unavailable
from evalcore.gates.golden import CandidateAnswer
from evalcore.registry.judge import Judge
from evalcore.scoring.cache import LARGEST
from evalcore.scoring.calls import CallFailed, Spend
from evalcore.scoring.runner import Scorer
from evalcore.suite.pairwise.question import PairJudge
from rampgate.judging import scorer_of
from rampgate.progress import Progress, progress
from rampgate.settings import Settings
from rampgate.store.sealed import Kept, SealedStore
from rampgate.suite.candidates.configured import Asking, asking_candidate
from rampgate.suite.generation import (
    LARGEST_ANSWER,
    Generated,
    Generator,
    Known,
    Left,
    Tracing,
    Wanted,
    dollars_of,
    key_of,
    trace_of,
)
from rampgate.suite.result_files import read_run
from rampgate.suite.runs.answer_files import Head, given_answers
from rampgate.suite.runs.judged_again import JudgedAgain, judged_again
from rampgate.suite.runs.pairs import JudgePairs, pairs_judged, pairs_planned, stored_answers
from rampgate.suite.runs.plan import planned
from rampgate.suite.runs.stored import StoredRuns
from rampgate.suite.scoring import Numbered, Rubric, ScoredSample
from rampgate.suite.suite_files import Suite, SuiteCase
from rampgate.suite.tracing.taking import taking_spans

if TYPE_CHECKING:
    from rampgate.suite.tracing.receiver import SpanReceiver

WAITING_FOR_SPANS: Final = 256
"""Answers whose spans may be waited for at once."""


@dataclass(frozen=True)
class Session:
    """The suite's cases, or those of the smoke set, each as often as the suite says. Samples `after` that number are
    others than those of before, and judged by a call each. `comparing` are asked about pairs."""

    settings: Settings
    suite: Suite
    smoke: bool
    rubric: Rubric
    store: SealedStore
    after: int = 0
    comparing: Sequence[PairJudge] = ()

    async def plan(self, baseline: Path | None = None) -> dict[str, Any]:
        """What a run will ask and cost, also about pairs with the baseline. Asks nobody. Raises BadFile."""
        async with self._scorer() as scorer:
            known = await self._known(self._generator(_nobody))
            before = await StoredRuns(self.store).of(self.suite.file.suite)
            scores = self.store.kind("scores", LARGEST)
            more, coming = dict[str, Judge](), 0
            if baseline is not None and scorer is not None:
                read_run(baseline)
                stored = await stored_answers(baseline, self._traces, self.comparing)
                answers = [(case, sample, one.held.answer if one.held else None) for case, sample, one in known]
                for judge in self.comparing:
                    asked, open_ = pairs_planned(judge, answers, stored, self.rubric, scorer)
                    more, coming = more | asked, coming + open_
            cases = [(case, one) for case, _, one in known]
            return await planned(cases, self.rubric, scorer, scores, before, more, coming)

    async def run(self, spend: Spend) -> list[ScoredSample]:
        """The samples with their scores, in the order of the cases for each sample."""
        async with self._candidate() as (ask, tracing), self._scorer() as scorer:
            with self._progress() as shown:
                paid = _paid(ask, spend)
                generator = self._generator(paid, lambda generated: shown.advance(), tracing)

                async def asking(some: Sequence[Numbered]) -> list[Callable[[], Awaitable[Generated]]]:
                    known = await generator.known([_wanted(case, sample) for case, sample in some])
                    return [partial(generator.one, one) for one in known]

                return await self.rubric.score(self._numbered, asking, scorer, spend)

    async def generate(self, spend: Spend) -> list[tuple[Known, Generated]]:
        """Each sample with the candidate's answer. No judge is asked."""
        async with self._candidate() as (ask, tracing):
            with self._progress() as shown:
                paid = _paid(ask, spend)
                generator = self._generator(paid, lambda generated: shown.advance(), tracing)
                known = [one for _, _, one in await self._known(generator)]
                async with asyncio.TaskGroup() as group:
                    asked = [group.create_task(generator.one(one)) for one in known]
        return [(one, task.result()) for one, task in zip(known, asked, strict=True)]

    async def score(
        self, answers: Path, spend: Spend, head: Head | None = None, *, whole: bool = False
    ) -> list[ScoredSample]:
        """The samples with their scores, of answers in a file of this head, which has all of them where it is to be
        `whole`. Runs nothing of the candidate's. Raises BadFile."""
        numbered = self._numbered
        wanted = [_wanted(case, sample) for case, sample in numbered]
        known = [Known(one, key_of(self.suite.configuration, one), None) for one in wanted]
        expected = head or Head(self.suite.configuration)
        found = given_answers(answers, expected, known, whole=whole)
        given = {(one.case_id, one.sample): (one, answer) for one, answer in zip(wanted, found, strict=True)}
        traces = self._traces
        async with self._scorer() as scorer:
            with self._progress() as shown:

                async def generated(one: Wanted, found: Generated) -> Generated:
                    if isinstance(found.answer, Mapping):
                        name, trace = trace_of(one, found.answer, found.latency_ms)
                        with suppress(Unavailable):
                            await traces.put(name, trace)
                        found = replace(found, trace=name)
                    shown.advance()
                    return found

                async def asking(some: Sequence[Numbered]) -> list[Callable[[], Awaitable[Generated]]]:
                    return [partial(generated, *given[case.id, sample]) for case, sample in some]

                return await self.rubric.score(numbered, asking, scorer, spend)

    async def judged_again(self, baseline: Path, spend: Spend) -> JudgedAgain:
        """The baseline's lines, by the judges of now. Raises BadFile."""
        async with self._scorer() as scorer:
            return await judged_again(baseline, self._cases, self.rubric, scorer, spend, self._traces)

    async def pairs(self, samples: Sequence[ScoredSample], baseline: Path, spend: Spend) -> dict[str, JudgePairs]:
        """What each judge says of the samples beside the baseline's, also noted with them. Raises BadFile."""
        if not self.comparing:
            return {}
        stored = await stored_answers(baseline, self._traces, self.comparing)
        found, questions, settled = {}, spend.questions, spend.settled
        async with self._scorer() as scorer:
            with progress(f"suite {self.suite.file.suite}, pairs", unit="questions") as shown:
                spend.listener = lambda: shown.at(spend.settled - settled, spend.questions - questions)
                for judge in self.comparing:
                    one = await pairs_judged(judge, samples, stored, self.rubric, scorer, spend)
                    found[judge.own.id] = one
                    for sample in samples:
                        said = one.outcomes.get((sample.case.id, sample.generated.sample))
                        if said is not None and said.preferred is not None:
                            sample.pairwise[judge.own.id] = str(said.preferred)
                spend.listener = lambda: None
        return found

    @property
    def _traces(self) -> Kept:
        return self.store.kind("traces", 2 * LARGEST_ANSWER)

    @property
    def _cases(self) -> list[SuiteCase]:
        return self.suite.drawn(smoke=self.smoke)

    @asynccontextmanager
    async def _candidate(self) -> AsyncIterator[tuple[Asking, SpanReceiver | None]]:
        """What asks the candidate, and what takes its spans where the suite wants them."""
        told, suite = self.suite.file.candidate, self.suite
        async with taking_spans(told) as tracing:
            variables = tracing.environment if tracing is not None else {}
            async with asking_candidate(self.settings, told, suite.folder, suite.values, variables) as ask:
                yield ask, tracing

    def _progress(self) -> AbstractContextManager[Progress]:
        many = self.suite.file.samples * len(self._cases)
        return progress(f"suite {self.suite.file.suite}", many, unit="answers", spend=None)

    def _scorer(self) -> AbstractAsyncContextManager[Scorer | None]:
        return scorer_of(self.settings, self.store.kind("scores", LARGEST), words=True, each=self.after > 0)

    def _generator(
        self, ask: Asking, told: Callable[[Generated], None] = lambda generated: None, tracing: Tracing | None = None
    ) -> Generator:
        answers = self.store.kind("answers", LARGEST_ANSWER) if not self.suite.unnamed else None
        # Late spans are waited for without keeping others from being asked.
        at_once = self.suite.file.candidate.at_once
        room = asyncio.Semaphore(2 * at_once + (WAITING_FOR_SPANS if tracing else 0))
        return Generator(
            self.suite.configuration, ask, answers, self._traces, told=told, room=room,
            places=asyncio.Semaphore(at_once), tracing=tracing,
        )  # fmt: skip

    @property
    def _numbered(self) -> list[Numbered]:
        numbers = range(self.after + 1, self.after + self.suite.file.samples + 1)
        return [(case, sample) for sample in numbers for case in self._cases]

    async def _known(self, generator: Generator) -> list[tuple[SuiteCase, int, Known]]:
        wanted = self._numbered
        held = await generator.known([_wanted(case, sample) for case, sample in wanted])
        return [(case, sample, one) for (case, sample), one in zip(wanted, held, strict=True)]


async def _nobody(case: Mapping[str, Any]) -> CandidateAnswer:
    """Asks nobody."""
    return Left("a plan asks nobody")


def _paid(ask: Asking, spend: Spend) -> Asking:
    """What asks as long as the run may spend."""

    async def asked(case: Mapping[str, Any]) -> CandidateAnswer:
        try:
            spend.begin()
        except CallFailed as over:
            return Left(over.message)
        answer = await ask(case)
        spend.pay(dollars_of(answer))
        return answer

    return asked


def _wanted(case: SuiteCase, sample: int) -> Wanted:
    return Wanted(case.id, sample, {"input": case.row["input"], "metadata": case.row.get("metadata") or {}})
