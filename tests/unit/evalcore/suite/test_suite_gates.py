"""What blocks a merge: safety, a slice worse by more than 2 σ, all cases worse at p < 0.05; and missing scores that
decide. What blocks nothing is said all the same."""

from __future__ import annotations

import pytest

from evalcore.suite.flipped import flipped
from evalcore.suite.gates import SuiteCode, judge
from schemas.verdicts import VerdictLevel
from tests.unit.evalcore.suite.suite_runs import FAILED, NOT_APPLICABLE, UNSCORED, Value, judged, pair, run

CASES = [f"c{n:02}" for n in range(40)]
MIXED: dict[str, list[Value]] = {name: [1.0, float(n % 2 == 0), 1.0] for n, name in enumerate(CASES)}
SAFE = {name: ["safety"] for name in CASES[:10]} | {name: ["chat"] for name in CASES[10:]}


def changed(**values: list[Value]) -> dict[str, list[Value]]:
    return MIXED | values


def test_the_same_results_pass() -> None:
    found = judged(run(MIXED, SAFE), run(MIXED, SAFE))
    assert (found.verdict, found.reasons) == (VerdictLevel.PASS, ())


def test_one_failing_sample_of_a_safety_case_blocks_where_the_baseline_never_failed() -> None:
    """A leak one time in three passes a majority vote; it does not pass here."""
    found = judged(run(MIXED, SAFE), run(changed(c02=[1.0, 0.0, 1.0]), SAFE))
    assert found.verdict is VerdictLevel.FAIL
    assert [(one.code, one.cases) for one in found.reasons] == [(SuiteCode.SAFETY_REGRESSED, ("c02",))]
    again = judged(run(MIXED, SAFE), run(changed(c01=[0.0, 1.0, 1.0], c12=[1.0, 0.0, 1.0]), SAFE))
    assert again.verdict is VerdictLevel.PASS, "the baseline failed c01 too, and c12 is no case of safety"


def test_slices_of_safety_and_what_fails_there_can_be_named() -> None:
    sides = run(MIXED, SAFE), run(changed(c12=[0.7, 0.7, 1.0]), SAFE)
    assert judge(pair(*sides, safety=("chat",), safe_at=0.8)).reasons[0].cases == ("c12",)
    assert judge(pair(*sides, safety=("chat",), safe_at=0.6)).verdict is VerdictLevel.PASS


def test_a_slice_that_is_worse_by_more_than_two_sigma_blocks_and_one_within_does_not() -> None:
    worse = {name: [0.0] for name in CASES[10:22]}
    found = judged(run(MIXED, SAFE), run(changed(**worse), SAFE))
    assert found.verdict is VerdictLevel.FAIL
    assert (SuiteCode.SLICE_REGRESSED, "chat") in [(one.code, one.slice) for one in found.reasons]
    within = judged(run(MIXED, SAFE), run(changed(c11=[0.0], c12=[0.7]), SAFE))
    assert within.verdict is VerdictLevel.PASS
    better = judged(run(changed(**worse), SAFE), run(MIXED, SAFE))
    assert better.verdict is VerdictLevel.PASS
    assert better.headline_significant


def test_all_cases_together_block_where_no_slice_does() -> None:
    """40 cases, each in a slice of its own: no slice has more than one case, which claims nothing."""
    slices = {name: [name] for name in CASES}
    found = judged(run(MIXED, slices), run({name: [0.4] for name in CASES}, slices))
    assert found.reasons[-1].code is SuiteCode.HEADLINE_REGRESSED
    assert {one.code for one in found.reasons[:-1]} == {SuiteCode.SLICE_NOT_CONFIRMED}, "one sample that is lost"


@pytest.mark.parametrize(
    ("cases", "samples", "word", "verdict"),
    [
        (1, 3, "worse", VerdictLevel.FAIL),
        (4, 1, "worse", VerdictLevel.FAIL),
        (3, 1, "worse, not confirmed", VerdictLevel.WARN),
        (5, 1, "worse", VerdictLevel.FAIL),
        (10, 3, "worse", VerdictLevel.FAIL),
    ],
)
def test_a_slice_of_few_cases_that_breaks_wholly_blocks_on_files(
    cases: int, samples: int, word: str, verdict: VerdictLevel
) -> None:
    """No number of flipped signs makes four cases a regression at 5 %; samples that change sides do."""
    names = [f"n{number}" for number in range(cases)]
    rest: dict[str, list[Value]] = {f"r{number:02}": [1.0] * samples for number in range(40)}
    slices = {name: ["few"] for name in names} | {name: ["rest"] for name in rest}
    before, after = ({name: [value] * samples for name in names} | rest for value in (1.0, 0.0))
    found = judged(run(before, slices), run(after, slices))
    assert (found.verdict, found.tested["few"].word) == (verdict, word)


def test_a_smaller_fall_of_a_slice_whose_loss_could_not_be_told_from_chance_is_not_said_to_hold() -> None:
    slices = {name: ["few"] for name in "abc"}
    found = judged(run({key: [1.0] for key in "abc"}, slices), run({"a": [0.0], "b": [1.0], "c": [1.0]}, slices))
    assert (found.verdict, found.tested["few"].word) == (VerdictLevel.PASS, "cannot tell")


def test_one_cluster_ends_no_test_in_silence() -> None:
    """Of a single cluster there is no σ and no flipped sign: every case of it broken blocks, in a slice and in none."""
    for slices in ({name: ["chat"] for name in CASES}, {}):
        sides = run({name: [1.0] for name in CASES}, slices), run({name: [0.0] for name in CASES}, slices)
        for side in sides:
            for case in side.values():
                case.cluster = "shop"
        assert judged(*sides).verdict is VerdictLevel.FAIL
        told = [{**side} for side in sides]
        for case in told[0].values():
            case.cluster = ""
        found = judged(*told)
        assert found.verdict is VerdictLevel.FAIL
        assert SuiteCode.CLUSTERS_CHANGED in {one.code for one in found.reasons}


def test_answers_that_are_no_more_applicable_block_by_their_share_and_the_baselines_own_do_not() -> None:
    """38 of 40 cases that are not applicable any more were a warning, and such a run the next baseline."""
    gone: dict[str, list[Value]] = {name: [NOT_APPLICABLE] * 3 for name in CASES[2:]}
    found = judged(run(MIXED), run(changed(**gone)))
    assert found.verdict is VerdictLevel.FAIL
    assert SuiteCode.TOO_FEW_APPLICABLE in {one.code for one in found.reasons}
    assert judged(run(changed(**gone)), run(changed(**gone))).verdict is VerdictLevel.PASS
    some: dict[str, list[Value]] = {name: [1.0, NOT_APPLICABLE, 1.0] for name in CASES[:20]}
    single = judged(run(MIXED), run(changed(**some)))
    assert SuiteCode.TOO_FEW_APPLICABLE in {one.code for one in single.reasons}
    one: dict[str, list[Value]] = {name: [1.0, NOT_APPLICABLE, 1.0] for name in CASES[:2]}
    assert judged(run(MIXED), run(changed(**one))).verdict is VerdictLevel.PASS


def test_samples_that_a_file_leaves_out_count_as_the_not_applicable_do() -> None:
    fewer: dict[str, list[Value]] = {name: [1.0, 1.0] for name in CASES[:20]}
    found = judged(run(MIXED), run(changed(**fewer)))
    assert SuiteCode.TOO_FEW_APPLICABLE in {one.code for one in found.reasons}
    two = judged(run(MIXED), run({name: values[:2] for name, values in MIXED.items()}))
    assert SuiteCode.TOO_FEW_APPLICABLE not in {one.code for one in two.reasons}, "all cases have two by now"


def test_one_failure_of_the_baseline_frees_no_case_of_safety_on_files() -> None:
    once = changed(c02=[1.0, 0.0, 1.0])
    for now, verdict in (
        ([0.0, 0.0, 0.0], VerdictLevel.FAIL),
        ([0.0, 1.0, 0.0], VerdictLevel.WARN),
        ([1.0, 0.0, 1.0], VerdictLevel.PASS),
    ):
        found = judged(run(once, SAFE), run(changed(c02=now), SAFE))
        assert found.verdict is verdict, now


@pytest.mark.parametrize("missing", ["candidate", "baseline"])
def test_missing_scores_that_decide_block_and_others_do_not(missing: str) -> None:
    """Fail closed (promise 4): at their worst they would block, at their best not."""
    gone: dict[str, list[Value]] = {name: [UNSCORED] for name in CASES[10:22]}
    low: dict[str, list[Value]] = {name: [0.3] for name in CASES[10:22]}
    sides = (low | {}, gone) if missing == "candidate" else (gone, low)
    found = judged(run(changed(**sides[0]), SAFE), run(changed(**sides[1]), SAFE))
    assert found.verdict is VerdictLevel.FAIL
    assert {one.code for one in found.reasons} == {SuiteCode.JUDGE_UNAVAILABLE}
    assert found.best is not None
    few = judged(run(MIXED, SAFE), run(changed(c12=[1.0, UNSCORED, 1.0]), SAFE))
    assert few.verdict is VerdictLevel.PASS


def test_a_safety_case_that_nobody_could_score_blocks_and_not_applicable_is_no_way_out() -> None:
    for value in (UNSCORED, NOT_APPLICABLE):
        found = judged(run(MIXED, SAFE), run(changed(c02=[1.0, value, 1.0]), SAFE))
        assert found.verdict is VerdictLevel.FAIL
        assert [(one.code, one.cases) for one in found.reasons] == [(SuiteCode.JUDGE_UNAVAILABLE, ("c02",))]


def test_what_is_certain_is_not_called_missing() -> None:
    found = judged(run(MIXED, SAFE), run(changed(c02=[0.0], c14=[UNSCORED]), SAFE))
    assert [one.code for one in found.reasons] == [SuiteCode.SAFETY_REGRESSED]


def test_an_agent_that_fails_is_worst_and_its_error_blocks() -> None:
    found = judged(run(MIXED, SAFE), run(changed(c02=[1.0, FAILED, 1.0]), SAFE))
    assert [one.code for one in found.reasons] == [SuiteCode.SAFETY_REGRESSED]


def test_cases_that_a_branch_removed_are_named_and_do_not_pass_silently() -> None:
    left = {name: values for name, values in MIXED.items() if name not in ("c19", "c20")}
    found = judged(run(MIXED, SAFE), run(left, SAFE))
    assert found.verdict is VerdictLevel.WARN
    assert [(one.code, one.cases) for one in found.reasons] == [(SuiteCode.CASES_REMOVED, ("c19", "c20"))]
    assert "'c19', 'c20'" in found.reasons[0].message


def test_a_case_of_safety_that_a_branch_removed_blocks_until_somebody_lets_it_go() -> None:
    left = {name: values for name, values in MIXED.items() if name not in ("c03", "c20")}
    sides = run(MIXED, SAFE), run(left, SAFE)
    found = judge(pair(*sides))
    assert found.verdict is VerdictLevel.FAIL
    codes = [(SuiteCode.SAFETY_CASES_REMOVED, ("c03",)), (SuiteCode.CASES_REMOVED, ("c20",))]
    assert [(one.code, one.cases) for one in found.reasons] == codes
    known = judge(pair(*sides, let_go=["c03"]))
    assert known.verdict is VerdictLevel.WARN
    assert [(one.code, one.cases) for one in known.reasons] == [(SuiteCode.CASES_REMOVED, ("c03", "c20"))]


def test_a_case_that_asks_something_else_by_now_is_not_compared_and_of_safety_it_blocks() -> None:
    """A branch may rewrite a case that it fails, and keep its name."""
    before, after = run(MIXED, SAFE), run(changed(c02=[0.0]), SAFE)
    for name in ("c02", "c20"):
        before[name].question, after[name].question = "aa", "bb"
    found = judge(pair(before, after))
    codes = [(SuiteCode.SAFETY_CASES_REMOVED, ("c02",)), (SuiteCode.CASES_CHANGED, ("c20",))]
    assert [(one.code, one.cases) for one in found.reasons] == codes
    assert found.verdict is VerdictLevel.FAIL
    assert judge(pair(before, after, let_go=["c02"])).verdict is VerdictLevel.WARN
    after["c02"].question = after["c20"].question = ""
    assert pair(before, after).changed == ["c02", "c20"], "who does not say what was asked may have asked anything"
    assert pair(after, before).changed == [], "a baseline that never said is taken at its word"


def test_what_could_not_be_compared_is_told() -> None:
    lacking = judged(run(MIXED, SAFE), run(changed(c20=[NOT_APPLICABLE]), SAFE))
    assert [(one.code, one.cases) for one in lacking.reasons] == [(SuiteCode.NOT_COMPARED, ("c20",))]
    gone = judged(run(MIXED | {"x": [1.0]}, SAFE | {"x": ["old"]}), run(MIXED | {"y": [1.0]}, SAFE | {"y": ["new"]}))
    assert [one.slice for one in gone.reasons if one.code is SuiteCode.NOT_COMPARED] == ["new", "old"]


def test_the_cases_that_fell_come_worst_first_those_of_safety_before_all() -> None:
    worse: dict[str, list[Value]] = {name: [0.2, 0.0] for name in CASES[10:24]} | {"c02": [1.0, 0.0, 1.0]}
    sides = run(MIXED, SAFE), run(changed(**worse), SAFE)
    found = pair(*sides)
    fell = flipped(found, judge(found).reasons, *sides)
    assert fell[0].pair.case_id == "c02"
    assert (fell[0].baseline.scores["ok"], fell[0].candidate.scores["ok"]) == (1.0, 0.0)
    assert [one.pair.delta() for one in fell[1:]] == sorted(one.pair.delta() for one in fell[1:])
    assert flipped(found, (), *sides) == []
