"""One way from a sample to a verdict: duplicates out, the vertical found, judges assigned, scores decided. Pure.

The stream, `gate run` and `evaluate_gate` all go this way (contracts §3, "One way"): they `prepare` the sample, let
judges score `Gate.assignments`, collect what decides beside the scores, and ask for `Gate.verdict`. A judge's metric
(`evalcore.scoring.opik_metric`) scores a single item as this way would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

from evalcore.gates.decision import Evidence, decide
from evalcore.gates.golden import firing_on, judges_of
from evalcore.gates.judged import Judged
from evalcore.gates.limits import Limits, Past
from evalcore.gates.skips import GateSkip, Skips, skipped
from evalcore.judges.bindings import vertical_named
from evalcore.registry.judge import overdue, standing
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answer, Scored, collect
from evalcore.scoring.applicability import matches
from evalcore.scoring.assignments import Assignment, assign
from evalcore.scoring.items import Item, distinct, served
from evalcore.yaml.suggestions import near_miss
from schemas.judges import Enforcement, Milestone, ScoreType
from schemas.manifests import GateDefaults
from schemas.verdicts import GateVerdict

OFF = "its rule file says enabled: false"


@dataclass(frozen=True)
class Gate:
    """A prepared sample and who judges it.

    `items` holds each trace and dataset item once. `judges` maps each name that decides, a judge's id or
    `judge.dimension`, to the judge as `vertical` sees it.
    """

    milestone: Milestone
    vertical: str | None
    items: Sequence[Item]
    judges: Mapping[str, Judge]
    defaults: GateDefaults
    mismatches: tuple[str, ...] = ()
    """What of the sample can't be evidence for this gate."""
    skip: GateSkip | None = None
    """The override that leaves the judges of quality out."""
    without: tuple[str, ...] = ()
    """Judges of the items' categories whose filter fits none of them, which are no judges of this gate."""

    @cached_property
    def assignments(self) -> list[Assignment]:
        """Each judge with each item that is its to score."""
        return assign(self.judges.values(), self.items)

    def verdict(
        self,
        answers: Mapping[str, Sequence[Answer]],
        today: date,
        *,
        history: Mapping[str, Sequence[Past]] | None = None,
        suspended: Mapping[str, str] | None = None,
        accepted: Mapping[str, Enforcement] | None = None,
        outdated: Mapping[str, str] | None = None,
        overrides: Skips | None = None,
        **sample: Any,
    ) -> GateVerdict:
        """Decide by the answers, which are keyed by the names that decide.

        `history`: earlier runs, oldest first. `suspended`: why a judge is suspended, by its id.
        `accepted`: what an audited override makes of a judge's enforcement, by its id. `outdated`: the version that
        main has baselines of, where it has none of the judge's own. `overrides`: the central log, without which every
        judge of a rollout blocks. `sample`: what else is known of the sample, as fields of `Evidence`.
        """
        history, suspended, accepted, outdated = history or {}, suspended or {}, accepted or {}, outdated or {}
        if self.milestone is not Milestone.PRE_MERGE:
            ids = {judge.id for judge in self.judges.values()}
            known = overrides or Skips()
            held = {name for name in ids if known.may_warn(name, self.milestone, self.vertical, today)}
            accepted = dict.fromkeys(ids - held, Enforcement.BLOCK)
        beside = {
            name: judged(
                name, judge, self.milestone, answers.get(name, []), history.get(name, ()),
                suspended.get(judge.id, "") if judge.rule.enabled else OFF,
                today, accepted.get(judge.id), outdated.get(name, ""),
                self.defaults.may_be_not_applicable(name, self.milestone), float(self.defaults.cut_share),
            )
            for name, judge in self.judges.items()
        }  # fmt: skip
        # Before a merge there is no traffic yet; a rollout is never decided by datasets alone.
        traffic = self.milestone is not Milestone.PRE_MERGE
        production = sum(item.context == "online" for item in self.items) if traffic else None
        sample["mismatches"] = (*self.mismatches, *sample.get("mismatches", ()))
        evidence = Evidence.at(self.milestone, self.defaults, len(self.items), production=production, **sample)
        made = decide(self.milestone, beside, evidence)
        return skipped(made, self.skip) if self.skip is not None else made


def prepare(
    milestone: Milestone,
    items: Iterable[Item],
    names: Iterable[str] | None,
    registry: Registry,
    vertical: str | None,
    skip: GateSkip | None = None,
) -> Gate:
    """Make a gate of a sample as it came.

    `names` decide; None takes the judges of the items' categories, each for the items of its own, without those whose
    filter fits no item. In a rollout an item
    of a dataset is scored by those of them that fire on its category. `vertical` is the
    one that was named; without one it is the vertical that the items agree on. A vertical that is not registered has
    the platform's limits, as its signals are joined like any other's: who lets people type it asks `wrong_vertical`
    first, and a ramp step that mistypes it finds no trace in that vertical's pools. `skip` is an override that holds
    for this gate: only the safety judges are left. Raises UnknownJudge.
    """
    once = distinct(items)
    limits_of = vertical or served(once, registry.verticals)
    strangers = tuple(_strangers(once, vertical))
    unfit: set[str] = set()
    if names is None:
        once, names = _by_category(once, registry, limits_of)
        unfit = {name for name in names if _fits_none(registry.judge(name, limits_of), once)}
        names = [name for name in names if name not in unfit]
    elif milestone is not Milestone.PRE_MERGE:
        once = [_of_its_judges(item, registry, limits_of) for item in once]
    judges = deciding(names, registry, limits_of)
    if skip is not None:
        judges = {name: judge for name, judge in judges.items() if judge.safety}
    return Gate(milestone, limits_of, once, judges, registry.gates, strangers, skip, tuple(sorted(unfit)))


def _fits_none(judge: Judge, items: Iterable[Item]) -> bool:
    """Tells whether a judge of quality has a filter, and no item of a dataset and no trace fits it."""
    if judge.safety or judge.filter is None:
        return False
    return not any(item.context == "offline" or matches(judge.filter, item.source) for item in items)


def _of_its_judges(item: Item, registry: Registry, vertical: str | None) -> Item:
    """Returns an item of a dataset with the judges of its category; any other item as it is."""
    if item.context != "offline" or item.judges is not None:
        return item
    return replace(item, judges=judges_of(item.source, registry, vertical))


def _strangers(items: Iterable[Item], vertical: str | None) -> Iterator[str]:
    """Yields what traces of other verticals there are: the named one's limits may be looser than theirs. On the stream
    there are none, since it draws from the vertical's own pools."""
    if vertical is None:
        return
    named = Counter(vertical_named(item.source) for item in items if item.context == "online")
    for other, count in sorted(named.items()):
        if other not in ("", vertical):
            those = "trace is" if count == 1 else "traces are"
            yield f"{count} {those} of vertical {other[:80]!r}, and the gate is about {vertical!r}"


def wrong_vertical(named: str | None, registry: Registry) -> list[str]:
    """Returns why a named vertical is unknown, with the one that was probably meant; empty where it is registered.

    Its limits are not known, and the platform's may be looser.
    """
    if named is None or named in registry.verticals:
        return []
    return [f"vertical: no vertical {named!r}{near_miss(named, registry.verticals)}"]


def _by_category(items: Sequence[Item], registry: Registry, vertical: str | None) -> tuple[list[Item], list[str]]:
    """The items with the judges of their categories, and the ids of all those judges.

    An item of a category that the manifest does not have is for all of them.
    """
    firing = [firing_on(item.source, registry, vertical) for item in items]
    found = sorted(set[str]().union(*(judges or () for judges in firing)))
    return [replace(item, judges=judges) for item, judges in zip(items, firing, strict=True)], found


def deciding(names: Iterable[str], registry: Registry, vertical: str | None) -> dict[str, Judge]:
    """Map each name that decides, a judge's id or `judge.dimension`, to the judge as the vertical sees it."""
    return {name: registry.judge(name.partition(".")[0], vertical) for name in names}


def judged(
    name: str,
    judge: Judge,
    milestone: Milestone,
    answers: Sequence[Answer],
    past: Sequence[Past],
    suspended: str,
    today: date,
    enforcement: Enforcement | None = None,
    outdated: str = "",
    not_applicable_share: float = 0.5,
    cut_share: float = 0.1,
) -> Judged:
    """Put a judge's answers beside its limits at the milestone.

    `name` is the judge's id or `judge.dimension`; `past` its earlier runs, oldest first. `enforcement` is what an
    audited override makes of the judge's own; a safety judge keeps its own. `outdated` is the version that main has a
    baseline of, where it has none of this one. `not_applicable_share` is how much of its items it may pass over as not
    applicable, and `cut_share` of how much it may be shown a part alone.
    """
    _, _, dimension = name.partition(".")
    of = judge.dimensions[dimension] if dimension else judge
    late = [found for one in judge.rests_on if (found := overdue(one, today)) is not None]
    enforced = judge.enforcement[milestone] if enforcement is None or judge.safety else enforcement
    if judge.adjudications and not dimension:
        answers = adjudicated(answers, judge, today)
    return Judged(
        answers=collect(answers, judge.score_range),
        limits=Limits.of(of.thresholds[milestone], of.floor, judge.tolerance, enforced, past, outdated),
        scale=judge.score_range,
        boolean=judge.score_type is ScoreType.BOOLEAN,
        version=judge.version,
        overdue_days=max((one.days for one in late if one.provisional), default=0),
        suspended=suspended,
        suspension=Enforcement.BLOCK if judge.safety else Enforcement.WARN,
        standing=standing(judge, today),
        recalibration_due=min(one.recalibration_due for one in judge.rests_on).isoformat(),
        not_applicable_share=not_applicable_share,
        cut_share=cut_share,
        noise=None if dimension else judge.noise,
        confirmation=judge.rule.confirmation,
        unasked=f"its filter ({judge.filter.words}) fits none" if judge.filter is not None and not answers else "",
    )


def adjudicated(answers: Sequence[Answer], judge: Judge, today: date) -> list[Answer]:
    """Returns the answers, those replaced about which a person says today what they count as: the last entry about an
    item. It is bound to all that the judge read of the item, by its hash, and to the judge's version, so that it is of
    no other output and of no other rubric; and it never scores what the judge did not."""
    held = {one.item: one for one in judge.adjudications if one.adjudicated_on <= today <= one.expires}
    out = []
    for answer in answers:
        if isinstance(answer, Scored) and answer.about is not None and (said := held.get(answer.about.digest)):
            answer = Scored(float(said.score), answer.weight, replace(answer.about, adjudication=said), answer.cut)
        out.append(answer)
    return out
