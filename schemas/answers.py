"""Answers to questions about the state and the registry, as HTTP and the command line give them (contracts §4, §5)."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from schemas.judges import BaselineSource, Classification, Enforcement, Milestone, Score, ScoreType


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)

    @property
    def exit_code(self) -> int:
        """The exit code of the command that gives it: 1 where a check found something."""
        return 0


class Coverage(Answer):
    """The join's coverage of one vertical (PF-9 FR-11): turns of the window, by what they have.

    `rate` is, of the turns with a user signal or a judged trace, the share with a signal and a trace: both_present /
    (both_present + missing_trace + missing_signal). Null where there is no turn. `unjudged`: those of
    both_present that no judge scored.
    """

    vertical: str
    window_seconds: int
    both_present: int = 0
    missing_trace: int = 0
    missing_signal: int = 0
    unjudged: int = 0
    rate: float | None = None


class CoverageAnswer(Answer):
    """One entry for each registered vertical and each label that has turns; times in ms since 1970."""

    window_seconds: int
    until_ms: int
    verticals: list[Coverage]


class Balance(Answer):
    """Consumed records of one signal by the state they ended in. `reasons`: state -> reason or cause -> records.

    `gap`: offsets that Kafka no longer had when they were to be read. They count as consumed and are in no state, so
    they are part of the difference. `gaps`: how often that happened, also where no one can know how many were lost.
    """

    consumed: int = 0
    done: int = 0
    superseded: int = 0
    dead_lettered: int = 0
    parked: int = 0
    filtered: int = 0
    difference: int = 0
    gap: int = 0
    gaps: int = 0
    unreadable: int = 0
    """Dead-lettered records of traces that do not say of which turn and agent version they are."""
    reasons: dict[str, dict[str, int]] = {}


class SampleBalance(Answer):
    """Turns of agent versions by what became of their record, of the hours that a window overlaps. `difference`: turns
    by which the counts of `pooled` ones and the pools themselves disagree. `unnamed` turns have no agent or version,
    `refused` ones are of new versions beyond the bound on them; both have no pool."""

    pooled: int = 0
    record_not_come: int = 0
    dead_lettered: int = 0
    running: int = 0
    unnamed: int = 0
    refused: int = 0
    difference: int = 0


class Conservation(Answer):
    """Promise 3 as figures. `difference` is consumed minus the five states; balanced means 0 for every signal and for
    the samples, and no gap."""

    window_seconds: int
    balanced: bool
    signals: dict[str, Balance]
    samples: SampleBalance = SampleBalance()

    @property
    def exit_code(self) -> int:
        return 0 if self.balanced else 1


class JudgeOpinion(Answer):
    judge_id: str
    score: float | None
    reason: str | None = None


class PooledView(Answer):
    """Whether a turn is in the pools of an agent version, from which gates draw, and `why` not. `agent_version` is None
    for a version other than the trace's own."""

    agent_version: str | None
    pooled: bool
    why: str | None = None


class TurnView(Answer):
    """PF-9 §5.10's joined view of a turn. `feedback_scores` has the user's signals only, `judge_scores` the judges';
    `trace` is the trace as Opik returns it. None where the trace's metadata lacks the key. Only a read for `eval`,
    which is audited, has the words of user, agent and judges: the whole `trace`, `frames`, the judges' reasons.
    `unreadable`: why judges can't read the question or the answer; empty where they can."""

    response_id: str
    user_id: str | None = None
    session_id: str | None = None
    environment: str | None = None
    agent_version: str | None = None
    vertical: str | None = None
    sub_agent: str | None = None
    prompt_version: str | None = None
    category: str | None = None
    timestamp: str | None = None
    feedback_scores: dict[str, float] = {}
    judge_scores: list[JudgeOpinion] = []
    pools: list[PooledView] = []
    unreadable: dict[str, str] = {}
    trace: dict[str, Any] = {}
    frames: list[Any] = []


class Check(Answer):
    """One condition of a probe; `detail` says what is wrong, or what was seen."""

    ok: bool
    detail: str = ""


class Health(Answer):
    ok: bool
    reasons: list[str]
    checks: dict[str, Check]

    @classmethod
    def of(cls, **checks: Check) -> Health:
        """Well if every check is; the reasons are of those that are not."""
        reasons = [f"{name}: {check.detail}" for name, check in checks.items() if not check.ok]
        return cls(ok=not reasons, reasons=reasons, checks=checks)


class ServedJudge(Answer):
    """A judge as the asked vertical sees it (contracts §4). Thresholds are resolved for each milestone, on the judge's
    own scale; true for a BOOLEAN judge. `sub_agents` empty: all of them. `version` is the hash of all that decides a
    score; `config_hash` beside the judges is that of the whole registry. Where the floor comes from another source than
    the threshold, `floor_provenance` says it."""

    id: str
    name: str
    classification: Classification
    score_name: str
    score_type: ScoreType
    score_range: tuple[float, float]
    thresholds: dict[Milestone, Score]
    floor: float
    tolerance: float
    enforcement: dict[Milestone, Enforcement]
    baseline_source: BaselineSource
    calibration_ref: str | None
    recalibration_due: date
    sub_agents: list[str]
    filter: dict[str, Any] | None = None
    enabled: bool = True
    sampling_rate: float = 1.0
    version: str
    floor_provenance: dict[str, Any] | None = None


class EvalConfig(Answer):
    """Which judges score items of a category for a vertical, and what each has to reach (PC5 FR-8, PF-9 §5.8). Without
    a vertical: the platform's own view. `manifest_version` is the version of the manifest's dataset."""

    vertical: str | None
    category: str
    manifest_version: int
    config_hash: str
    judges: list[ServedJudge]


class Finding(Answer):
    """What is wrong with a file of the registry: `line` and `column` from 1, 0 where there is none."""

    file: str
    line: int
    column: int
    field: str
    check: str
    clause: str
    message: str
    fix: str
    severity: Literal["error", "warning"]


class Refresh(Answer):
    """Answer of POST /refresh. `outcome`: loaded (another version serves now), unchanged, refused (broken files; what
    served before goes on), empty (there are no files and nothing serves). `config_hash` names what serves after
    it, null where nothing does. Where there are many findings the first are listed and all are counted."""

    outcome: Literal["loaded", "unchanged", "refused", "empty"]
    message: str
    config_hash: str | None
    previous_config_hash: str | None
    judges: int
    error_count: int
    warning_count: int
    errors: list[Finding]
    warnings: list[Finding]

    @property
    def exit_code(self) -> int:
        return 0 if self.outcome in ("loaded", "unchanged") else 1
