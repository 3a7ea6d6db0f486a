"""The document of one calibration round, `cycle.json`: how far it is and what it found (PF-9 §5.3, FR-3, FR-14).

It holds ids, hashes and numbers, and nothing that a user wrote. Two runs of one round write the same bytes: its day is
fixed when it begins, and no time that a step took stands in it.
"""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from schemas.checks.agreement import AgreementSource, Level
from schemas.files import FileModel

Interval = Annotated[
    tuple[float, float],
    WithJsonSchema({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
]
LONGEST_SECONDS = 4 * 3_600
"""A cycle, without the time in which it waits for people (PF-9 NFR-3)."""


class Step(StrEnum):
    """The steps of a round, in their order."""

    DRAW = "draw"
    ANNOTATE = "annotate"
    AGREEMENT = "agreement"
    ASK = "ask"
    INVERSION = "inversion"
    FLOORS = "floors"
    DRIFT = "drift"
    REPORT = "report"
    DIFF = "diff"
    WRITE = "write"


class State(StrEnum):
    """How far a step is."""

    NOT_BEGUN = "not_begun"
    WAITING = "waiting"
    """For people: their scores are not all there."""
    REFUSED = "refused"
    """What people said can't be used yet; `told` says what to score again."""
    DONE = "done"


class StepDone(FileModel):
    """One step: the hashes of what it read and of what it left, by name."""

    state: State = State.NOT_BEGUN
    inputs: dict[str, str] = Field(default_factory=dict)
    outputs: dict[str, str] = Field(default_factory=dict)
    told: str = ""


class DrawnCategory(FileModel):
    """What was drawn of one category. `disagreeing`: turns of which thumbs and judges say the opposite."""

    category: str
    turns: int
    drawn: int
    disagreeing: int
    disagreeing_drawn: int


class RatedAlike(FileModel):
    """How far people agree on what one judge judges, in one category."""

    category: str
    judge_id: str
    level: Level
    alpha: float | None
    alpha_ci95: Interval | None
    n_items: int
    n_ratings: int
    threshold: float
    baseline_source: AgreementSource
    passed: bool
    reason: str
    pairwise_agreement: float | None
    items: list[dict[str, Any]] = Field(default_factory=list)
    """Items with the share of their annotator pairs that agree and their part of the disagreement, the largest
    first."""
    annotators: list[dict[str, Any]] = Field(default_factory=list)
    """Alpha without each of them."""
    codebook: list[dict[str, Any]] = Field(default_factory=list)
    """Ratings that were given to the same items."""


class AgainstPeople(FileModel):
    """One judge's scores beside the mean of people's, by the draw's weights (PF-9 FR-10)."""

    judge_id: str
    n: int
    effective_n: float
    pearson: float | None
    pearson_ci95: Interval | None
    spearman: float | None
    inverted: bool | None
    detectable: float | None
    reason: str


class NewFloor(FileModel):
    """One judge's floor: what holds now, and what the round gives."""

    judge_id: str
    old: float
    floor: float | None
    acceptable: float | None
    traces: int
    n: int
    mean: float | None
    sigma: float | None
    breach_probability: float | None
    detectable_drop: float | None
    proposed: bool
    reason: str


class NewDriftLimit(FileModel):
    """One judge's baseline, and the limit of its drift: what holds now, and what its own runs give."""

    judge_id: str
    judge_version: str
    items: int
    unscored: int
    old: float | None
    kl_limit: float | None
    reason: str = ""


class RuleChange(FileModel):
    """One rule file that the round changes: hashes of what it was and of what it is to be, empty of one that is new."""

    file: str
    judge_id: str
    before: str
    after: str


class Window(FileModel):
    """Where in Opik the round's turns are from; fixed when the round begins. `turns` and `sha256`: how many were read,
    and their hash, with scores and without texts."""

    project: str
    since: datetime
    until: datetime
    turns: int = 0
    sha256: str = ""


class PeoplesQueue(FileModel):
    """The annotation queue in Opik in which people score the drawn turns."""

    id: str
    name: str
    project: str


class Cycle(FileModel):
    """`specs/verticals/<vertical>/eval/rounds/<round>/cycle.json`."""

    vertical: str
    round: str
    day: date
    """The day on which the round began: the day of its limits, ratings and baseline."""
    ticket: str
    report: str
    size: Annotated[int, Field(ge=200)]
    runs: Annotated[int, Field(ge=2)]
    acceptable: dict[str, float]
    """By judge the lowest score of people's that is acceptable; `*` for the others."""
    window: Window | None = None
    """None where turns were given as a file."""
    queue: PeoplesQueue | None = None
    """None where people score sheets."""
    steps: dict[Step, StepDone] = Field(default_factory=dict)
    draw: list[DrawnCategory] = Field(default_factory=list)
    agreement: list[RatedAlike] = Field(default_factory=list)
    reference_version: str = ""
    inversion: list[AgainstPeople] = Field(default_factory=list)
    floors: list[NewFloor] = Field(default_factory=list)
    drift: list[NewDriftLimit] = Field(default_factory=list)
    changes: list[RuleChange] = Field(default_factory=list)
    within_four_hours: bool | None = None
    """Whether the steps took less than four hours, without the time of people (PF-9 NFR-3)."""

    def step(self, name: Step) -> StepDone:
        return self.steps.get(name, StepDone())
