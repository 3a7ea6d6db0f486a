"""The verdict of a gate, from judges' answers and what is known of the sample. Pure (PC5 §5.5; contracts §3).

What could not be scored counts at its worst value. If the gate's verdict would be another one had it been scored best,
the verdict is unknown: the gate fails with `judge_unavailable`, or with `unreadable_item` where most of what a judge
could not score lacks what it reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from evalcore.gates.chance import absences, chance_reaches, falls
from evalcore.gates.judged import Judged
from evalcore.gates.limits import Aggregate, Fall, Standing, aggregate, deviation, effective, figure, stands
from evalcore.registry.judge import MESSAGE_FORM
from evalcore.scoring.answers import ItemAnswers
from evalcore.stats.multiple_tests import CONFIRMED, SUSPECTED
from schemas.judges import Enforcement, Milestone
from schemas.manifests import GateDefaults
from schemas.verdicts import Code, GateVerdict, JudgeScore, JudgeStanding, QuestionedItem, Reason, VerdictLevel

if TYPE_CHECKING:
    from evalcore.stats.power import Figures

_ORDER = tuple(VerdictLevel)
_PASSED = Standing(VerdictLevel.PASS)
QUESTIONED = 10
"""Items that a verdict shows of one judge."""
NAMED = 5
"""Failed items that a reason names."""
LONGEST_ITEM = 64
"""Signs of an item's id in a verdict: those of a SHA-256."""
_BY_ITEMS = (Code.FLOOR_BREACH, Code.BELOW_THRESHOLD, Code.REGRESSED)


@dataclass(frozen=True)
class Evidence:
    """What is known of the sample as a whole. It has `size` items and the gate needs `minimum`; `scored` of them must
    be each judge's own. `coverage` is the join's rate, None where no turn has any; it is asked for at gates on traffic
    only, by a `coverage_floor`. `production` of the items are production's, None where none are asked for.
    `mismatches`: what of the datasets is not what the manifest says."""

    size: int
    minimum: int
    scored: int = 1
    coverage: float | None = None
    coverage_floor: float | None = None
    production: int | None = None
    mismatches: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    """Why the sample is not the traffic (`evalcore.gates.composition`)."""
    shortage: str = ""
    """Says where the items of too small a sample come from; a reason `insufficient_sample` quotes it."""

    @classmethod
    def at(cls, milestone: Milestone, gates: GateDefaults, size: int, **more: Any) -> Self:
        """Makes the evidence of a sample of this size, with the manifest's minimums at the milestone."""
        minimum = gates.minimum_sample[milestone]
        return cls(size, minimum, min(gates.minimum_scored[milestone], minimum), **more)


@dataclass
class _Gate:
    milestone: Milestone
    scores: dict[str, JudgeScore] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    levels: list[VerdictLevel] = field(default_factory=list)

    def say(self, level: VerdictLevel, code: Code, message: str) -> None:
        self.levels.append(level)
        self.reasons.append(Reason(code, message))


def decide(milestone: Milestone, judged: Mapping[str, Judged], evidence: Evidence) -> GateVerdict:
    """`judged` by judge id, or `judge.dimension`; a gate without judges fails, it has nothing to go by."""
    gate = _Gate(milestone)
    for rule in GATE_RULES:
        for broken in rule(milestone, judged, evidence):
            gate.say(VerdictLevel.FAIL, broken.code, broken.message)
    aggregates = {name: aggregate(one.answers, one.scale, one.boolean) for name, one in judged.items()}
    # A sample that is too small is one reason; that each judge then has too few items is not told again.
    least = evidence.scored if evidence.size >= evidence.minimum else 1
    # Before a merge the items are the same each time, and what is below a limit is there by more than chance.
    traffic = milestone is not Milestone.PRE_MERGE
    at_worst = {name: found.worst for name, found in aggregates.items()}
    at_best = {name: found.best for name, found in aggregates.items()}
    fell = falls(judged, at_worst) if traffic else {}
    fell_at_best = falls(judged, at_best, best=True) if traffic else {}
    absent = absences(judged) if traffic else {}
    # A suspended judge's N/A decides nothing either.
    few = {
        name: _applicable(name, one, absent.get(name, 0.0)) if not one.suspended else _PASSED
        for name, one in judged.items()
    }
    cut = {name: _shown_enough(name, one) if not one.suspended else _PASSED for name, one in judged.items()}
    # Nor is it told again of a judge that called nearly all of its items not applicable.
    needs = {name: 0 if few[name].level is VerdictLevel.FAIL else least for name in judged}
    worst = {
        name: _stands(name, one, at_worst[name], milestone, needs[name], fell.get(name)) for name, one in judged.items()
    }
    best = {
        name: _stands(name, one, at_best[name], milestone, needs[name], fell_at_best.get(name))
        for name, one in judged.items()
    }
    late = {name: _overdue(name, one, milestone) for name, one in judged.items()}
    anyway = [*gate.levels, *_levels(few), *_levels(cut), *_levels(late)]
    known = combined([*anyway, *_levels(worst)]) is combined([*anyway, *_levels(best)])
    outdated: dict[str, Standing] = {}
    for name in sorted(judged):
        one, standing = judged[name], worst[name]
        differs = standing.level is not best[name].level and not known
        if one.answers.missing and not one.suspended and (differs or not one.answers.values):
            level = combined([standing.level, _failing(one)]) if known else VerdictLevel.FAIL
            standing = _unknown(name, one, aggregates[name], level)
        elif not standing.passed and one.answers.missing:
            standing = replace(standing, message=f"{standing.message}; {_missing(one)} count at their worst")
        if standing.code in _BY_ITEMS and (failed := _failed(one)):
            standing = replace(standing, message=f"{standing.message}; {failed}")
        against = [found for found in (standing, few[name], cut[name], late[name]) if not found.passed]
        for found in against:
            if found.code is Code.REGRESSED and one.limits.baseline is None:
                outdated[name] = found
            else:
                gate.say(found.level, found.code, found.message)
        power = _power(one, milestone, len(fell))
        gate.scores[name] = _score(one, aggregates[name], against, fell.get(name), power)
    if outdated:
        gate.say(combined(_levels(outdated)), Code.REGRESSED, _said_once(outdated))
    failing = [name for name in sorted(judged) if not gate.scores[name].passed]
    return GateVerdict(gate.scores, combined(gate.levels), failing, milestone, gate.reasons)


def combined(levels: list[VerdictLevel]) -> VerdictLevel:
    """The worst one decides."""
    return max(levels, key=_ORDER.index, default=VerdictLevel.PASS)


def dataset_is_the_manifests(
    milestone: Milestone, judged: Mapping[str, Judged], evidence: Evidence
) -> Iterator[Reason]:
    for mismatch in evidence.mismatches:
        yield Reason(Code.DATASET_MISMATCH, mismatch)


def sample_is_large_enough(milestone: Milestone, judged: Mapping[str, Judged], evidence: Evidence) -> Iterator[Reason]:
    """The sample has the manifest's minimum of items, and where production ones are asked for at least one of them."""
    least = max(evidence.minimum, 1)
    if evidence.size < least:
        message = f"the sample has {evidence.size} of the {least} items that {milestone} needs"
        message += f", {least - evidence.size} are missing{_looked(evidence)}"
        yield Reason(Code.INSUFFICIENT_SAMPLE, message)
    elif evidence.production == 0:
        message = f"none of the sample's {evidence.size} items is of production, and {milestone} needs some"
        yield Reason(Code.INSUFFICIENT_SAMPLE, f"{message}{_looked(evidence)}")


def sample_is_the_traffic(milestone: Milestone, judged: Mapping[str, Judged], evidence: Evidence) -> Iterator[Reason]:
    for why in evidence.incomplete:
        yield Reason(Code.SAMPLE_INCOMPLETE, why)


def coverage_is_above_its_floor(
    milestone: Milestone, judged: Mapping[str, Judged], evidence: Evidence
) -> Iterator[Reason]:
    floor = evidence.coverage_floor
    if floor is not None and (evidence.coverage is None or not evidence.coverage >= floor):
        rate = "not known" if evidence.coverage is None else figure(evidence.coverage)
        message = f"the join's coverage is {rate}; the manifest's coverage_floor is {figure(floor)}"
        yield Reason(Code.COVERAGE_TOO_LOW, message)


def a_judge_decides(milestone: Milestone, judged: Mapping[str, Judged], evidence: Evidence) -> Iterator[Reason]:
    if not judged:
        yield Reason(Code.INVALID_REQUEST, "no judge to decide by")
    elif all(one.suspended and one.suspension is Enforcement.WARN for one in judged.values()):
        yield Reason(Code.JUDGE_SUSPENDED, "every judge is suspended, so that none decides")


GateRule = Callable[[Milestone, Mapping[str, Judged], Evidence], Iterator[Reason]]
"""Yields why the gate fails, whatever its judges say; nothing where the rule is kept."""
GATE_RULES: tuple[GateRule, ...] = (
    dataset_is_the_manifests,
    sample_is_large_enough,
    sample_is_the_traffic,
    coverage_is_above_its_floor,
    a_judge_decides,
)
"""The rules of every gate, in the order in which a verdict gives their reasons. A new rule is a line here."""


def _looked(evidence: Evidence) -> str:
    return f"; {evidence.shortage}" if evidence.shortage else ""


def _stands(
    name: str, one: Judged, score: float | None, milestone: Milestone, least: int, fall: Fall | None = None
) -> Standing:
    """`least`: items that the judge must have had to score. A few that fall short decide all the same."""
    if one.suspended:
        level = VerdictLevel.FAIL if one.suspension is Enforcement.BLOCK else VerdictLevel.WARN
        return Standing(level, Code.JUDGE_SUSPENDED, f"{name} is suspended: {one.suspended}")
    found = stands(name, score, one.limits, milestone, fall) if score is not None else Standing(VerdictLevel.PASS)
    if not found.passed or one.answers.n >= least:
        return found
    had = f"{one.answers.n} of the {least} items that it needs" if score is not None else "no item"
    why = one.unasked and f"; {one.unasked}"
    message = f"{name} has {had} to score, {one.answers.not_applicable} were not applicable{why}"
    return Standing(_failing(one), Code.INSUFFICIENT_SAMPLE, message)


def _applicable(name: str, one: Judged, p: float) -> Standing:
    """A judge that calls too many items not applicable fails the gate, whatever its enforcement: the few that it scored
    say little of the rest, and N/A would be the cheapest way around a low score. `p`: how often chance alone gives as
    many."""
    absent, items = one.answers.not_applicable, one.answers.n + one.answers.not_applicable
    if absent <= one.not_applicable_share * items or p > SUSPECTED:
        return Standing(VerdictLevel.PASS)
    limit = f"the manifest's not_applicable_share allows {figure(one.not_applicable_share)} of them"
    message = f"{name} called {absent} of its {items} items not applicable; {limit}"
    if p > CONFIRMED:
        message = f"{message}, and by chance (p = {p:.2g} over all judges of the gate) it may be so many"
        return Standing(VerdictLevel.WARN, Code.TOO_FEW_APPLICABLE, message)
    return Standing(VerdictLevel.FAIL, Code.TOO_FEW_APPLICABLE, message)


def _shown_enough(name: str, one: Judged) -> Standing:
    """A judge that was not shown all of too many items can't say how good they are: what is left out of a padded text
    is where a fault would be put."""
    cut, items = one.answers.cut, one.answers.n + one.answers.not_applicable
    if cut <= one.cut_share * items:
        return _PASSED
    limit = f"the manifest's cut_share allows {figure(one.cut_share)} of them"
    message = f"{name} was shown a part alone of {cut} of its {items} items; {limit}"
    return Standing(_failing(one), Code.JUDGE_UNAVAILABLE, message)


def _said_once(outdated: Mapping[str, Standing]) -> str:
    """Returns one message about all judges of whose versions main has no baseline, as after a change of the form of
    messages."""
    if len(outdated) == 1:
        return next(iter(outdated.values())).message
    said = f"main's baselines of {len(outdated)} judges are of their versions before a change of rubric, model or"
    said += f" binding, or of the form of all messages (now {MESSAGE_FORM}): no one knows whether they regressed"
    return f"{said} ({', '.join(outdated)}); make the baselines again, or accept the shift"


def _failed(one: Judged) -> str:
    """Names the items of which a BOOLEAN judge said false, which are traces on traffic; empty where there is none."""
    failed = sorted(about.item[:LONGEST_ITEM] for about, value in one.answers.questioned if value <= 0.0)
    more = f" and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
    return f"false for {', '.join(failed[:NAMED])}{more}" if failed else ""


def _unknown(name: str, one: Judged, found: Aggregate, level: VerdictLevel) -> Standing:
    between = f"{figure(found.worst or 0.0)} and {figure(found.best or 0.0)}"
    lacking = one.answers.unreadable
    message = f"{name} could not score {_missing(one)}; its score lies between {between}"
    if not lacking:
        return Standing(level, Code.JUDGE_UNAVAILABLE, message)
    code = Code.UNREADABLE_ITEM if 2 * lacking >= len(one.answers.missing) else Code.JUDGE_UNAVAILABLE
    return Standing(level, code, f"{message}; {lacking} of them lack what it reads")


def _missing(one: Judged) -> str:
    why = f" ({'; '.join(one.answers.why)})" if one.answers.why else ""
    return f"{len(one.answers.missing)} of {one.answers.n} items{why}"


def _failing(one: Judged) -> VerdictLevel:
    return VerdictLevel.FAIL if one.limits.enforcement is Enforcement.BLOCK else VerdictLevel.WARN


def _overdue(name: str, one: Judged, milestone: Milestone) -> Standing:
    """A provisional seed past its day warns at pre_merge and blocks afterwards (PF-9 AC-9)."""
    if one.overdue_days <= 0:
        return Standing(VerdictLevel.PASS)
    level = VerdictLevel.WARN if milestone is Milestone.PRE_MERGE else VerdictLevel.FAIL
    message = f"the provisional seed of {name} is {one.overdue_days} days past its recalibration_due"
    return Standing(level, Code.PROVISIONAL_OVERDUE, message)


def _levels(standings: Mapping[str, Standing]) -> list[VerdictLevel]:
    return [standing.level for standing in standings.values()]


def _score(
    one: Judged, found: Aggregate, against: Sequence[Standing], fall: Fall | None, power: Figures | None
) -> JudgeScore:
    limits = one.limits
    told = one.answers.questioned
    again = [value for about, value in told if len(about.said) > 1 and about.adjudication is None]
    return JudgeScore(
        score=found.worst,
        threshold=limits.threshold,
        passed=not against,
        enforcement=limits.enforcement,
        n=one.answers.n,
        unscored=len(one.answers.missing),
        not_applicable=one.answers.not_applicable,
        judged_cut=one.answers.cut,
        floor=limits.floor,
        tolerance=limits.tolerance,
        baseline=limits.baseline,
        baseline_runs=len(limits.runs),
        ci95=found.ci95,
        rule=against[0].code if against else None,
        judge_version=one.version,
        standing=JudgeStanding.SUSPENDED if one.suspended else one.standing,
        recalibration_due=one.recalibration_due,
        asked_again=len(again),
        overturned=sum(value > 0.0 for value in again),
        adjudicated=sum(about.adjudication is not None for about, _ in told),
        questioned=_questioned(told),
        detectable_drop=power.detectable_drop if power else None,
        clean_pass_probability=power.clean_pass if power else None,
        noise_measured_on=one.noise.measured_on.isoformat() if one.noise else None,
        verdict=combined([standing.level for standing in against]),
        error=found.error,
        compared=fall.compared if fall else None,
        p_value=fall.p_value if fall else None,
        items_needed=fall.items_needed if fall else None,
        unreadable=one.answers.unreadable,
    )


def _power(one: Judged, milestone: Milestone, compared: int) -> Figures | None:
    """What the judge's noise makes of this sample, or on traffic the spread of its scores; None where neither is known,
    and for a mean without a baseline, of which it is unknown what it is when nothing fell. So many judges are
    `compared` with their baselines."""
    noise, limits, answers = one.noise, one.limits, one.answers
    traffic = milestone is not Milestone.PRE_MERGE
    if not answers.values or (noise is None and not (traffic and limits.runs)):
        return None
    from evalcore.stats import power

    items = effective(answers.weights)
    kept = -math.inf
    if limits.baseline is not None:
        kept = limits.baseline - max(limits.tolerance, chance_reaches(one, compared) if traffic else 0.0)
    limit = max(limits.threshold, limits.floor, kept)
    if one.boolean:
        if noise is None:
            usual = 1 - (limits.baseline or 0.0)
            return power.of_rate(usual, 0.0, 0.0, power.Confirmed(), max(int(items), 1), limit)
        alarms = noise.false_alarm_rate
        if alarms is None:
            return None
        rule = (
            power.Confirmed(one.confirmation.asks, one.confirmation.failing) if one.confirmation else power.Confirmed()
        )
        misses = alarms if noise.miss_rate is None else noise.miss_rate
        return power.of_rate(float(alarms), float(misses), float(noise.correlation), rule, max(int(items), 1), limit)
    if limits.baseline is None:
        return None
    # A dataset's items are the same in each run; a sample of traffic has others each time.
    varies = deviation(answers) if traffic or noise is None else float(noise.deviation)
    runs = len(limits.runs) if limit == kept else 0
    return power.of_mean(varies, items, limits.baseline, limit, one.scale[1] - one.scale[0], runs)


def _questioned(found: Sequence[tuple[ItemAnswers, float]]) -> tuple[QuestionedItem, ...]:
    """What a person said comes first, then what counts as false, then by the item's id: the same evidence makes the
    same verdict."""
    first = sorted(found, key=lambda one: (one[0].adjudication is None, one[1], one[0].item))[:QUESTIONED]
    return tuple(_shown(about, value) for about, value in first)


def _shown(about: ItemAnswers, value: float) -> QuestionedItem:
    answers = tuple(None if said is None else said > 0.0 for said in about.said)
    person = about.adjudication
    return QuestionedItem(
        about.item[:LONGEST_ITEM], answers, value > 0.0, about.digest,
        person.adjudicated_by if person else None, person.expires.isoformat() if person else None,
    )  # fmt: skip
