"""The decision of a gate, case by case (PC5 §5.4, §5.5, AC-3, AC-4; contracts §3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evalcore.gates.decision import Evidence, Judged, decide
from evalcore.gates.limits import Limits
from evalcore.scoring.answers import Answer, NotApplicable, Scored, Unscored, collect
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import Code, GateVerdict, VerdictLevel

BLOCK, WARN = Enforcement.BLOCK, Enforcement.WARN
PRE_MERGE, PRE_RAMP, PRE_FULL = Milestone
FIVE = (1.0, 5.0)
ENOUGH = Evidence(size=100, minimum=20)
DOWN = Unscored("the model did not answer")


def judged(
    *answers: Answer,
    threshold: float = 4.0,
    floor: float = 2.0,
    tolerance: float = 0.25,
    enforcement: Enforcement = BLOCK,
    history: tuple[float, ...] = (),
    outdated: str = "",
) -> Judged:
    limits = Limits.of(threshold, floor, tolerance, enforcement, history, outdated)
    return Judged(collect(answers, FIVE), limits, FIVE, version="v1")


def scored(*values: float) -> tuple[Scored, ...]:
    return tuple(map(Scored, values))


def gate(evidence: Evidence = ENOUGH, milestone: Milestone = PRE_RAMP, **judges: Judged) -> GateVerdict:
    return decide(milestone, judges, evidence)


def codes(verdict: GateVerdict) -> list[Code]:
    return [reason.code for reason in verdict.reasons]


@pytest.mark.parametrize(
    ("one", "level", "code"),
    [
        (judged(*scored(4, 4, 4)), VerdictLevel.PASS, None),
        (judged(*scored(3, 4, 4)), VerdictLevel.FAIL, Code.BELOW_THRESHOLD),
        (judged(*scored(3, 4, 4), enforcement=WARN), VerdictLevel.WARN, Code.BELOW_THRESHOLD),
        (judged(*scored(1, 2, 2)), VerdictLevel.FAIL, Code.FLOOR_BREACH),
        (judged(*scored(1, 2, 2), enforcement=WARN), VerdictLevel.FAIL, Code.FLOOR_BREACH),
        (judged(*scored(4, 4, 4), history=(4.2, 4.3, 4.4)), VerdictLevel.FAIL, Code.REGRESSED),
        (judged(*scored(4, 4, 4), history=(4.2, 4.3, 4.4), enforcement=WARN), VerdictLevel.WARN, Code.REGRESSED),
        (judged(*scored(4, 4, 4), history=(4.25, 4.25, 4.25)), VerdictLevel.PASS, None),
        (judged(*scored(4, 4, 4), history=(5.0, 4.0, 4.0, 4.0)), VerdictLevel.PASS, None),
        (judged(*scored(4, 4, 4), history=(5.0,)), VerdictLevel.WARN, Code.REGRESSED),
        (judged(*scored(4, 4, 4), outdated="v0"), VerdictLevel.FAIL, Code.REGRESSED),
        (judged(*scored(4, 4, 4), outdated="v0", enforcement=WARN), VerdictLevel.WARN, Code.REGRESSED),
        (judged(*scored(4, 4, 4), outdated="v0", history=(4.0,)), VerdictLevel.PASS, None),
        (judged(*scored(1, 2, 2), outdated="v0", enforcement=WARN), VerdictLevel.FAIL, Code.FLOOR_BREACH),
    ],
    ids=[
        "at its threshold",
        "below its threshold",
        "below its threshold, warns",
        "below its floor",
        "below its floor blocks whatever enforcement says",
        "regressed",
        "regressed, warns",
        "exactly its baseline less tolerance",
        "only the last three runs are the baseline",
        "one run is a baseline too, of which three items confirm nothing",
        "main's baseline is of another version of the judge",
        "main's baseline is of another version of the judge, warns",
        "main has one of this version, too",
        "below its floor, whatever main has",
    ],
)
def test_what_one_judge_makes_of_a_gate(one: Judged, level: VerdictLevel, code: Code | None) -> None:
    verdict = gate(only=one)
    assert (verdict.verdict, verdict.per_judge_scores["only"].rule) == (level, code)
    assert codes(verdict) == ([code] if code else [])
    assert verdict.failing_judges == (["only"] if code else [])


def test_the_worst_judge_decides_and_every_failing_one_is_named() -> None:
    verdict = gate(a=judged(*scored(5, 5)), b=judged(*scored(3, 3), enforcement=WARN), c=judged(*scored(3, 3)))
    assert (verdict.verdict, verdict.failing_judges) == (VerdictLevel.FAIL, ["b", "c"])
    assert gate(b=judged(*scored(3, 3), enforcement=WARN), a=judged(*scored(5, 5))).verdict is VerdictLevel.WARN


def test_a_reason_carries_the_number_the_limit_and_the_rule() -> None:
    (reason,) = gate(tone=judged(*scored(3, 4))).reasons
    assert reason.code is Code.BELOW_THRESHOLD
    assert all(part in reason.message for part in ("tone", "3.5", "threshold of 4", "pre_ramp"))


def test_not_applicable_leaves_the_denominator_and_is_counted() -> None:
    found = gate(tone=judged(*scored(4, 5), NotApplicable(), NotApplicable())).per_judge_scores["tone"]
    assert (found.score, found.n, found.not_applicable) == (4.5, 2, 2)


def test_a_judge_for_which_nothing_is_applicable_does_not_pass() -> None:
    for absent, code in ((2, Code.INSUFFICIENT_SAMPLE), (20, Code.TOO_FEW_APPLICABLE)):
        verdict = gate(tone=judged(*[NotApplicable()] * absent))
        assert (verdict.verdict, codes(verdict)) == (VerdictLevel.FAIL, [code])
        assert verdict.per_judge_scores["tone"].score is None


def test_unscored_counts_at_its_worst_and_where_that_decides_nothing_the_verdict_stands() -> None:
    verdict = gate(tone=judged(*scored(*[5.0] * 99), DOWN))
    found = verdict.per_judge_scores["tone"]
    assert (verdict.verdict, found.score, found.n, found.unscored) == (VerdictLevel.PASS, 4.96, 100, 1)
    verdict = gate(tone=judged(*scored(*[3.0] * 99), DOWN))
    assert codes(verdict) == [Code.BELOW_THRESHOLD]
    assert "1 of 100 items (the model did not answer) count at their worst" in verdict.reasons[0].message


def test_where_the_unscored_would_decide_the_gate_fails_with_judge_unavailable_and_nothing_else() -> None:
    verdict = gate(tone=judged(*scored(4, 4, 4), DOWN, enforcement=WARN), other=judged(*scored(5, 5)))
    assert (verdict.verdict, codes(verdict)) == (VerdictLevel.FAIL, [Code.JUDGE_UNAVAILABLE])
    assert verdict.failing_judges == ["tone"]


def test_a_model_that_is_down_fails_every_judge_with_judge_unavailable() -> None:
    verdict = gate(a=judged(DOWN, DOWN), b=judged(DOWN, DOWN, enforcement=WARN))
    assert (verdict.verdict, set(codes(verdict))) == (VerdictLevel.FAIL, {Code.JUDGE_UNAVAILABLE})
    assert verdict.failing_judges == ["a", "b"]


def test_a_judge_that_answered_nothing_is_unavailable_also_beside_one_that_fails_anyway() -> None:
    verdict = gate(a=judged(*scored(1, 1)), b=judged(DOWN, DOWN))
    assert codes(verdict) == [Code.FLOOR_BREACH, Code.JUDGE_UNAVAILABLE]


@pytest.mark.parametrize("value", [6.0, 0.0, float("nan"), float("inf"), float("-inf")])
def test_a_score_off_the_scale_is_no_score(value: float) -> None:
    found = gate(tone=judged(*scored(value, 5, 5, 5, 5, 5, 5, 5))).per_judge_scores["tone"]
    assert (found.n, found.unscored, found.score) == (8, 1, 4.5)


def test_items_count_by_their_sampling_weight() -> None:
    found = gate(tone=judged(Scored(5, 3.0), Scored(1, 1.0))).per_judge_scores["tone"]
    assert found.score == 4.0


def test_a_boolean_judge_is_a_rate_of_true_and_true_means_all_of_them() -> None:
    limits = Limits.of(True, 0.9, 0.0, BLOCK)
    one = Judged(collect(scored(1, 1, 1), (0, 1)), limits, (0.0, 1.0), boolean=True)
    assert gate(safe=one).verdict is VerdictLevel.PASS
    verdict = gate(safe=replace(one, answers=collect(scored(*[1] * 99, 0), (0, 1))))
    assert (verdict.verdict, codes(verdict)) == (VerdictLevel.FAIL, [Code.BELOW_THRESHOLD])
    assert verdict.per_judge_scores["safe"].score == 0.99


def test_too_small_a_sample_fails_and_says_how_many_are_missing() -> None:
    verdict = gate(Evidence(size=12, minimum=100, shortage="9 are shadow runs"), tone=judged(*scored(5, 5)))
    assert (verdict.verdict, codes(verdict)) == (VerdictLevel.FAIL, [Code.INSUFFICIENT_SAMPLE])
    assert all(part in verdict.reasons[0].message for part in ("12", "100", "88", "9 are shadow runs"))
    assert verdict.failing_judges == []


def test_an_empty_sample_fails_whatever_the_minimum_is() -> None:
    assert gate(Evidence(size=0, minimum=0), tone=judged(*scored(5, 5))).verdict is VerdictLevel.FAIL


@pytest.mark.parametrize(
    ("coverage", "level"), [(0.05, VerdictLevel.PASS), (0.049, VerdictLevel.FAIL), (None, VerdictLevel.FAIL)]
)
def test_coverage_below_its_floor_or_not_known_fails(coverage: float | None, level: VerdictLevel) -> None:
    verdict = gate(Evidence(100, 20, coverage=coverage, coverage_floor=0.05), tone=judged(*scored(5, 5)))
    assert verdict.verdict is level
    assert codes(verdict) == ([] if level is VerdictLevel.PASS else [Code.COVERAGE_TOO_LOW])


def test_another_dataset_than_the_manifests_fails() -> None:
    evidence = replace(ENOUGH, mismatches=("the dataset has 340 items, the manifest says 345",))
    assert codes(gate(evidence, PRE_MERGE, tone=judged(*scored(5, 5)))) == [Code.DATASET_MISMATCH]


@pytest.mark.parametrize(
    ("milestone", "level"),
    [(PRE_MERGE, VerdictLevel.WARN), (PRE_RAMP, VerdictLevel.FAIL), (PRE_FULL, VerdictLevel.FAIL)],
)
def test_pf9_ac9_an_overdue_seed_warns_before_the_merge_and_blocks_afterwards(
    milestone: Milestone, level: VerdictLevel
) -> None:
    verdict = gate(milestone=milestone, tone=replace(judged(*scored(5, 5)), overdue_days=3))
    assert (verdict.verdict, codes(verdict)) == (level, [Code.PROVISIONAL_OVERDUE])
    assert verdict.failing_judges == ["tone"]
    assert "3 days" in verdict.reasons[0].message


def test_a_suspended_judge_fails() -> None:
    verdict = gate(tone=replace(judged(*scored(5, 5)), suspended="inverted on 2026-11-01"))
    assert (verdict.verdict, codes(verdict)) == (VerdictLevel.FAIL, [Code.JUDGE_SUSPENDED])


def test_a_gate_without_judges_fails() -> None:
    assert (gate().verdict, codes(gate())) == (VerdictLevel.FAIL, [Code.INVALID_REQUEST])


def few(*values: float, rest: int, enforcement: Enforcement = BLOCK) -> Judged:
    return judged(*scored(*values), *[NotApplicable()] * rest, enforcement=enforcement)


def test_a_judge_with_too_little_of_the_sample_of_its_own_says_nothing_good_about_it() -> None:
    wants_five = Evidence(100, 20, scored=5)
    made = gate(wants_five, tone=few(5, 5, 5, 5, rest=4))
    assert (made.verdict, codes(made)) == (VerdictLevel.FAIL, [Code.INSUFFICIENT_SAMPLE])
    assert made.reasons[0].message == "tone has 4 of the 5 items that it needs to score, 4 were not applicable"
    assert gate(wants_five, tone=few(5, 5, 5, 5, rest=4, enforcement=Enforcement.WARN)).verdict is VerdictLevel.WARN
    assert gate(wants_five, tone=few(5, 5, 5, 5, 5, rest=5)).verdict is VerdictLevel.PASS


def test_a_judge_that_called_more_than_its_share_not_applicable_fails_the_gate_whatever_its_enforcement() -> None:
    for enforcement in Enforcement:
        made = gate(tone=few(*[5] * 35, rest=65, enforcement=enforcement))
        assert (made.verdict, codes(made)) == (VerdictLevel.FAIL, [Code.TOO_FEW_APPLICABLE])
        assert (made.failing_judges, made.per_judge_scores["tone"].rule) == (["tone"], Code.TOO_FEW_APPLICABLE)
    (reason,) = made.reasons
    assert reason.message == (
        "tone called 65 of its 100 items not applicable; the manifest's not_applicable_share allows 0.5 of them"
    )
    assert gate(milestone=PRE_MERGE, tone=few(*[5] * 49, rest=51)).verdict is VerdictLevel.FAIL, "the same items again"
    assert gate(milestone=PRE_MERGE, tone=few(*[5] * 50, rest=50)).verdict is VerdictLevel.PASS
    assert gate(tone=replace(few(5, rest=99), not_applicable_share=0.99)).verdict is VerdictLevel.PASS
    unscored = judged(*scored(*[5.0] * 40), *[DOWN] * 10, *[NotApplicable()] * 50, threshold=3.0)
    assert gate(tone=unscored).verdict is VerdictLevel.PASS, "what could not be scored was applicable"


def test_the_little_that_a_judge_had_decides_where_it_falls_short() -> None:
    assert codes(gate(Evidence(100, 20, scored=5), tone=few(1, rest=1))) == [Code.FLOOR_BREACH]
    assert codes(gate(tone=few(1, rest=99))) == [Code.FLOOR_BREACH, Code.TOO_FEW_APPLICABLE]


def test_what_could_not_be_scored_was_the_judges_own_all_the_same() -> None:
    one = judged(*scored(5, 5, 5, 5), Unscored("the model was away"), threshold=3.0)
    assert gate(Evidence(100, 20, scored=5), tone=one).verdict is VerdictLevel.PASS


def test_of_a_sample_that_is_too_small_each_judge_need_not_say_so_too() -> None:
    assert codes(gate(Evidence(3, 20, scored=5), tone=judged(*scored(5, 5, 5)))) == [Code.INSUFFICIENT_SAMPLE]


@pytest.mark.parametrize(("size", "enough"), [(19, False), (20, True), (21, True)])
def test_a_sample_of_just_the_minimum_is_enough(size: int, enough: bool) -> None:
    found = gate(Evidence(size=size, minimum=20), a=judged(*scored(*[5.0] * size)))
    assert codes(found) == ([] if enough else [Code.INSUFFICIENT_SAMPLE])


@pytest.mark.parametrize(("production", "enough"), [(0, False), (1, True), (None, True)])
def test_where_production_items_are_asked_for_one_is_enough_and_none_is_not(
    production: int | None, enough: bool
) -> None:
    found = gate(Evidence(size=20, minimum=20, production=production), a=judged(*scored(*[5.0] * 20)))
    assert codes(found) == ([] if enough else [Code.INSUFFICIENT_SAMPLE])
    assert found.verdict is (VerdictLevel.PASS if enough else VerdictLevel.FAIL)
