"""What a suspended judge does to a gate, by every way: a safety judge fails it, a quality judge decides nothing. A
verdict says what its sample could have seen, by each judge's measured noise, and how often a clean candidate passes."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.gates.decision import Evidence, decide
from evalcore.gates.evaluate import aevaluate_gate
from evalcore.gates.gate import judged, prepare
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Answer, NotApplicable, Scored
from schemas.judges import Milestone
from schemas.verdicts import Code, GateVerdict, JudgeScore, JudgeStanding, VerdictLevel
from tests.unit.evalcore.gates.gate_items import Model, items
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY

QUALITY, SAFETY = "helpfulness", "refusal"
WHY = "by its check of canaries on 2026-11-01: 12 of 12 items raised"


@pytest.fixture(scope="module")
def registry() -> Registry:
    return built()


def gate(registry: Registry, answers: dict[str, list[Answer]], *suspended: str) -> GateVerdict:
    at = Milestone.PRE_FULL
    beside = {
        name: judged(name, registry.judge(name), at, said, (), WHY if name in suspended else "", TODAY)
        for name, said in answers.items()
    }
    return decide(at, beside, Evidence(100, 10))


def scored(value: float) -> list[Answer]:
    return [Scored(value)] * 100


def codes(verdict: GateVerdict) -> list[Any]:
    return [reason.code for reason in verdict.reasons]


def test_a_suspended_safety_judge_fails_the_gate_however_well_it_scores(registry: Registry) -> None:
    found = gate(registry, {QUALITY: scored(5), SAFETY: scored(1)}, SAFETY)
    assert (found.verdict, codes(found), found.failing_judges) == (VerdictLevel.FAIL, [Code.JUDGE_SUSPENDED], [SAFETY])
    assert WHY in found.reasons[0].message


@pytest.mark.parametrize(
    "answers", [scored(5), scored(1), [], [NotApplicable()] * 100], ids=["best", "worst", "none", "na"]
)
def test_a_suspended_quality_judge_decides_nothing_and_the_gate_warns_at_best(
    registry: Registry, answers: list[Answer]
) -> None:
    found = gate(registry, {QUALITY: answers, SAFETY: scored(1)}, QUALITY)
    assert (found.verdict, codes(found)) == (VerdictLevel.WARN, [Code.JUDGE_SUSPENDED])
    assert found.per_judge_scores[QUALITY].standing is JudgeStanding.SUSPENDED
    assert found.per_judge_scores[QUALITY].passed is False


def test_beside_a_suspended_quality_judge_the_others_decide_as_ever(registry: Registry) -> None:
    found = gate(registry, {QUALITY: scored(5), SAFETY: scored(0)}, QUALITY)
    assert found.verdict is VerdictLevel.FAIL
    assert Code.FLOOR_BREACH in codes(found)


def test_where_every_judge_is_suspended_the_gate_fails(registry: Registry) -> None:
    """A guard that can be switched off by suspending its only judge would be none."""
    found = gate(registry, {QUALITY: scored(5)}, QUALITY)
    assert (found.verdict, set(codes(found))) == (VerdictLevel.FAIL, {Code.JUDGE_SUSPENDED})


@pytest.mark.parametrize(("name", "level"), [(QUALITY, VerdictLevel.WARN), (SAFETY, VerdictLevel.FAIL)])
def test_a_judge_that_is_switched_off_and_asked_for_by_name_is_suspended(name: str, level: VerdictLevel) -> None:
    off = prepare(Milestone.PRE_MERGE, [], [QUALITY, SAFETY], built({f"rules/{name}.yaml": "enabled: false"}), None)
    found = off.verdict({QUALITY: scored(5), SAFETY: scored(1)}, TODAY)
    suspended = [one.message for one in found.reasons if one.code is Code.JUDGE_SUSPENDED]
    assert len(suspended) == 1
    assert name in suspended[0]
    assert "enabled: false" in suspended[0]
    beside = decide(Milestone.PRE_MERGE, {name: judged(name, off.judges[name], Milestone.PRE_MERGE, scored(1), (),
                    "off", TODAY), "brevity": judged("brevity", built().judge("brevity"), Milestone.PRE_MERGE,
                    scored(5), (), "", TODAY)}, Evidence(100, 10))  # fmt: skip
    assert beside.verdict is level


ENTRY = (
    "{judge: %s, judge_version: %s, measured_on: 2026-11-20, items: 40, asks: 5, flip_rate: 0.01, "
    "flip_rate_ci95: [0.0, 0.1], deviation: 0.5, deviation_ci95: [0.4, 0.6], false_alarm_rate: 0.003}"
)


def with_noise(**rules: str) -> Registry:
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
    once = await score(with_noise(), "honesty")
    thrice = await score(with_noise(honesty="confirmation: {asks: 3, failing: 2}"), "honesty")
    assert (once.clean_pass_probability, once.noise_measured_on) == (pytest.approx(0.3547, abs=1e-4), "2026-11-20")
    assert thrice.clean_pass_probability == pytest.approx(0.9938, abs=1e-4)
    assert once.detectable_drop == pytest.approx(0.00166, abs=1e-4)
    assert thrice.detectable_drop == pytest.approx(0.00465, abs=1e-4)


async def test_a_graded_judges_power_is_known_where_its_baseline_is() -> None:
    """A mean has no natural best: what it falls from is the baseline."""
    of = with_noise()
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

    noisy, plain = await verdict(with_noise()), await verdict(built())
    assert (noisy.verdict, noisy.reasons, noisy.failing_judges) == (plain.verdict, plain.reasons, plain.failing_judges)
    assert with_noise().config_hash != built().config_hash
