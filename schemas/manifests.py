"""The evaluation manifest and the files a vertical extends it with (PC5 §5.3, PF-9 §5.5, §5.6). Unknown fields are
errors."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictInt, StrictStr

from schemas.judges import Day, Enforcement, FileModel, Milestone, Number, Prose, Text, Thresholds

CATEGORY = re.compile(r"^[a-z][a-z0-9_-]{0,62}$")
"""How categories and archetypes are named where they are declared."""


class Dataset(FileModel):
    """In Opik. `items` is checked against what is there."""

    name: Text
    version: Annotated[StrictInt, Field(ge=1)]
    items: Annotated[StrictInt, Field(ge=0)]
    project: Text | None = None


class Category(FileModel):
    """Which judges fire on items of this category, beside the global ones. A vertical's own names its vertical; what
    it inherits was resolved when the manifest was made."""

    judges: list[Text]
    description: Prose | None = None
    vertical: Text | None = None
    inherits_from: Text | None = None
    archetypes: list[Text] = Field(default_factory=list)


class JudgeList(FileModel):
    judges: list[Text] = Field(default_factory=list)


class Composite(FileModel):
    """A group of judges with one aggregate (PF-9 §3.1, FR-10)."""

    judges: Annotated[list[Text], Field(min_length=2)]
    aggregate: Literal["mean", "min", "weighted_mean"] = "mean"
    weights: dict[Text, Number] | None = None


class GateDefaults(FileModel):
    """Manifest values of the gates; defaults are never zero (contracts §3)."""

    minimum_sample: dict[Milestone, Annotated[StrictInt, Field(ge=1)]] = Field(
        default_factory=lambda: {Milestone.PRE_MERGE: 20, Milestone.PRE_RAMP: 100, Milestone.PRE_FULL: 300}
    )
    coverage_floor: Annotated[Number, Field(gt=0, le=1)] = 0.05
    window_seconds: dict[Milestone, Annotated[StrictInt, Field(ge=60)]] = Field(
        default_factory=lambda: {Milestone.PRE_RAMP: 86_400, Milestone.PRE_FULL: 604_800}
    )


def _unfolded(thresholds: Any) -> Any:
    """`judge.milestone: value` beside `judge: value` (the dotted form of PC5 FR-6, AC-5) as one entry per judge. What
    is said twice is left as it stands, to be refused."""
    if not isinstance(thresholds, dict):
        return thresholds
    out: dict[Any, Any] = {key: dict(value) if isinstance(value, dict) else value for key, value in thresholds.items()}
    for key, value in thresholds.items():
        judge, _, last = key.rpartition(".") if isinstance(key, str) else ("", "", "")
        if not judge or last not in [*Milestone, "default"] or isinstance(value, dict):
            continue
        named = out.get(judge, {})
        named = named if isinstance(named, dict) else {"default": named}
        if last not in named:
            del out[key]
            out[judge] = {**named, last: value}
    return out


class ManifestFile(FileModel):
    """`configs/evaluation_manifest.yaml`. `archetypes`: archetype -> its sub_agent_ids (PF-9 FR-5)."""

    dataset: Dataset
    schema_: dict[StrictStr, Any] = Field(alias="schema", min_length=1)
    categories: dict[Text, Category] = Field(min_length=1)
    global_metrics: JudgeList = JudgeList()
    thresholds: Annotated[dict[Text, Thresholds], BeforeValidator(_unfolded)] = Field(default_factory=dict)
    archetypes: dict[Text, list[Text]] = Field(default_factory=dict)
    composites: dict[Text, Composite] = Field(default_factory=dict)
    gates: GateDefaults = GateDefaults()


class ManifestBase(ManifestFile):
    """`configs/manifest-base.yaml`: what the resolved manifest takes over as it stands. Categories come from the prompt
    components; here they are the fallback of a repository that has none (PF-9 §10.3)."""

    categories: dict[Text, Category] = Field(default_factory=dict)


class ExtensionCategory(FileModel):
    """A category a vertical declares: new, with judges of its own or another's; or reused by name, saying no more."""

    description: Prose | None = None
    inherits_from: Text | None = None
    judges: list[Text] | None = None


class ManifestExtension(FileModel):
    """`specs/verticals/<vertical>/eval/manifest-extension.yaml`. `archetypes`: sub_agent_ids of the vertical that join
    an archetype of the platform."""

    vertical: Text
    categories: dict[Text, ExtensionCategory] = Field(min_length=1)
    archetypes: dict[Text, list[Text]] = Field(default_factory=dict)


class Selection(FileModel):
    quality_judges: list[Text] = Field(default_factory=list)


class JudgeSelection(FileModel):
    """`specs/verticals/<vertical>/eval/judge-selection.yaml`. Safety judges are inherited and are not listed."""

    vertical: Text
    categories: dict[Text, Selection] = Field(min_length=1)


class Override(FileModel):
    """An audited exception to enforcement (PC5 §5.2): who allowed what, why and until when."""

    judge: Text
    vertical: Text | None = None
    milestone: Milestone
    enforcement: Enforcement
    pull_request: Text
    approved_by: Text
    justification: Prose
    approved_on: Day
    expires: Day


class OverridesFile(FileModel):
    """`configs/enforcement-overrides.yaml`."""

    overrides: list[Override] = Field(default_factory=list)
