"""What chance does to a gate on traffic, whose items are others each time: which falls below a baseline, and which
shares of N/A, are more than that. Pure.

Each is a one-sided test with Holm's correction over the gate's judges, and for both of them. At 5 % it is confirmed, at
20 % it may be. Before a merge the items are the same each time, and nothing is tested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evalcore.gates.judged import Judged
from evalcore.gates.limits import Fall, Limits, deviation, effective
from evalcore.scoring.answers import Answers
from evalcore.stats.mean_fall import Sample, common, fall_p, items_to_tell, pooled
from evalcore.stats.multiple_tests import CONFIRMED, SUSPECTED, TESTS, holm
from schemas.verdicts import Compared


def falls(judged: Mapping[str, Judged], scores: Mapping[str, float | None], *, best: bool = False) -> dict[str, Fall]:
    """Returns how the score of each judge that has a baseline compares with it. Unscored items count at the scale's
    lower end, or with `best` at its upper one."""
    sides = {
        name: (_now(one, best), _before(one.limits, one.answers, one.scale))
        for name, one in judged.items()
        if one.limits.runs and scores[name] is not None and not one.suspended
    }
    fallen = {name: judged[name].limits.falls(scores[name] or 0.0) for name in sides}
    # A judge that is within its tolerance is no worse, whatever chance says; it counts among those that were looked at.
    adjusted = _over_all([fall_p(*pair) if fallen[name] else 1.0 for name, pair in sides.items()])
    return {
        name: _fall(judged[name], *sides[name], p, len(sides)) if fallen[name] else Fall(Compared.HOLDS)
        for name, p in zip(sides, adjusted, strict=True)
    }


def _fall(one: Judged, now: Sample, before: Sample, p: float, judges: int) -> Fall:
    if p <= CONFIRMED:
        return Fall(Compared.WORSE, p)
    if p <= SUSPECTED:
        return Fall(Compared.NOT_CONFIRMED, p)
    spread = common(now, before).variance
    needed = items_to_tell(before.mean - now.mean, spread, len(one.limits.runs), CONFIRMED / judges / TESTS)
    return Fall(Compared.CANNOT_TELL, p, max(needed, one.answers.n + 1))


def absences(judged: Mapping[str, Judged]) -> dict[str, float]:
    """Returns, by judge, the chance of as many N/A as it gave where their true share is the manifest's bound."""
    from scipy import special

    def alone(one: Judged) -> float:
        absent, items = one.answers.not_applicable, one.answers.n + one.answers.not_applicable
        return (
            float(special.bdtrc(absent - 1, items, one.not_applicable_share)) if absent and not one.suspended else 1.0
        )

    return dict(zip(judged, _over_all([alone(one) for one in judged.values()]), strict=True))


def _over_all(p_values: Sequence[float]) -> list[float]:
    return [min(p * TESTS, 1.0) for p in holm(p_values)]


def chance_reaches(one: Judged, judges: int) -> float:
    """Returns how far below its baseline a judge has to score, one of so many, to be confirmed as worse."""
    from scipy import special

    low, high = one.scale
    before = _before(one.limits, one.answers, one.scale)
    items = effective(one.answers.weights)
    error = deviation(one.answers) * math.sqrt(1 / items + 1 / before.items)
    return min(float(-special.ndtri(CONFIRMED / max(judges, 1) / TESTS)) * error, high - low)


def _now(one: Judged, best: bool) -> Sample:
    low, high = one.scale
    answers = one.answers
    values = (*answers.values, *(high if best else low for _ in answers.missing))
    return _sample(values, (*answers.weights, *answers.missing), one.scale)


def _sample(values: tuple[float, ...], weights: tuple[float, ...], scale: tuple[float, float]) -> Sample:
    low, high = scale
    total = math.fsum(weights)
    shares = [(value - low) / (high - low) for value in values]
    mean = math.fsum(share * weight for share, weight in zip(shares, weights, strict=True)) / total
    spread = math.fsum((share - mean) ** 2 * weight for share, weight in zip(shares, weights, strict=True)) / total
    return Sample(effective(weights), min(max(mean, 0.0), 1.0), spread)


def _before(limits: Limits, answers: Answers, scale: tuple[float, float]) -> Sample:
    """The runs of the baseline. One that was kept without its number of items, or its error, has those of this gate."""
    low, high = scale
    own = _sample(answers.values, answers.weights, scale) if answers.values else Sample(answers.n, 0.0, 0.0)
    runs = []
    for run in limits.runs:
        items = run.n or own.items
        mean = min(max((run.score - low) / (high - low), 0.0), 1.0)
        known = None if run.error is None else (run.error / (high - low)) ** 2 * max(items - 1, 0)
        runs.append(Sample(items, mean, min(own.variance if known is None else known, mean * (1 - mean))))
    return pooled(runs)
