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
    """One step: how far it is, and the hashes of what it read and of what it left."""

    state: State = State.NOT_BEGUN
    """How far it is."""
    inputs: dict[str, str] = Field(default_factory=dict)
    """Hashes of what it read, by name; where one is another now, the step is done again."""
    outputs: dict[str, str] = Field(default_factory=dict)
    """Hashes of the files that it left, by name."""
    results: dict[str, str] = Field(default_factory=dict)
    """Hashes of the fields of this document that it found, by name: what is edited is refused."""
    told: str = ""
    """What it said: what it waits for, why it was refused, or what it found."""


class DrawnCategory(FileModel):
    """What was drawn of one category."""

    category: str
    """The category's name."""
    turns: int
    """The turns of the round's days."""
    drawn: int
    """How many of them were drawn."""
    disagreeing: int
    """Turns of which thumbs and judges say the opposite."""
    disagreeing_drawn: int
    """How many of these were drawn."""


class RatedAlike(FileModel):
    """How far people agree on what one judge judges, in one category."""

    category: str
    """The category's name."""
    judge_id: str
    """The judge by whose rubric people scored."""
    level: Level
    """The level of measurement that alpha is of."""
    alpha: float | None
    """Krippendorff's alpha; null where it is not defined."""
    alpha_ci95: Interval | None
    """Its 95 % interval, items resampled; null where there is none."""
    n_items: int
    """Turns that somebody scored."""
    n_ratings: int
    """Scores of people."""
    threshold: float
    """The least alpha that the category has to reach."""
    baseline_source: AgreementSource
    """What the threshold rests on."""
    passed: bool
    """Whether the scores may enter the reference set."""
    reason: str
    """Why, in words."""
    pairwise_agreement: float | None
    """The share of pairs of annotators that say the same; null without a pair."""
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
    """The judge, as its version was when the round asked it."""
    n: int
    """Turns that have a score of both."""
    effective_n: float
    """Kish's number of them, by their weights."""
    pearson: float | None
    """Pearson's correlation; null where all scores are the same."""
    pearson_ci95: Interval | None
    """Its 95 % interval; null where there is none."""
    spearman: float | None
    """The correlation of ranks, of the turns as they are; null where all scores are the same."""
    inverted: bool | None
    """Whether the interval lies below zero; null where no one can tell."""
    carries_signal: bool | None = None
    """Whether the interval leaves out zero, which is chance; null where no one can tell."""
    detectable: float | None
    """The true correlation that would be found with 80 % power; null where none could be."""
    reason: str
    """Why, in words."""


class NewFloor(FileModel):
    """One judge's floor: what holds now, and what the round gives."""

    judge_id: str
    """The judge, as the vertical sees it."""
    old: float
    """The floor that holds."""
    floor: float | None
    """The one that the round gives; null where it gives none."""
    acceptable: float | None
    """The lowest score of people's that is acceptable; null where no one said."""
    traces: int
    """Turns that people scored for the judge."""
    n: int
    """Those of them that people accepted."""
    mean: float | None
    """The mean of the judge's scores of accepted turns."""
    sigma: float | None
    """Their standard deviation, by n - 1."""
    breach_probability: float | None
    """How often unchanged traffic breaches the floor at a gate."""
    detectable_drop: float | None
    """The smallest drop of the mean that a gate finds with 80 % power."""
    proposed: bool
    """Whether it would be written."""
    reason: str
    """Why it is not, in words."""


class NewDriftLimit(FileModel):
    """One judge's baseline, and the limit of its drift: what holds now, and what its own runs give."""

    judge_id: str
    """The judge that was asked."""
    judge_version: str
    """The version that was asked: a hash of all that decides a score."""
    items: int
    """Turns that it was asked about."""
    unscored: int
    """Those of which the last run has no score."""
    old: float | None
    """The limit that holds; null where there is none."""
    kl_limit: float | None
    """The one that its runs give, in nats; null where they do not differ."""
    reason: str = ""
    """Why there is none, in words."""


class RuleChange(FileModel):
    """One rule file that the round changes."""

    file: str
    """Its path, from the folder above that of the registry."""
    judge_id: str
    """The judge that it is of."""
    before: str
    """The hash of what it was; empty of one that is new."""
    after: str
    """The hash of what it is to be."""


class Window(FileModel):
    """Where in Opik the round's turns are from; fixed when the round begins."""

    project: str
    """The vertical's project."""
    since: datetime
    """The first moment that counts."""
    until: datetime
    """The first one that does not."""
    turns: int = 0
    """How many were read."""
    sha256: str = ""
    """Their hash, with scores and without texts."""


class PeoplesQueue(FileModel):
    """The annotation queue in Opik in which people score the drawn turns."""

    id: str
    """Its id, made of the round's day and draw."""
    name: str
    """Its name, as people see it."""
    project: str
    """The vertical's project."""


class Cycle(FileModel):
    """`specs/verticals/<vertical>/eval/rounds/<round>/cycle.json`: ids, hashes and numbers, no text of users."""

    vertical: str
    """Whose round it is."""
    round: str
    """Its name, that of its folder."""
    day: date
    """The day on which the round began: the day of its limits, ratings and baseline."""
    ticket: str
    """The ticket that its limits cite."""
    report: str
    """Where its report is, as its limits cite it."""
    size: Annotated[int, Field(ge=200)]
    """How many turns it draws, or all where there are fewer."""
    runs: Annotated[int, Field(ge=2)]
    """How often judges are asked for the limit of their drift."""
    acceptable: dict[str, float]
    """By judge the lowest score of people's that is acceptable; `*` for the others."""
    window: Window | None = None
    """Where in Opik its turns are from; null where they were given as a file."""
    queue: PeoplesQueue | None = None
    """The queue in which people score; null where they score sheets."""
    steps: dict[Step, StepDone] = Field(default_factory=dict)
    """The steps that have begun."""
    draw: list[DrawnCategory] = Field(default_factory=list)
    """What was drawn, by category."""
    agreement: list[RatedAlike] = Field(default_factory=list)
    """How far people agree, by category and judge."""
    reference_version: str = ""
    """The version of the reference set with this round in it; empty before."""
    inversion: list[AgainstPeople] = Field(default_factory=list)
    """Each judge beside people."""
    floors: list[NewFloor] = Field(default_factory=list)
    """Each judge's floor."""
    drift: list[NewDriftLimit] = Field(default_factory=list)
    """Each judge's limit of drift."""
    changes: list[RuleChange] = Field(default_factory=list)
    """What would change in the vertical's rule files."""
    within_four_hours: bool | None = None
    """Whether the steps took less than four hours, without the time of people (PF-9 NFR-3); null until they are
    done."""

    def step(self, name: Step) -> StepDone:
        return self.steps.get(name, StepDone())
