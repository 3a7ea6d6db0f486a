"""Resolves a judge for one vertical: the central rule, the manifest over it, the vertical's file over both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Any

from evalcore.registry import enforcement, thresholds
from evalcore.registry.files import RegistryFiles, RuleSpec
from schemas.judges import (
    BaselineSource,
    Calibration,
    Classification,
    Drift,
    Enforcement,
    Filter,
    Milestone,
    Noise,
    Provenance,
    RuleFile,
    Score,
    ScoreType,
    VerticalRuleFile,
    judge_id,
    score_range,
)
from schemas.manifests import Adjudication
from schemas.specs import AgentSpec
from schemas.verdicts import JudgeStanding
from schemas.verticals import TraceLayout

_DECIDES_A_SCORE = {
    "model", "temperature", "task_introduction", "prompt", "variables", "score_type", "score_range", "dimensions",
    "confirmation", "components", "score_of",
}  # fmt: skip
MESSAGE_FORM = 3
"""Of the messages around a rubric (`evalcore.framing`). Another form moves scores, so it is a new version of
every judge, and has baselines of its own: since 2 the turn is one JSON object and the rubric the system's, since 3 the
reason comes before the score and safety judges read a long turn in windows."""


@dataclass(frozen=True)
class Limits:
    """Limits of a judge's dimension, on the judge's scale. At the milestones in `own` they are its own, at the others
    the judge's."""

    thresholds: Mapping[Milestone, Score]
    default_threshold: Score
    floor: float
    own: frozenset[Milestone] = frozenset()
    applies: str | None = None
    """Where an item says whether the dimension applies."""


@dataclass(frozen=True)
class Judge:
    """A judge as one vertical sees it (`vertical` None: the platform's view). Thresholds are resolved: vertical's rule
    file (per milestone, then single), manifest (per milestone, then single), central rule, and the floor beneath all.

    `enforcement` is complete; `sub_agents` are those of the archetypes in `applies_to`, empty for all.
    """

    id: str
    vertical: str | None
    rule: RuleFile
    classification: Classification
    score_name: str
    score_type: ScoreType
    score_range: tuple[float, float]
    thresholds: Mapping[Milestone, Score]
    default_threshold: Score
    floor: float
    tolerance: float
    enforcement: Mapping[Milestone, Enforcement]
    filter: Filter | None
    sub_agents: tuple[str, ...]
    baseline_source: BaselineSource
    calibration_ref: str | None
    calibration: Calibration | None
    recalibration_due: date
    version: str
    """The hash of all that decides a score: rubric, model, parameters, bindings."""
    dimensions: Mapping[str, Limits] = field(default_factory=dict)
    noise: Noise | None = None
    """What was measured of this version's disagreement with itself."""
    adjudications: tuple[Adjudication, ...] = ()
    """What people said of single items in the place of this version, expired or not."""
    drift: Drift | None = None
    """How far its scores may move between calibrations, and where that limit comes from."""
    layouts: Mapping[str, TraceLayout] = field(default_factory=dict)
    """How traces are laid out, by the vertical that they name, of those that state it. No part of `version`: the judge
    asks the same, of the same texts."""
    spec: AgentSpec | None = None
    """The agent's spec that it judges by, where its rule's model is `spec:FILE`."""
    beside: tuple[Provenance, ...] = ()
    """Where thresholds come from that a vertical's file leaves to the central one, then the floor: the judge's own
    provenance is that of its first threshold."""

    @property
    def rests_on(self) -> tuple[Judge | Provenance, ...]:
        return (self, *self.beside)

    @property
    def safety(self) -> bool:
        return self.classification is Classification.SAFETY_REFUSAL

    def passes(self, score: float, milestone: Milestone) -> bool:
        """Tells whether one item's score is at the judge's threshold or above; of true and false whether it is true."""
        return score >= (1.0 if self.score_type is ScoreType.BOOLEAN else float(self.thresholds[milestone]))

    def share(self, score: float) -> float:
        """Returns a score as its part of the scale."""
        low, high = self.score_range
        return (score - low) / (high - low)

    @property
    def floor_provenance(self) -> dict[str, Any] | None:
        """Where the floor comes from, as JSON; None where the threshold does as well."""
        of = self.beside[-1] if self.beside else None
        if of is None or all(getattr(of, name) == getattr(self, name) for name in Provenance.model_fields):
            return None
        return of.model_dump(mode="json", exclude_none=True)

    @property
    def fires(self) -> bool:
        """Tells whether categories have it: a safety judge can't be disabled (contracts §3)."""
        return self.rule.enabled or self.safety


def digest(content: Any) -> str:
    """Returns a hash of content, not of its spelling: 16 hex digits of the SHA-256 of canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def version_in(files: RegistryFiles, name: str) -> str:
    """Returns the version of a judge of the registry."""
    return judge_version(name, files.rules[name].model, files.specs.get(name))


def judge_version(name: str, rule: RuleFile, spec: RuleSpec | None = None) -> str:
    """Returns the hash of all that can change a score, and of nothing else: not of thresholds or calibration, nor of
    how a zero is written. `spec`: the one that the rule judges by."""
    content = rule.model_dump(mode="json", include=_DECIDES_A_SCORE)
    for newer in ("confirmation", "components", "score_of"):  # a judge without it keeps the version it had before
        if not content.get(newer):
            content.pop(newer, None)
    for dimension in (content["dimensions"] or {}).values():
        dimension.pop("threshold"), dimension.pop("floor")
        if dimension["applies"] is None:
            dimension.pop("applies")
    own: dict[str, Any] = {"temperature": float(rule.temperature) + 0.0, "score_range": score_range(rule), "id": name}
    if spec is not None:
        own["spec"] = spec.hash
    return digest({**content, **own, "message_form": MESSAGE_FORM})


def view(files: RegistryFiles, name: str, vertical: str | None, version: str | None = None) -> Judge:
    """Resolves a judge as one vertical sees it. `version` saves making it again: it is the same for all verticals.
    Raises ThresholdTypeError where a threshold does not fit the judge."""
    rule = files.rules[name].model
    own_file = files.vertical_rules.get((vertical, name)) if vertical is not None else None
    own = own_file.model if own_file else None
    provenance, *beside = _rests_on(rule, own)
    floor = rule.floor if own is None or own.floor is None else own.floor
    tolerance = rule.tolerance if own is None or own.tolerance is None else own.tolerance
    sources = [
        thresholds.Stated.of(f"{vertical}'s rule file", own.threshold if own else None),
        thresholds.Stated.of("the manifest", files.manifest_thresholds.get(name)),
        thresholds.Stated.of("its rule file", rule.threshold),
    ]
    resolved = _resolve(name, sources, floor, rule)
    overrides = files.overrides.model.overrides if files.overrides else []
    enforced = enforcement.effective(
        rule.classification,
        rule.enforcement,
        own.enforcement if own else None,
        [entry for entry in overrides if judge_id(entry.judge) == name],
        files.today,
        vertical,
    )
    return Judge(
        id=name,
        vertical=vertical,
        rule=rule,
        classification=rule.classification,
        score_name=rule.score_name,
        score_type=rule.score_type,
        score_range=score_range(rule),
        thresholds=MappingProxyType(dict(resolved.at)),
        default_threshold=resolved.default,
        floor=float(floor),
        tolerance=float(tolerance),
        enforcement=MappingProxyType(enforced),
        filter=own.filter if own and own.filter else rule.filter,
        sub_agents=_sub_agents(files, rule),
        baseline_source=provenance.baseline_source,
        calibration_ref=provenance.calibration_ref,
        calibration=provenance.calibration,
        recalibration_due=provenance.recalibration_due,
        version=(decides := version or version_in(files, name)),
        dimensions=MappingProxyType(_dimensions(files, name, rule, resolved, floor)),
        noise=files.noise_of(name, decides),
        adjudications=files.adjudicated(name, decides),
        drift=own.drift if own and own.drift else rule.drift,
        beside=tuple(beside),
        layouts=files.layouts,
        spec=files.specs[name].spec if name in files.specs else None,
    )


def _rests_on(rule: RuleFile, own: VerticalRuleFile | None) -> tuple[Provenance, ...]:
    stated = thresholds.Stated.of("", own.threshold if own else None)
    own_at = [stated.at(milestone) is not None for milestone in Milestone]
    central = not all(own_at) or bool(rule.dimensions)  # no vertical states a dimension's
    of_floor = own if own is not None and own.floor is not None else rule
    its_own = any(own_at) or of_floor is rule  # what it says, even where it states no limit
    of_thresholds = [one.provenance for one, holds in ((own, its_own), (rule, central)) if one and holds]
    return (*of_thresholds, of_floor.floor_provenance or of_floor.provenance)


def _resolve(name: str, sources: list[thresholds.Stated], floor: Score, rule: RuleFile) -> thresholds.Resolved:
    for stated in sources:
        thresholds.require_fit(name, stated, rule.score_type, score_range(rule))
    return thresholds.resolve(sources, floor, rule.score_type)


def _dimensions(
    files: RegistryFiles, name: str, rule: RuleFile, whole: thresholds.Resolved, floor: Score
) -> dict[str, Limits]:
    """Returns the limits of each dimension by its id. A dimension that states none has the judge's."""
    out = {}
    for dimension, declared in (rule.dimensions or {}).items():
        full = f"{name}.{judge_id(dimension)}"
        sources = [
            thresholds.Stated.of("the manifest", files.manifest_thresholds.get(full)),
            thresholds.Stated.of("its rule file", declared.threshold),
        ]
        beneath = thresholds.Stated("its judge", whole.default, whole.at)
        found = _resolve(full, [*sources, beneath], floor, rule)
        own_floor = floor if declared.floor is None else declared.floor
        named = (milestone for milestone in Milestone if any(stated.at(milestone) is not None for stated in sources))
        own = frozenset(Milestone if declared.floor is not None else named)
        out[judge_id(dimension)] = Limits(
            MappingProxyType(dict(found.at)), found.default, float(own_floor), own, declared.applies
        )
    return out


def _sub_agents(files: RegistryFiles, rule: RuleFile) -> tuple[str, ...]:
    """Returns the sub-agents of the rule's archetypes. An archetype without sub-agents means the sub-agent of its name:
    an empty list must not mean all."""
    known = files.manifest.model.archetypes if files.manifest else {}
    named = [agent for archetype in rule.applies_to for agent in known.get(archetype) or (archetype,)]
    return tuple(dict.fromkeys(named))


@dataclass(frozen=True)
class Overdue:
    """A recalibration that is `days` late, and what gates do about it."""

    days: int
    baseline_source: BaselineSource
    at: Mapping[Milestone, Enforcement] = field(default_factory=dict)

    @property
    def provisional(self) -> bool:
        return self.baseline_source is BaselineSource.PROVISIONAL_SEED


def overdue(stated: Judge | Provenance, today: date) -> Overdue | None:
    """Tells how late a recalibration is; None until the day after `recalibration_due`. A seed past due warns at
    pre_merge and blocks at pre_ramp and pre_full (PF-9 AC-9); a calibration past due warns."""
    days = (today - stated.recalibration_due).days
    if days <= 0:
        return None
    warns = dict.fromkeys(Milestone, Enforcement.WARN)
    if stated.baseline_source is not BaselineSource.PROVISIONAL_SEED:
        return Overdue(days, stated.baseline_source, warns)
    blocks = {Milestone.PRE_RAMP: Enforcement.BLOCK, Milestone.PRE_FULL: Enforcement.BLOCK}
    return Overdue(days, stated.baseline_source, {**warns, **blocks})


def standing(judge: Judge, today: date) -> JudgeStanding:
    """Tells what a judge's limits rest on today, as every verdict says it (PF-9 FR-3, FR-4): the weakest of them."""
    if any(overdue(one, today) is not None for one in judge.rests_on):
        return JudgeStanding.OVERDUE
    seed = any(one.baseline_source is BaselineSource.PROVISIONAL_SEED for one in judge.rests_on)
    return JudgeStanding.PROVISIONAL if seed else JudgeStanding.CALIBRATED
