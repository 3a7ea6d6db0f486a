"""Runs a gate from CI (PC5 §5.5, AC-3, AC-4).

Before a merge it judges the candidate's outputs to the manifest's dataset; at the other milestones, traces from a file.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from agents.ports import Unauthorized, Unavailable
from evalcore.gates.evaluate import ScoredGate, score_gate
from evalcore.gates.gate import Gate, prepare
from evalcore.gates.golden import CandidateAnswer, GoldenSet, Pending, golden_sample, mismatches
from evalcore.gates.limits import Past
from evalcore.gates.skips import Skips
from evalcore.gates.verdict import clean_pass
from evalcore.registry.registry import Registry
from evalcore.scoring.calls import Spend
from evalcore.scoring.items import Failed, identity
from evalcore.scoring.runner import Scorer
from evalcore.scoring.sampling import fingerprint
from rampgate.command import Document
from rampgate.console import Failure
from rampgate.progress import Progress
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import Code, Composition, GateVerdict, Reason, SampleFacts, VerdictLevel

Answering = Callable[[Sequence[Mapping[str, Any]]], Mapping[str, CandidateAnswer | Pending]]
SCOPE = "file"


@dataclass(frozen=True)
class GateRequest:
    """A request to decide a gate, with what the decision depends on.

    `vertical` is the one that was named, else the one that the items agree on: its limits and its golden set hold.
    `today` decides what is overdue. `accepted` is the enforcement of judges whose baseline shift was accepted and
    audited. `history` has the runs on main, oldest first, by judge id or `judge.dimension`. `outdated` names, for
    a judge of whose version main has no run, the version that it has runs of. `suspended` says why a judge is
    suspended, by its id. `overrides` is the central log, where it was asked for. `unrecorded` names a file
    of baselines without any run: by it nothing can have regressed.
    """

    registry: Registry
    today: date
    milestone: Milestone = Milestone.PRE_MERGE
    vertical: str | None = None
    accepted: Mapping[str, Enforcement] = field(default_factory=dict)
    history: Mapping[str, Sequence[Past]] = field(default_factory=dict)
    outdated: Mapping[str, str] = field(default_factory=dict)
    suspended: Mapping[str, str] = field(default_factory=dict)
    overrides: Skips | None = None
    unrecorded: str = ""
    spend: Spend = field(default_factory=Spend)
    within: float | None = None


@dataclass(frozen=True)
class GateRun:
    """A gate that was run, and what it judged: the dataset `golden` (None where it can't be read), or the traces of the
    file `source`, described by `sample`. `unknown` are the ids of answers to items that the dataset lacks. `suite` is
    told of a suite's run whose verdict is joined to this one."""

    scored: ScoredGate
    wanted: GateRequest
    decided_at: str
    duration_seconds: float
    golden: GoldenSet | None = None
    sample: SampleFacts | None = None
    source: str = ""
    answered: int = 0
    unknown: tuple[str, ...] = ()
    suite: Mapping[str, Any] | None = None
    without: tuple[str, ...] = ()
    """Judges of the traces' categories whose filter fits none of them."""

    @property
    def verdict(self) -> GateVerdict:
        return self.scored.verdict

    def document(self) -> dict[str, Any]:
        """The document of `--json`: the gate's verdict and the evidence for it."""
        return {
            **asdict(self.verdict),
            "vertical": self.wanted.vertical,
            **self._looked_at(),
            "accepted": sorted(self.wanted.accepted),
            "suite": dict(self.suite) if self.suite is not None else None,
            "evidence": {
                "config_hash": self.wanted.registry.config_hash,
                "decided_at": self.decided_at,
                "duration_seconds": self.duration_seconds,
                "clean_pass_probability": clean_pass([self.verdict]),
                "judged": len(self.scored.assignments),
                "model_calls": self.wanted.spend.calls,
            },
        }

    def _looked_at(self) -> dict[str, Any]:
        """Sample and dataset. A file given without name or version counts as the manifest's, as for baselines."""
        if self.sample is not None:
            return {"sample": {**asdict(self.sample), "source": self.source}, "dataset": None}
        golden, declared = self.golden, self.wanted.registry.dataset(self.wanted.vertical)
        name, version = (golden.name, golden.version) if golden is not None else (None, None)
        return {
            "sample": None,
            "dataset": {
                "name": name if name is not None else declared.name,
                "version": version if version is not None else declared.version,
                "items": len(golden.items) if golden is not None else None,
                "source": golden.source if golden is not None else None,
                "categories": dict(sorted(golden.categories.items())) if golden is not None else {},
                "answered": self.answered,
            },
        }


class GateAnswer(Document):
    """What `gate run` answers: the document of `--json`, and the outcome that its report shows."""

    def __init__(self, outcome: GateRun, failure: Failure | None = None) -> None:
        super().__init__(outcome.document(), 1 if outcome.verdict.verdict is VerdictLevel.FAIL else 0, failure)
        self.outcome = outcome


async def run(
    wanted: GateRequest, dataset: Callable[[], Awaitable[GoldenSet | None]], answering: Answering, scorer: Scorer | None
) -> GateRun:
    """Decide on the candidate's outputs to a dataset.

    The gate fails closed where `dataset` returns None (no dataset of the manifest's name), or raises Unavailable or
    Unauthorized (Opik can't tell).
    """
    outcome = _timed(wanted)
    registry, declared = wanted.registry, wanted.registry.dataset(wanted.vertical)
    try:
        golden = await dataset()
    except (Unavailable, Unauthorized) as error:
        message = f"the dataset {declared.name!r} can't be read, so nothing was judged: {error}"
        return outcome(_failed(wanted, Code.JUDGE_UNAVAILABLE, message))
    if golden is None:
        message = f"Opik has no dataset {declared.name!r}, version {declared.version}"
        return outcome(_failed(wanted, Code.DATASET_MISMATCH, message))
    wrong = tuple(mismatches(golden, registry, wanted.vertical))
    answers = answering(golden.items)
    items, names = golden_sample(golden, answers, registry, wanted.vertical)
    gate = prepare(wanted.milestone, items, names, registry, wanted.vertical)
    scored = await _scored(wanted, gate, scorer, mismatches=wrong)
    known = {identity(one, number) for number, one in enumerate(golden.items)}
    given = [one.found if isinstance(one, Pending) else one for name, one in answers.items() if name in known]
    answered = sum(not isinstance(one, Failed) for one in given)
    return outcome(scored, golden=golden, answered=answered, unknown=tuple(sorted(answers.keys() - known)))


async def run_traced(
    wanted: GateRequest, gate: Gate, source: str, coverage: float | None, scorer: Scorer | None
) -> GateRun:
    """Decide on the traces of the file `source`. The join's rate `coverage` has to reach the manifest's floor."""
    outcome = _timed(wanted)
    floor = wanted.registry.gates.coverage_floor if coverage is not None else None
    scored = await _scored(wanted, gate, scorer, coverage=coverage, coverage_floor=floor)
    return outcome(scored, sample=sample_facts(gate), source=source, without=gate.without)


def sample_facts(gate: Gate) -> SampleFacts:
    """The sample of a verdict on a file's traces; only the file's author knows from which window they come."""
    golden = sum(item.context == "offline" for item in gate.items)
    composition = Composition(golden, len(gate.items) - golden)
    known = fingerprint(item.id for item in gate.items)
    return SampleFacts(
        scope=SCOPE,
        fingerprint=known,
        size=len(gate.items),
        window_seconds=None,
        composition=composition,
        frozen_at=None,
    )


async def _scored(wanted: GateRequest, gate: Gate, scorer: Scorer | None, **sample: Any) -> ScoredGate:
    wanted.spend.expected = len(gate.assignments)
    with Progress(f"gate {wanted.milestone}", unit="questions", spend=wanted.spend):
        return await score_gate(
            scorer, gate, wanted.today, spend=wanted.spend, within=wanted.within, history=wanted.history,
            accepted=wanted.accepted, outdated=wanted.outdated, suspended=wanted.suspended,
            overrides=wanted.overrides, **sample,
        )  # fmt: skip


def _timed(wanted: GateRequest) -> Callable[..., GateRun]:
    began = time.monotonic()

    def outcome(scored: ScoredGate, **more: Any) -> GateRun:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        return GateRun(scored, wanted, at, round(time.monotonic() - began, 3), **more)

    return outcome


def _failed(wanted: GateRequest, code: Code, message: str) -> ScoredGate:
    return ScoredGate(GateVerdict({}, VerdictLevel.FAIL, [], wanted.milestone, [Reason(code, message)]))
