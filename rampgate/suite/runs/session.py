"""One run of a suite on its store: plans it, or has the candidate answer and the judges score."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agents.ports import Unavailable
from evalcore.gates.golden import Candidate, CandidateAnswer
from evalcore.registry.judge import Judge
from evalcore.scoring.cache import LARGEST
from evalcore.scoring.calls import CallFailed, Spend
from evalcore.scoring.runner import Scorer
from rampgate.progress import Progress
from rampgate.settings import Settings
from rampgate.store.sealed import Kept, SealedStore
from rampgate.suite.candidates.configured import asking_candidate
from rampgate.suite.generation import (
    LARGEST_ANSWER,
    Generated,
    Generator,
    Left,
    Ready,
    Wanted,
    always_ready,
    dollars_of,
    key_of,
    trace_of,
)
from rampgate.suite.result_files import read_run
from rampgate.suite.runs.judged_again import JudgedAgain, judged_again
from rampgate.suite.runs.stored import StoredRuns
from rampgate.suite.scoring import Answering, Asking, Numbered, Place, Rubric, ScoredSample
from rampgate.suite.suite_files import Suite, SuiteCase

if TYPE_CHECKING:
    from evalcore.suite.pairwise.question import PairJudge
    from rampgate.suite.runs.pairs import JudgePairs
    from rampgate.suite.tracing.receiver import SpanReceiver
    from schemas.checks.suite import Candidate as CandidateFile

WAITING_FOR_SPANS: Final = 256
"""Answers whose spans may be waited for at once."""


@dataclass(frozen=True)
class Session:
    """The suite's cases, or those of the smoke set, each as often as the suite says. Samples `after` that number are
    others than those of before, and judged by a call each. `comparing` are asked about pairs. `waits`: seconds before
    each further try of a command or a function that failed and may pass; one at an address has its own tries."""

    settings: Settings
    suite: Suite
    smoke: bool
    rubric: Rubric
    store: SealedStore
    after: int = 0
    comparing: Sequence[PairJudge] = ()
    waits: Sequence[float] = ()

    async def plan(self, baseline: Path | None = None) -> dict[str, Any]:
        """What a run will ask and cost, also about pairs with the baseline. Asks no one. Raises BadFile."""
        from rampgate.suite.runs.plan import planned

        async with self._scorer() as scorer:
            numbered = self._numbered
            kept = await self._generator(_nobody).kept([_wanted(case, sample) for case, sample in numbered])
            known = list(zip(numbered, kept, strict=True))
            before = await StoredRuns(self.store).of(self.suite.file.suite)
            scores = self.store.kind("scores", LARGEST)
            more, coming = dict[str, Judge](), 0
            if baseline is not None and scorer is not None:
                from rampgate.suite.runs.pairs import pairs_planned, stored_answers

                read_run(baseline)
                stored = await stored_answers(baseline, self._traces, self.comparing)
                answers = [(case, sample, one.answer if one else None) for (case, sample), one in known]
                for judge in self.comparing:
                    asked, open_ = pairs_planned(judge, answers, stored, self.rubric, scorer)
                    more, coming = more | asked, coming + open_
            cases = [(case, one) for (case, _), one in known]
            return await planned(cases, self.rubric, scorer, scores, before, more, coming)

    async def answers(self, spend: Spend) -> list[Generated]:
        """The candidate's answer to each sample. No judge is asked."""
        async with self._asking(spend) as asking, asyncio.TaskGroup() as group:
            asked = [group.create_task(one()) for one in await asking(self._numbered)]
        return [task.result() for task in asked]

    async def score(self, spend: Spend, given: Mapping[Place, Generated] | None = None) -> list[ScoredSample]:
        """The samples with their scores, in the order of the cases for each sample: of the candidate's answers, or of
        those `given`; then nothing of the candidate's runs."""
        async with self._asking(spend, given) as asking, self._scorer() as scorer:
            return await self.rubric.score(self._numbered, asking, scorer, spend)

    def keys(self, configuration: str | None = None) -> dict[Place, str]:
        """The key of each sample's answer, by this or another configuration."""
        of = configuration or self.suite.configuration
        return {(case.id, sample): key_of(of, _wanted(case, sample)) for case, sample in self._numbered}

    async def judged_again(self, baseline: Path, spend: Spend) -> JudgedAgain:
        """The baseline's lines, by the judges of now. Raises BadFile."""
        async with self._scorer() as scorer:
            return await judged_again(baseline, self._cases, self.rubric, scorer, spend, self._traces)

    async def pairs(self, samples: Sequence[ScoredSample], baseline: Path, spend: Spend) -> dict[str, JudgePairs]:
        """What each judge says of the samples beside the baseline's, also noted with them. Raises BadFile."""
        if not self.comparing:
            return {}
        from rampgate.suite.runs.pairs import pairs_judged, stored_answers

        stored = await stored_answers(baseline, self._traces, self.comparing)
        found, questions, settled = {}, spend.questions, spend.settled
        async with self._scorer() as scorer:
            with Progress(f"suite {self.suite.file.suite}, pairs", unit="questions") as shown:
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
    async def _asking(self, spend: Spend, given: Mapping[Place, Generated] | None = None) -> AsyncIterator[Asking]:
        """What gives the answers: the candidate, whose spans are taken where the suite wants them, or who has them."""
        told, suite = self.suite.file.candidate, self.suite
        many = suite.file.samples * len(self._cases)
        with Progress(f"suite {suite.file.suite}", many, unit="answers", spend=None) as shown:
            if given is not None:
                yield partial(self._taken, given, shown)
                return
            async with _taking_spans(told) as tracing:
                variables = tracing.environment if tracing is not None else {}
                async with asking_candidate(self.settings, told, suite.folder, suite.values, variables) as (ask, ready):
                    paid = _paid(ask, spend)
                    generator = self._generator(paid, lambda generated: shown.advance(), tracing, ready)

                    async def asking(some: Sequence[Numbered]) -> list[Answering]:
                        wanted = [_wanted(case, sample) for case, sample in some]
                        kept = await generator.kept(wanted)
                        return [partial(generator.one, *both) for both in zip(wanted, kept, strict=True)]

                    yield asking

    async def _taken(
        self, given: Mapping[Place, Generated], shown: Progress, some: Sequence[Numbered]
    ) -> list[Answering]:
        """What gives answers that are there, each with its trace kept."""

        async def taken(one: Wanted, found: Generated) -> Generated:
            if isinstance(found.answer, Mapping):
                name, trace = trace_of(one, found.answer, found.latency_ms)
                with suppress(Unavailable):
                    await self._traces.put(name, trace)
                found = replace(found, trace=name)
            shown.advance()
            return found

        return [partial(taken, _wanted(case, sample), given[case.id, sample]) for case, sample in some]

    def _scorer(self) -> AbstractAsyncContextManager[Scorer | None]:
        if not (self.rubric.judges or self.comparing or any(case.judges for case in self._cases)):
            return nullcontext()
        from rampgate.judging import scorer_of

        return scorer_of(self.settings, self.store.kind("scores", LARGEST), words=True, each=self.after > 0)

    def _generator(
        self, ask: Candidate, told: Callable[[Generated], None] = lambda generated: None,
        tracing: SpanReceiver | None = None, ready: Ready = always_ready,
    ) -> Generator:  # fmt: skip
        answers = self.store.kind("answers", LARGEST_ANSWER) if not self.suite.unnamed else None
        # Late spans are waited for without keeping others from being asked.
        at_once = self.suite.file.candidate.at_once
        room = asyncio.Semaphore(2 * at_once + (WAITING_FOR_SPANS if tracing else 0))
        return Generator(
            self.suite.configuration, ask, answers, self._traces, told=told, room=room,
            places=asyncio.Semaphore(at_once), tracing=tracing,
            ready=ready, waits=self.waits if self.suite.file.candidate.url is None else (),
        )  # fmt: skip

    @property
    def _numbered(self) -> list[Numbered]:
        numbers = range(self.after + 1, self.after + self.suite.file.samples + 1)
        return [(case, sample) for sample in numbers for case in self._cases]


@asynccontextmanager
async def _taking_spans(told: CandidateFile) -> AsyncIterator[SpanReceiver | None]:
    """Yields what takes the candidate's spans, None where its suite names no address for them: what that takes is then
    not even imported. Raises Failure."""
    if told.otlp is None:
        yield None
        return
    from rampgate.suite.tracing.receiver import SpanReceiver

    async with SpanReceiver(float(told.otlp_seconds)).listening(told.otlp) as receiver:
        yield receiver


async def _nobody(case: Mapping[str, Any]) -> CandidateAnswer:
    """Asks no one."""
    return Left("a plan asks no one")


def _paid(ask: Candidate, spend: Spend) -> Candidate:
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
