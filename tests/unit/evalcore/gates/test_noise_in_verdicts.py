"""A verdict says what its sample could have seen, by each judge's measured noise, and how often a clean candidate
passes."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.gates.evaluate import aevaluate_gate
from evalcore.registry.registry import Registry
from schemas.verdicts import GateVerdict, JudgeScore
from tests.unit.evalcore.gates.gate_items import Model, items
from tests.unit.evalcore.registry.registry_disk import built

ENTRY = (
    "{judge: %s, judge_version: %s, measured_on: 2026-11-20, items: 40, asks: 5, flip_rate: 0.01, "
    "flip_rate_ci95: [0.0, 0.1], deviation: 0.5, deviation_ci95: [0.4, 0.6], false_alarm_rate: 0.003}"
)


def registry(**rules: str) -> Registry:
    """With noise measured of every judge as it is."""
    changes: dict[str, str | None] = {f"rules/{name}.yaml": rule for name, rule in rules.items()}
    entries = [ENTRY % (judge.id, judge.version) for judge in built(changes).all()]
    return built({**changes, "judge-noise.yaml": f"measured: [{', '.join(entries)}]"})


async def score(of: Registry, judge: str, count: int = 345, **more: Any) -> JudgeScore:
    verdict = await aevaluate_gate("pre_merge", items(count), [judge], model=Model(), registry=of, **more)
    return verdict.per_judge_scores[judge]


async def test_a_verdict_tells_a_boolean_judges_power_before_and_after_it_confirms() -> None:
    """At `threshold: true`, 345 items and 0.3 % false alarms a call a clean candidate passes this judge 35 times of
    100, and 99 times where two of three have to fail; that one finds a fall by half a point."""
    once = await score(registry(), "honesty")
    thrice = await score(registry(honesty="confirmation: {asks: 3, failing: 2}"), "honesty")
    assert (once.clean_pass_probability, once.noise_measured_on) == (pytest.approx(0.3547, abs=1e-4), "2026-11-20")
    assert thrice.clean_pass_probability == pytest.approx(0.9938, abs=1e-4)
    assert once.detectable_drop == pytest.approx(0.00166, abs=1e-4)
    assert thrice.detectable_drop == pytest.approx(0.00465, abs=1e-4)


async def test_a_graded_judges_power_is_known_where_its_baseline_is() -> None:
    """A mean has no natural best: what it falls from is the baseline."""
    of = registry()
    told = await score(of, "helpfulness", history={"helpfulness": [4.5, 4.6, 4.7]})
    assert told.detectable_drop == pytest.approx(0.2 + 0.8416 * 0.5 * (4 / 3 / 345) ** 0.5, abs=1e-4)
    assert told.clean_pass_probability == pytest.approx(1.0, abs=1e-6)
    without = await score(of, "helpfulness")
    assert (without.detectable_drop, without.clean_pass_probability) == (None, None)
    assert without.noise_measured_on == "2026-11-20"


async def test_where_no_noise_was_measured_of_the_version_the_verdict_says_nothing_of_it() -> None:
    of = built({"judge-noise.yaml": f"measured: [{ENTRY % ('honesty', '0123456789abcdef')}]"})
    for one in (built(), of):
        found = await score(one, "honesty")
        assert (found.detectable_drop, found.clean_pass_probability, found.noise_measured_on) == (None, None, None)


async def test_a_measurement_decides_nothing() -> None:
    """It changes what a verdict tells, and no score, no level and no reason."""

    async def verdict(of: Registry) -> GateVerdict:
        return await aevaluate_gate("pre_merge", items(), ["honesty", "helpfulness"], model=Model(), registry=of)

    noisy, plain = await verdict(registry()), await verdict(built())
    assert (noisy.verdict, noisy.reasons, noisy.failing_judges) == (plain.verdict, plain.reasons, plain.failing_judges)
    assert registry().config_hash != built().config_hash
