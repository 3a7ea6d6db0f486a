"""Has the agent of a spec answer its queries, judges each answer in three layers, and keeps the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from evalcore.scoring.items import Failed
from evalcore.specs.layers import judged
from evalcore.specs.rubric import answers_of
from evalcore.trajectory.record import Trajectory, trajectory_of
from rampgate.console import run
from rampgate.files import replace_file
from rampgate.spec.baselines import Baselines, trajectories
from rampgate.spec.outcomes import Outcome, layers_json, outcome_of, status_of
from rampgate.suite.generation import Left
from rampgate.suite.runs.answer_files import Head, read_answers
from rampgate.suite.runs.baseline import UNSCORED, keep_run
from rampgate.suite.runs.run_document import found_of, line_of
from rampgate.suite.runs.stored import INCOMPLETE
from rampgate.suite.scoring import ScoredSample

if TYPE_CHECKING:
    from evalcore.specs.results import QueryResult
    from rampgate.suite.run import Running
    from rampgate.suite.spec_files import LoadedSpec
    from schemas.specs import GoldenQuery

WAITS: Final = (1.0, 2.0)
"""Seconds before the second and the third try of what may pass (AgentCI Step 6)."""


@dataclass(frozen=True)
class SpecRun:
    """A run of a spec's `queries`. `version` is the baseline that a user names, in place of those that are pinned."""

    loaded: LoadedSpec
    running: Running
    queries: Sequence[GoldenQuery]
    baselines: Baselines
    version: str | None = None

    def outcomes(self, answers: Path | None = None) -> list[Outcome]:
        """Returns the outcome of each query, in the spec's order, and keeps the run: of answers that are made now, or
        of those in a file. Raises Failure."""
        if self.version is not None:
            self.baselines.named(self.version)
        references = {one.id: self._reference(one) for one in self.queries}  # before anything costs
        running = self.running
        session = replace(running.session, waits=WAITS)
        given = None
        if answers is not None:
            given = read_answers(answers, Head(configuration=session.suite.configuration), session.keys())
        samples = run(partial(session.score, running.spend, given))
        by_id = {one.id: one for one in self.queries}
        results = [self._judged(by_id[one.case.id], one, references[one.case.id]) for one in samples]
        found: dict[str, list[QueryResult]] = {str(one.id): [] for one in self.queries}
        for one in results:
            found[one.id].append(one)
        outcomes = [outcome_of(some) for some in found.values()]
        self._keep(samples, results, outcomes)
        return outcomes

    def _judged(self, query: GoldenQuery, sample: ScoredSample, reference: Trajectory | None) -> QueryResult:
        said = answers_of(query, sample.scores, sample.reasons, sample.case.judges)
        return judged(query, _made(sample), said, reference, self.loaded.spec.fail_on)

    def _reference(self, query: GoldenQuery) -> Trajectory | None:
        """What the query is compared with; None where no version has it, or the version's answers another text."""
        version = self.version or query.baseline or self.loaded.spec.baseline
        found = self.baselines.read(version) if version is not None else None
        kept = found.queries.get(str(query.id)) if found is not None else None
        return trajectories(kept)[0] if kept is not None and kept.query == query.query else None

    def _keep(self, samples: Sequence[ScoredSample], results: Sequence[QueryResult], outcomes: list[Outcome]) -> None:
        """Writes the results, and keeps the run with them: `save`, `diff` and `export-metrics` read it."""
        running, store = self.running, self.running.store
        rubric = running.opened.rubric
        lines = [
            line_of(sample, rubric) | {"layers": layers_json(one), "query": one.query, "spec": self.loaded.hash}
            for sample, one in zip(samples, results, strict=True)
        ]
        written = b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE, default=str) for line in lines)
        running.out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(running.out, written)
        told: dict[str, Any] = {**running.head, **found_of(samples, running.spend, 0), "comparison": None}
        whole = len(self.queries) == len(self.loaded.spec.queries)
        told |= {"set": "full" if whole else "smoke", "verdict": verdict_of(outcomes, incomplete=told["left"])}
        keep_run(store, told, [], written, running.label, running.began)


def verdict_of(outcomes: Sequence[Outcome], *, incomplete: Any = None) -> str:
    """Returns what the stored run came to, in the words of a suite's runs."""
    if incomplete is not None:
        return INCOMPLETE
    found = {status_of(one.result) for one in outcomes}
    return next((word for word in ("fail", "infra", "warn") if word in found), "pass").replace("infra", UNSCORED)


def _made(sample: ScoredSample) -> Trajectory | Failed:
    answer = sample.generated.answer
    if isinstance(answer, Left):
        return Failed(answer.why, may_pass=True)  # that the run may spend no more is no failure of the agent's
    return trajectory_of(answer, sample.generated.latency_ms) if isinstance(answer, Mapping) else answer
