"""The evaluation manifest and the files with which a vertical extends it (PC5 §5.3, PF-9 §5.5, §5.6). Unknown fields
are errors. A candidate's address has places for the agent's id and version (contracts §3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt, StrictStr

from schemas.judges import Day, Enforcement, FileModel, Milestone, Number, Prose, Text, Thresholds, judge_id

PLACES: Final = ("agent_id", "agent_version")
_PLACE = re.compile(r"\{([^{}]*)\}")
_SOLID = re.compile(r"[!-~]+")


def _endpoint(url: str) -> str:
    """Checks an address. Raises ValueError where no request could be sent to it, and for a place in which a request
    would decide more than a name."""
    if not _SOLID.fullmatch(url):
        raise ValueError("is no address: signs other than those of ASCII, and spaces, have to be percent-encoded")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise ValueError("is no address that begins with http:// or https:// and names a host")
    if "@" in parts.netloc:
        raise ValueError("holds a user's name or password: the key is the setting RAMPGATE_CANDIDATE_KEY")
    if "{" in parts.netloc or "}" in parts.netloc:
        raise ValueError("lets a request choose the host: {agent_id} and {agent_version} may stand in path and query")
    if parts.fragment:
        raise ValueError("has a fragment (#…), which is never sent")
    for name in _PLACE.findall(url):
        if name not in PLACES:
            raise ValueError(f"has a place {{{name}}}: there are {{agent_id}} and {{agent_version}}")
    if re.search("[{}]", _PLACE.sub("", url)):
        raise ValueError("has a brace without its other half")
    return url


Endpoint = Annotated[StrictStr, Field(min_length=1, max_length=2_000), AfterValidator(_endpoint)]


def address(url: str, agent_id: str, agent_version: str) -> str:
    """Returns the address for one version. Names are percent-encoded whole, so that each stays one part of the path or
    one value of the query. Raises ValueError for a name that no encoding keeps from being read as a step in the
    path, or that is no text."""
    names = {"agent_id": agent_id, "agent_version": agent_version}
    for name, said in names.items():
        if f"{{{name}}}" in url and said in (".", ".."):
            raise ValueError(f"{name} {said!r} can't be a part of the candidate's address")
    return _PLACE.sub(lambda found: quote(names[found[1]], safe=""), url)


CATEGORY = re.compile(r"^[a-z][a-z0-9_-]{0,62}$")
"""How categories and archetypes are named where they are declared."""


class Dataset(FileModel):
    """In Opik. `items` is checked against what is there."""

    name: Text
    """The dataset's name in Opik."""
    version: Annotated[StrictInt, Field(ge=1)]
    """A new version is a change of this file, never picked up by itself (PC5 OQ-4)."""
    items: Annotated[StrictInt, Field(ge=0)]
    """How many items this version has; another number in Opik is an error."""
    project: Text | None = None
    """The Opik project it lives in."""


class VerticalDataset(Dataset):
    """A vertical's golden set, in its own Opik project (PC5 FR-7, §5.6): the vertical is judged on it in place of the
    platform's. Without `project` it lives in the vertical's."""

    adversarial: Dataset | None = None
    """The vertical's edge cases, judged at pre_full beside the platform's adversarial set (PC5 §5.5)."""


class Category(FileModel):
    """Which judges fire on items of this category, beside the global ones. A vertical's own names its vertical; what
    it inherits was resolved when the manifest was made."""

    judges: list[Text]
    """Ids of judges or composites."""
    description: Prose | None = None
    """What a user does here."""
    vertical: Text | None = None
    """The vertical that declares the category; without one it is the platform's."""
    inherits_from: Text | None = None
    """The category whose judges it was given."""
    archetypes: list[Text] = Field(default_factory=list)
    """Which archetypes of sub-agents serve it."""


class JudgeList(FileModel):
    """Judges that fire whatever the category."""

    judges: list[Text]
    """Ids of judges. Safety judges fire in any case."""


class Composite(FileModel):
    """A group of judges with one aggregate (PF-9 §3.1, FR-10)."""

    judges: Annotated[list[Text], Field(min_length=2)]
    """Its members."""
    aggregate: Literal["mean", "min", "weighted_mean"] = "mean"
    """How the members' scores become one."""
    weights: dict[Text, Number] | None = None
    """Judge -> weight, for weighted_mean."""


Share = Annotated[Number, Field(ge=0, lt=1)]
ROLLING = 3
"""Runs that make a judge's baseline."""
_SAMPLES = {Milestone.PRE_MERGE: 20, Milestone.PRE_RAMP: 100, Milestone.PRE_FULL: 300}
_SCORED = {Milestone.PRE_MERGE: 1, Milestone.PRE_RAMP: 3, Milestone.PRE_FULL: 15}
_APPLICABLE = dict.fromkeys(Milestone, 0.5)
_WINDOWS = {Milestone.PRE_RAMP: 86_400, Milestone.PRE_FULL: 604_800}
_SIZES = {Milestone.PRE_RAMP: 200, Milestone.PRE_FULL: 600}


def _beside(defaults: Mapping[Milestone, float]) -> AfterValidator:
    """A milestone that is left out has its default: it must not come to mean that nothing is asked there."""
    return AfterValidator(lambda stated: {**defaults, **stated})


class GateDefaults(FileModel):
    """Manifest values of the gates; defaults are never zero (contracts §3)."""

    minimum_sample: Annotated[dict[Milestone, Annotated[StrictInt, Field(ge=1)]], _beside(_SAMPLES)] = Field(
        default_factory=lambda: dict(_SAMPLES)
    )
    """Items that the sample of a gate needs; fewer is insufficient_sample."""
    minimum_scored: Annotated[dict[Milestone, Annotated[StrictInt, Field(ge=1)]], _beside(_SCORED)] = Field(
        default_factory=lambda: dict(_SCORED)
    )
    """Of them, what each judge needs to have as its own to score, after its filter, its sampling rate and what was not
    applicable. Where `minimum_sample` asks for fewer, so does this."""
    not_applicable_share: Annotated[dict[Milestone, Share], _beside(_APPLICABLE)] = Field(
        default_factory=lambda: dict(_APPLICABLE)
    )
    """The share of a judge's items that it may call not applicable; more is too_few_applicable."""
    not_applicable_share_of: dict[Text, Share] = Field(default_factory=dict)
    """The same for single judges, or a judge's dimensions as `judge.dimension`, at all milestones: for those that few
    turns are about."""
    cut_share: Share = 0.1
    """The share of a judge's items of which it may be shown a part alone; more is judge_unavailable. Safety judges are
    shown all of an item, or leave it unscored."""
    preceding_gate: Literal["off", "warn", "block"] = "warn"
    """What a step does for whose agent definition the gate before never ran: gate_missing warns or blocks. With both a
    gate that failed, and has not passed since, blocks (gate_failed)."""
    coverage_floor: Annotated[Number, Field(gt=0, le=1)] = 0.01
    """The join's coverage below which a gate on traffic does not pass. Few users press a thumb."""
    left_out_share: Share = 0.05
    """The share of a window's eligible turns that may be left out of the pools; more is sample_incomplete. State more
    where only a part of the traces is published."""
    unreadable_share: Share = 0.01
    """The share of the window's trace records that may not say of which version they are; more is sample_incomplete."""
    window_seconds: Annotated[dict[Milestone, Annotated[StrictInt, Field(ge=60, le=604_800)]], _beside(_WINDOWS)] = (
        Field(default_factory=lambda: dict(_WINDOWS))
    )
    """How far back production traces are sampled: a day and a week (PC5 §5.5), at most the week that workers keep."""

    def may_be_not_applicable(self, name: str, milestone: Milestone) -> float:
        """Returns the share of its items that `name`, a judge's id or `judge.dimension`, may call not applicable: its
        own, else its judge's, else that of all."""
        own = {judge_id(stated): share for stated, share in self.not_applicable_share_of.items()}
        return float(own.get(name, own.get(name.partition(".")[0], self.not_applicable_share[milestone])))


class CandidateEndpoint(FileModel):
    """Where the version that asks to ramp can be asked (contracts §3): POST {input, metadata} -> {output}."""

    url: Endpoint
    """`{agent_id}` and `{agent_version}` in its path or query are the request's, percent-encoded."""
    at_once: Annotated[StrictInt, Field(ge=1, le=64)] = 8
    """Calls that one gate makes at once."""
    seconds: Annotated[Number, Field(gt=0, le=600)] = 60.0
    """One call may take so long."""
    tries: Annotated[StrictInt, Field(ge=1, le=10)] = 3
    """Calls for one item."""


class SampleSection(FileModel):
    """What pre_ramp and pre_full judge (PC5 §5.5): golden set and production traces, at pre_full adversarial items as
    well. Golden and adversarial items need a candidate, which alone has outputs for them."""

    scope: Literal["version", "agent"] = "version"
    """Whose production part it is: traces of the version that asks, from any environment; or any version's traces of
    the agent from production (`agent`)."""
    candidate: CandidateEndpoint | None = None
    """The version itself, to be run on golden and adversarial items, and on production inputs where it has too few
    traces of its own."""
    adversarial: Dataset | None = None
    """The adversarial set, in Opik."""
    refresh_seconds: Annotated[StrictInt, Field(ge=60, le=7_776_000)] = 604_800
    """How long the production inputs that versions are run on stay the same."""
    size: Annotated[dict[Milestone, Annotated[StrictInt, Field(ge=1, le=1_000)]], _beside(_SIZES)] = Field(
        default_factory=lambda: dict(_SIZES)
    )
    """Items in all that a gate aims at. The production part fills it up, and is in any case the gate's minimum."""


def _unfolded(thresholds: Any) -> Any:
    """`judge.milestone: value` beside `judge: value` (the dotted form of PC5 FR-6, AC-5) as one entry per judge. What
    is stated twice stays unchanged, to be refused."""
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
    """What pre_merge judges, and the golden part of a rollout's samples."""
    schema_: dict[StrictStr, Any] = Field(alias="schema", min_length=1)
    """The shape of an item of the dataset, field by field."""
    categories: dict[Text, Category] = Field(min_length=1)
    """Category -> its judges, beside the global ones."""
    global_metrics: JudgeList
    """Judges that fire on every category."""
    thresholds: Annotated[dict[Text, Thresholds], BeforeValidator(_unfolded)]
    """Judge, or judge.dimension -> the score that passes, one or one per milestone; `judge.pre_full` is a key, too."""
    archetypes: dict[Text, list[Text]] = Field(default_factory=dict)
    """Archetype -> the sub_agent_ids that share its judges (PF-9 FR-5)."""
    composites: dict[Text, Composite] = Field(default_factory=dict)
    """Groups of judges with one aggregate (PF-9 FR-10)."""
    gates: GateDefaults = GateDefaults()
    """Minimum sample, coverage floor and window of the gates."""
    sample: SampleSection = SampleSection()
    """What the gates of a rollout judge, and where the version's outputs come from."""
    datasets: dict[Text, VerticalDataset] = Field(default_factory=dict)
    """Vertical -> its own golden set, as its manifest extension names it; any other vertical is judged on `dataset`."""


class ManifestBase(ManifestFile):
    """`configs/manifest-base.yaml`: what the resolved manifest takes over unchanged. Categories come from the prompt
    components; here they are the fallback of a repository that has none (PF-9 §10.3)."""

    categories: dict[Text, Category] = Field(default_factory=dict)
    """Category -> its judges, where no prompt component says it."""


class ExtensionCategory(FileModel):
    """A category a vertical declares: new, with judges of its own or another's; or reused by name, saying no more."""

    description: Prose | None = None
    """What a user does here."""
    inherits_from: Text | None = None
    """The category whose judges it takes over, unless judge-selection.yaml names some."""
    judges: list[Text] | None = None
    """Its quality judges, where judge-selection.yaml doesn't name them. Never of a category that exists."""


class ManifestExtension(FileModel):
    """`specs/verticals/<vertical>/eval/manifest-extension.yaml`. `archetypes`: sub_agent_ids of the vertical that join
    an archetype of the platform."""

    vertical: Text
    """The folder's name."""
    categories: dict[Text, ExtensionCategory] = Field(min_length=1)
    """Categories that are the vertical's own, or that it uses (by name alone)."""
    archetypes: dict[Text, list[Text]] = Field(default_factory=dict)
    """Archetype of the platform -> sub_agent_ids of the vertical that join it."""
    dataset: VerticalDataset | None = None
    """The vertical's own golden set (PC5 FR-7, §5.6); without one the vertical is judged on the platform's."""


class Selection(FileModel):
    """The judges of one category."""

    quality_judges: list[Text] = Field(default_factory=list)
    """Ids of quality judges. Safety judges are inherited."""


class JudgeSelection(FileModel):
    """`specs/verticals/<vertical>/eval/judge-selection.yaml`. Safety judges are inherited and are not listed."""

    vertical: Text
    """The folder's name."""
    categories: dict[Text, Selection] = Field(min_length=1)
    """Category of the vertical -> its judges."""


LONGEST_OVERRIDE: Final = timedelta(days=92)
"""How long an override may hold: a quarter, so that each is audited before it is renewed (PC5 §5.5)."""


class Override(FileModel):
    """An audited exception to enforcement (PC5 §5.2): what, why and until when. At a rollout's gate it holds once the
    central log has it, with the reviewers of its merge: the file's author could write any name."""

    judge: Text
    """The id of a quality judge. Safety judges take no exception."""
    vertical: Text | None = None
    """For this vertical alone; without it for all."""
    milestone: Milestone
    """At which gate."""
    enforcement: Enforcement
    """What the judge does there meanwhile."""
    pull_request: Text
    """Where it was asked for and reviewed."""
    justification: Prose
    """Why, and what ends it."""
    approved_on: Day
    """From this day on."""
    expires: Day
    """Up to this day."""


class Adjudication(FileModel):
    """What a person says of one item in a BOOLEAN judge's place: who, of what, why and until when."""

    judge: Text
    """The id of a BOOLEAN judge, a safety judge too."""
    judge_version: Text
    """The version whose answer was looked at; for another it holds nothing."""
    item: Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{64}$")]
    """The hash of all that the judge read of the item, as verdicts show it (`item_hash`): of no other output."""
    score: StrictBool
    """What the item counts as."""
    pull_request: Text
    """Where it was asked for and reviewed."""
    adjudicated_by: Text
    """Who looked at the item: a spec owner, not the author of what is judged."""
    justification: Prose
    """What the judge got wrong."""
    adjudicated_on: Day
    """From this day on."""
    expires: Day
    """Up to this day, at most 92 days later."""


class AdjudicationsFile(FileModel):
    """`configs/adjudications.yaml`."""

    adjudications: list[Adjudication] = Field(default_factory=list)
    """One that has expired stays: it is the record."""


class OverridesFile(FileModel):
    """`configs/enforcement-overrides.yaml`."""

    overrides: list[Override] = Field(default_factory=list)
    """Exceptions. One that has expired stays: it is the record."""


def _glob(pattern: str) -> str:
    """Checks a pattern of paths. Raises ValueError where it could fit no path, or would not mean what it says."""
    parts = pattern.split("/")
    if "\\" in pattern or any(part in ("", ".", "..") for part in parts):
        raise ValueError("is no path from the repository's root, its folders set apart by one /")
    if any("**" in part and part != "**" for part in parts) or parts.count("**") > MOST_DEPTHS:
        raise ValueError(f"** stands for folders and has no other sign beside it; there may be {MOST_DEPTHS} of them")
    if re.search(r"[?\[\]{}!]", pattern):
        raise ValueError("has a sign with a meaning elsewhere and none here: there are * and **")
    return pattern


MOST_DEPTHS: Final = 3
Glob = Annotated[Text, AfterValidator(_glob)]


class PathClass(FileModel):
    """Files that trigger the same gates."""

    gates: list[Milestone]
    """What a change of one of them triggers; an empty list for nothing."""
    files: Annotated[list[Glob], Field(min_length=1)]
    """Patterns from the repository's root. `*` stays within a folder, `**` is any depth; `*.md` fits in any folder."""


class GatePathsFile(FileModel):
    """`configs/gate-paths.yaml`: which gates a change triggers, by the paths it touches (PC5 §5.5)."""

    paths: Annotated[list[PathClass], Field(min_length=1)]
    """The first pattern that fits decides. What none fits triggers every gate."""
