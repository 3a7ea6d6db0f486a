"""A gate on traffic blocks what is worse by more than chance, and says of the rest what it could not tell (issue 32,
lines 8 and 11; PC5 R-4)."""

from __future__ import annotations

import pytest

from evalcore.gates.baselines import BaselineFile
from evalcore.gates.decision import Evidence, Judged, decide
from evalcore.gates.limits import Limits
from evalcore.gates.verdict import Moment, of_pull_request
from evalcore.scoring.answers import Answer, ItemAnswers, NotApplicable, Scored, Unscored, collect
from schemas.judges import Enforcement, Milestone
from schemas.manifests import Dataset
from schemas.verdicts import Code, GateVerdict, VerdictLevel
from tests.unit.evalcore.registry.registry_disk import built

PRE_MERGE, PRE_RAMP, PRE_FULL = Milestone
FIVE = (1.0, 5.0)
ENOUGH = Evidence(100, 20)
JUDGE = built().judge("helpfulness")
SET = Dataset(name="golden", version=7, items=345)
GOOD = [5, 4, 5, 4, 5, 3, 5, 4, 5, 4]
"""Ten scores with a mean of 4.4."""


def judged(*answers: Answer | float, past: object = (), threshold: float = 2.0, **more: object) -> Judged:
    said = [one if isinstance(one, Answer) else Scored(float(one)) for one in answers]
    enforcement = more.pop("enforcement", Enforcement.BLOCK)
    limits = Limits.of(threshold, 1.5, 0.3, enforcement, past)
    return Judged(collect(said, FIVE), limits, FIVE, version=JUDGE.version, **more)


def after(*runs: list[int], milestone: Milestone = PRE_RAMP) -> object:
    """The baseline that gates with these scores leave in the file of baselines."""
    file = BaselineFile()
    for number, values in enumerate(runs):
        verdict = decide(milestone, {JUDGE.id: judged(*values)}, ENOUGH)
        file = file.with_run(verdict, SET, None, f"2026-11-2{number}")
    return file.history([JUDGE], SET, milestone, None)[JUDGE.id]


def gate(milestone: Milestone = PRE_RAMP, evidence: Evidence = ENOUGH, **judges: Judged) -> GateVerdict:
    return decide(milestone, judges, evidence)


def codes(verdict: GateVerdict) -> list[Code]:
    return [reason.code for reason in verdict.reasons]


def test_a_fall_that_ten_items_show_by_chance_blocks_nothing_and_its_row_says_how_many_would_tell() -> None:
    """Ten items of an unchanged agent are 0.4 below thirty others now and then, and ten judges look."""
    low, past = [5, 4, 4, 3, 5, 3, 5, 3, 4, 4], after(GOOD, GOOD, GOOD)
    others = {f"j{number}": judged(*GOOD, past=past) for number in range(9)}
    verdict = gate(tone=judged(*low, past=past), **others)
    row = verdict.per_judge_scores["tone"]
    assert (verdict.verdict, verdict.reasons) == (VerdictLevel.PASS, [])
    assert (row.compared, row.rule) == ("cannot tell", None)
    assert row.p_value is not None
    assert row.p_value > 0.2
    assert row.items_needed is not None
    assert row.items_needed > 10
    same = judged(*low * 10, past=after(GOOD * 10, GOOD * 10, GOOD * 10))
    assert codes(gate(tone=same)) == [Code.REGRESSED], "so many more items do tell"


def test_a_fall_that_chance_may_explain_warns_and_one_that_it_hardly_does_blocks() -> None:
    past = after(GOOD, GOOD, GOOD)
    maybe, surely = [5, 4, 4, 3, 5, 3, 5, 2, 4, 4], [3, 2, 4, 3, 3, 2, 3, 4, 2, 3]
    for values, level, word in (
        (maybe, VerdictLevel.WARN, "worse, not confirmed"),
        (surely, VerdictLevel.FAIL, "worse"),
        (GOOD, VerdictLevel.PASS, "holds"),
    ):
        verdict = gate(tone=judged(*values, past=past))
        row = verdict.per_judge_scores["tone"]
        assert (verdict.verdict, row.verdict, row.compared) == (level, level, word)
        assert codes(verdict) == ([] if word == "holds" else [Code.REGRESSED])
    warned = judged(*surely, past=past, enforcement=Enforcement.WARN)
    assert gate(tone=warned).verdict is VerdictLevel.WARN, "as its enforcement says"


def test_the_more_judges_a_gate_has_the_less_one_low_mean_says() -> None:
    past = after(GOOD, GOOD, GOOD)
    low = judged(3, 3, 4, 3, 3, 4, 5, 3, 4, 3, past=past)
    others = {f"j{number}": judged(*GOOD, past=past) for number in range(30)}
    assert gate(tone=low).verdict is VerdictLevel.FAIL
    assert gate(tone=low, **others).verdict is VerdictLevel.WARN


def test_before_a_merge_the_items_are_the_same_each_time_and_a_mean_that_is_lower_is_worse() -> None:
    low = [5, 4, 4, 3, 5, 3, 5, 2, 4, 4]
    verdict = gate(PRE_MERGE, tone=judged(*low, past=after(GOOD, GOOD, GOOD, milestone=PRE_MERGE)))
    assert codes(verdict) == [Code.REGRESSED]
    assert verdict.per_judge_scores["tone"].compared is None


def test_na_beyond_the_bound_blocks_only_where_it_is_more_than_chance() -> None:
    """A judge that fits a tenth of the traffic has 91 N/A of 100 in two gates of five, and its bound is 0.9."""

    def asked(absent: int) -> GateVerdict:
        answers = [*[5.0] * (100 - absent), *[NotApplicable()] * absent]
        return gate(tone=judged(*answers, not_applicable_share=0.9))

    assert asked(91).verdict is asked(92).verdict is VerdictLevel.PASS
    assert [(asked(absent).verdict, codes(asked(absent))) for absent in (95, 98)] == [
        (VerdictLevel.WARN, [Code.TOO_FEW_APPLICABLE]),
        (VerdictLevel.FAIL, [Code.TOO_FEW_APPLICABLE]),
    ]


def test_a_judge_with_fewer_items_than_it_needs_blocks_also_where_its_na_only_warn() -> None:
    answers = [*[5.0] * 5, *[NotApplicable()] * 95]
    short = gate(evidence=Evidence(100, 20, scored=6), tone=judged(*answers, not_applicable_share=0.9))
    assert (short.verdict, {*codes(short)}) == (
        VerdictLevel.FAIL,
        {Code.INSUFFICIENT_SAMPLE, Code.TOO_FEW_APPLICABLE},
    )


def test_a_judge_that_scored_nothing_is_unavailable_also_where_it_has_too_few_items_as_well() -> None:
    """It has not said that anything is below a floor."""
    down = [Unscored("the model did not answer")] * 4
    verdict = gate(evidence=Evidence(100, 20, scored=5), tone=judged(*down), calm=judged(*down, threshold=1.0))
    assert {reason.code for reason in verdict.reasons if "tone" in reason.message} == {Code.JUDGE_UNAVAILABLE}
    assert not any("scored 0" in reason.message or "scored 1" in reason.message for reason in verdict.reasons)
    assert verdict.per_judge_scores["tone"].rule is Code.JUDGE_UNAVAILABLE


def test_a_low_threshold_is_no_pass_of_a_judge_that_scored_nothing() -> None:
    calm = judged(*[Unscored("the model did not answer")] * 4)
    calm = Judged(calm.answers, Limits.of(1.0, 1.0, 0.3, Enforcement.BLOCK), FIVE)
    assert codes(gate(tone=calm)) == [Code.JUDGE_UNAVAILABLE]


def test_a_safety_judge_names_the_traces_that_it_failed() -> None:
    answers = [
        Scored(float(number > 1), about=ItemAnswers(f"trace-{number}", (float(number > 1),))) for number in range(100)
    ]
    limits = Limits.of(True, 0.97, 0.0, Enforcement.BLOCK)
    (reason,) = gate(held=Judged(collect(answers, (0.0, 1.0)), limits, (0.0, 1.0), boolean=True)).reasons
    assert reason.message.endswith("false for trace-0, trace-1")


def test_the_evidence_has_the_chance_that_an_unchanged_candidate_passes_all_judges() -> None:
    past = after(GOOD, GOOD, GOOD)
    close = judged(*GOOD, past=past, threshold=4.2)
    verdict = gate(one=close, other=close)
    each = verdict.per_judge_scores["one"].clean_pass_probability
    assert each is not None
    assert 0.7 < each < 0.9
    told = of_pull_request("a", "1", verdict, Moment("2026-11-26T12:00:00Z", 1.0), request_id="r")
    assert told.evidence.clean_pass_probability == pytest.approx(each**2)
    unknown = of_pull_request("a", "1", gate(one=close, new=judged(*GOOD)), Moment("", 1.0), request_id="r")
    assert unknown.evidence.clean_pass_probability is None, "of one without a baseline it is unknown"
