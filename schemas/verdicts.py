"""The verdict: what a gate answers to a ramp-step request or a pull request (PC5 §5.4, §5.5; contracts §3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from schemas.judges import Enforcement, Milestone


class VerdictLevel(StrEnum):
    """Of a gate; a later one is worse."""

    PASS = "pass"  # noqa: S105 - a word of the contract
    WARN = "warn"
    FAIL = "fail"


class Action(StrEnum):
    PROCEED = "proceed"
    HALT = "halt"


class Code(StrEnum):
    """Why a verdict is what it is; a closed list."""

    FLOOR_BREACH = "floor_breach"
    BELOW_THRESHOLD = "below_threshold"
    REGRESSED = "regressed"
    INSUFFICIENT_SAMPLE = "insufficient_sample"
    JUDGE_UNAVAILABLE = "judge_unavailable"
    UNREADABLE_ITEM = "unreadable_item"
    COVERAGE_TOO_LOW = "coverage_too_low"
    TOO_FEW_APPLICABLE = "too_few_applicable"
    SAMPLE_INCOMPLETE = "sample_incomplete"
    GATE_MISSING = "gate_missing"
    GATE_FAILED = "gate_failed"
    GATE_SKIPPED = "gate_skipped"
    PROVISIONAL_OVERDUE = "provisional_overdue"
    JUDGE_SUSPENDED = "judge_suspended"
    DATASET_MISMATCH = "dataset_mismatch"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    INVALID_REQUEST = "invalid_request"
    NO_GATE_AT_STEP = "no_gate_at_step"
    SUITE_FAILED = "suite_failed"
    SUITE_WARNED = "suite_warned"
    SUITE_UNUSABLE = "suite_unusable"


@dataclass(frozen=True)
class Reason:
    """`message` carries the number, the limit and the rule."""

    code: Code
    message: str


class JudgeStanding(StrEnum):
    """What a judge's limits rest on: a seed, evidence (a JADE round, or the distribution of production's scores), or
    either past its day; a suspended judge decides nothing."""

    PROVISIONAL = "provisional"
    CALIBRATED = "calibrated"
    OVERDUE = "overdue"
    SUSPENDED = "suspended"


class Compared(StrEnum):
    """How a judge's score at a gate on traffic compares with its baseline less tolerance, in the words of a suite's
    slices: not below it; below it by more than chance, at 5 % or only at 20 % over all judges of the gate; or below it,
    and chance would explain that."""

    HOLDS = "holds"
    WORSE = "worse"
    NOT_CONFIRMED = "worse, not confirmed"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class QuestionedItem:
    """An item of which a BOOLEAN judge said false, or was asked again: all its `answers`, the first one first (None is
    "N/A"), and what it `counts_as`. `item_hash` is that of all that the judge read of it; by it a person may adjudicate
    the item, and where one did, `adjudicated_by` says who, and `adjudication_expires` (ISO 8601) until when."""

    item: str
    answers: tuple[bool | None, ...]
    counts_as: bool
    item_hash: str = ""
    adjudicated_by: str | None = None
    adjudication_expires: str | None = None


@dataclass(frozen=True)
class JudgeScore:
    """One judge's result at a gate. All numbers are on the judge's own scale; a BOOLEAN judge's are rates of true.

    `score` counts unscored items at their worst value; it is None where the judge had no item to score. It is made of
    `n` items, `unscored` of them without an answer, of which `unreadable` lack what the judge reads; items that are not
    applicable are left out. `judged_cut` items,
    scored or not applicable, were judged on a text whose middle the judge was not shown. `baseline` is the mean of the
    last runs on main, `baseline_runs` how many (at most three). `rule` is the code that decided, None where the judge
    passed. `standing` says what the limits rest on, and `recalibration_due` (ISO 8601) until when. `asked_again` items
    had a false first answer that the judge was asked to confirm, `overturned` of them did not keep it; `adjudicated`
    items count as a person says, and not as the judge did. `questioned` has all of these and those that count as false:
    first what was adjudicated, then what counts as false, and at most ten in all. By the judge's noise as it was
    measured on `noise_measured_on` (ISO 8601, None where it was not), or on traffic by the spread of what it scored and
    its last runs, `detectable_drop` is the smallest fall that this sample finds with 80 % power, None where it finds
    none, and `clean_pass_probability` the chance that a candidate without a fault passes.

    `verdict` is what the judge alone makes of the gate, and `error` the standard error of its mean. On traffic
    `compared` says how the score compares with a baseline, None where there is none; `p_value` the chance of a fall
    below it as large as this where nothing changed, with Holm's correction for all judges of the gate; and
    `items_needed` how many items at each gate would tell, where these can't.
    """

    score: float | None
    threshold: float
    passed: bool
    enforcement: Enforcement
    n: int = 0
    unscored: int = 0
    not_applicable: int = 0
    judged_cut: int = 0
    floor: float = 0.0
    tolerance: float = 0.0
    baseline: float | None = None
    baseline_runs: int = 0
    ci95: tuple[float, float] | None = None
    rule: Code | None = None
    judge_version: str = ""
    standing: JudgeStanding | None = None
    recalibration_due: str | None = None
    asked_again: int = 0
    overturned: int = 0
    adjudicated: int = 0
    questioned: tuple[QuestionedItem, ...] = ()
    detectable_drop: float | None = None
    clean_pass_probability: float | None = None
    noise_measured_on: str | None = None
    verdict: VerdictLevel = VerdictLevel.PASS
    error: float | None = None
    compared: Compared | None = None
    p_value: float | None = None
    items_needed: int | None = None
    unreadable: int = 0


@dataclass(frozen=True)
class Composition:
    """Items of a sample by where they come from."""

    golden: int = 0
    production: int = 0
    adversarial: int = 0

    @property
    def size(self) -> int:
        return self.golden + self.production + self.adversarial


@dataclass(frozen=True)
class SampledSignal:
    """Turns that carry a signal: among the eligible ones, and in the sample."""

    eligible: int
    sampled: int


@dataclass(frozen=True)
class TrafficFacts:
    """How a sample accounts for its window; None where there was none, as before a merge. `eligible` turns are `pooled`
    or `left_out` for a reason, exactly; pooled ones are read, `not_drawn`, or their record is gone. `signals`: rated
    and rerolled. `unattributed`: records of traces whose agent version no one can read, and turns that name no agent or
    version, of any agent. `refused`: turns of new versions beyond the bound on them, in the window up to the
    hour in which this one was first heard of. `incomplete` says why the sample is not the traffic, empty where it is.
    """

    eligible: int | None = None
    pooled: int | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    not_drawn: int = 0
    record_gone: int = 0
    signals: dict[str, SampledSignal] = field(default_factory=dict)
    unattributed: int = 0
    refused: int = 0
    incomplete: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SampleFacts(TrafficFacts):
    """What a gate judged. `fingerprint` is the same for the same items; `scope` says whose traces they are: of the
    agent version alone, or of any version (`agent`); `frozen_at` is ISO 8601, None where nothing was drawn. `topped_up`
    of the production items are production inputs that the candidate was run on. `dataset_version` names the datasets
    that took part, "" where none did."""

    scope: str
    fingerprint: str
    size: int
    window_seconds: int | None
    composition: Composition
    frozen_at: str | None
    topped_up: int = 0
    dataset_version: str = ""


@dataclass(frozen=True)
class GateVerdict:
    """The verdict of one gate (PC5 §5.4). `failing_judges` did not pass, whether they block or warn. `sample` is what
    this gate judged and `duration_seconds` what it took, None from CI."""

    per_judge_scores: dict[str, JudgeScore]
    verdict: VerdictLevel
    failing_judges: list[str]
    milestone: Milestone
    reasons: list[Reason] = field(default_factory=list)
    sample: SampleFacts | None = None
    duration_seconds: float | None = None


@dataclass(frozen=True)
class EvidenceFacts:
    """`clean_pass_probability`: the chance that a candidate without a fault passes all judges of all gates of this
    verdict together, as if each erred by itself; None where that of one of them is unknown."""

    config_hash: str | None
    coverage: float | None
    decided_at: str
    duration_seconds: float
    clean_pass_probability: float | None = None


@dataclass(frozen=True)
class Verdict:
    """The record on `rampgate.verdicts`: exactly one for each `request_id`. Scores, reasons and sample beside `gates`
    are the deciding gate's. `verdict_id` is the same for the same request on the same evidence."""

    request_id: str
    verdict_id: str
    experiment_id: str | None
    agent_id: str | None
    agent_version: str | None
    vertical: str | None
    from_percent: float | None
    to_percent: float | None
    milestone: Milestone | None
    verdict: VerdictLevel
    gates: list[GateVerdict]
    failing_judges: list[str]
    per_judge_scores: dict[str, JudgeScore]
    action: Action
    halt_at_percent: float | None
    reasons: list[Reason]
    supersedes: str | None
    sample: SampleFacts | None
    evidence: EvidenceFacts
