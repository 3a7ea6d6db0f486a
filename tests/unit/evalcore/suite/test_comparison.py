"""What a comparison says of slices and of all cases: samples averaged first, the case's difference the unit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalcore.suite.comparison import compare
from evalcore.suite.results import Case, NoScore, Sample, chosen, scale_of
from tests.unit.evalcore.suite.suite_runs import FAILED, NOT_APPLICABLE, UNSCORED, drawn, pair, run

RATES = {f"c{n:03}": 0.3 + 0.6 * (n % 7) / 7 for n in range(120)}
SLICES = {name: [f"s{n % 3}"] for n, name in enumerate(RATES)}


def test_samples_of_a_case_are_averaged_first_and_cases_count_alike() -> None:
    """However many samples a case has, it is one case."""
    found = compare(pair(run({"a": [1.0], "b": [0.0, 1.0]}), run({"a": [0.0, 0.0, 0.0, 0.0], "b": [1.0]}))).headline
    assert (found.n, found.baseline, found.candidate, found.delta) == (2, 0.75, 0.5, pytest.approx(-0.25))


def test_a_slice_is_scipys_bootstrap_of_its_cases_differences() -> None:
    rng = np.random.default_rng(8)
    baseline, candidate = drawn(rng, RATES), drawn(rng, RATES)
    found = compare(pair(run(baseline, SLICES), run(candidate, SLICES)))
    assert list(found.slices) == ["s0", "s1", "s2"]
    for name, one in found.slices.items():
        deltas = np.array(
            [np.mean(candidate[case]) - np.mean(baseline[case]) for case in RATES if name in SLICES[case]]
        )
        told = stats.bootstrap((deltas,), np.mean, method="BCa", n_resamples=10_000, rng=1)
        ends = told.confidence_interval
        assert one.n == 40
        assert one.delta == pytest.approx(deltas.mean())
        assert one.ci95 == pytest.approx((ends.low, ends.high), abs=0.02)
        assert one.error == pytest.approx(told.standard_error, rel=0.03)


def test_the_order_of_lines_changes_no_digit() -> None:
    rng = np.random.default_rng(8)
    baseline, candidate = drawn(rng, RATES), drawn(rng, RATES)
    one = compare(pair(run(baseline, SLICES), run(candidate, SLICES)))
    backwards = run(dict(reversed(candidate.items())), SLICES)
    assert compare(pair(run(baseline, SLICES), backwards)) == one


def test_one_case_claims_nothing_and_equal_differences_have_no_spread() -> None:
    one = compare(pair(run({"a": [1.0]}), run({"a": [0.0]}))).headline
    assert (one.delta, one.ci95, one.p_value, one.excludes_zero, one.worse) == (-1.0, None, None, False, False)
    same = compare(pair(run({key: [1.0] for key in "abcde"}), run({key: [0.5] for key in "abcde"}))).headline
    assert same.ci95 == (-0.5, -0.5)
    none = compare(pair(run({key: [1.0] for key in "abcde"}), run({key: [1.0] for key in "abcde"}))).headline
    assert (none.ci95, none.excludes_zero, none.worse, none.p_value) == ((0.0, 0.0), False, False, 1.0)


def test_an_interval_is_none_below_five_units_students_below_twenty_and_bca_from_twenty_on() -> None:
    """BCa of few is too narrow: of five differences it is half as wide as Student's."""
    rng = np.random.default_rng(3)
    for units in (4, 5, 19, 20):
        deltas = rng.normal(-0.1, 0.1, units)
        sides = ({f"c{n:02}": [0.5 + shift] for n, shift in enumerate(side)} for side in (np.zeros(units), deltas))
        found = compare(pair(*map(run, sides))).headline.ci95
        if units < 5:
            assert found is None
        elif units < 20:
            student = stats.t.interval(0.95, units - 1, deltas.mean(), stats.sem(deltas))
            assert found == pytest.approx(student)
        else:
            assert found == pytest.approx(
                tuple(stats.bootstrap((deltas,), np.mean, method="BCa", rng=1).confidence_interval), abs=0.02
            )


def test_the_baselines_clusters_count_and_a_candidate_that_names_others_is_told() -> None:
    sides = [run({f"c{n}": [1.0] for n in range(6)}) for _ in range(2)]
    for case in sides[1].values():
        case.cluster = "shop"
    found = pair(*sides)
    assert (compare(found).headline.units, [*found.moved]) == (6, [f"c{n}" for n in range(6)])


def test_cases_of_a_cluster_are_drawn_together() -> None:
    """Five paraphrases of one question are one observation, or nearly so."""
    rng = np.random.default_rng(4)
    baseline, candidate = {}, {}
    for topic in range(30):
        moved = rng.normal(0, 0.2)
        for number in range(5):
            name = f"t{topic}-{number}"
            start = rng.uniform(0.4, 0.6)
            baseline[name], candidate[name] = [start], [float(np.clip(start + moved, 0, 1))]
    sides = run(baseline), run(candidate)
    alone = compare(pair(*sides)).headline
    for side in sides:
        for name, case in side.items():
            case.cluster = name.split("-")[0]
    together = compare(pair(*sides)).headline
    assert (alone.units, together.units, together.n) == (150, 30, 150)
    assert alone.delta == pytest.approx(together.delta)
    assert alone.error is not None
    assert together.error is not None
    assert together.error > 1.8 * alone.error


def test_wins_are_counted_with_ties_as_half() -> None:
    sides = run({name: [0.5] for name in "abcdefgh"}), run({name: [0.5] for name in "abcdefgh"})
    preferred = {"a": 1.0, "b": 1.0, "c": 0.5, "d": 0.0, "e": 1.0, "f": 1.0, "g": 0.5, "h": 0.0}
    for name, worth in preferred.items():
        sides[1][name].samples = [Sample(0, {"ok": 0.5}, pairwise={"ok": worth})]
    wins = compare(pair(*sides)).headline.wins
    assert wins is not None
    assert (wins.n, wins.rate) == (8, 0.625)
    assert wins.ci95 is not None
    assert wins.ci95[0] < 0.625 < wins.ci95[1]
    assert compare(pair(run({"a": [1.0]}), run({"a": [1.0]}))).headline.wins is None


def test_what_is_missing_is_named_and_bounded() -> None:
    baseline = run({"a": [1.0, 1.0], "b": [1.0], "gone": [1.0], "na": [1.0], "x": [UNSCORED, 1.0], "f": [1.0]})
    candidate = run({"a": [1.0], "b": [UNSCORED], "new": [1.0], "na": [NOT_APPLICABLE], "x": [1.0, 1.0], "f": [FAILED]})
    found = pair(baseline, candidate)
    assert (found.removed, found.added, found.lost) == (["gone"], ["new"], ["na"])
    assert (found.unequal, found.unscored, found.failed) == (["a"], ["b", "na", "x"], ["f"])
    by_id = {one.case_id: one for one in found.pairs}
    assert [by_id["b"].delta(best) for best in (False, True)] == [-1.0, 0.0]
    assert [by_id["x"].delta(best) for best in (False, True)] == [0.0, 0.5], "the baseline's at its best, and worst"
    assert [by_id["f"].delta(best) for best in (False, True)] == [-1.0, -1.0], "the agent's own error is the worst"


def test_a_case_is_in_every_slice_that_a_side_names() -> None:
    """A branch that takes a tag off a case takes the case out of no gate."""
    found = pair(run({"a": [1.0]}, {"a": ["safety", "x"]}), run({"a": [1.0]}, {"a": ["y"]}))
    assert found.pairs[0].slices == {"safety", "x", "y"}
    alone = compare(pair(run({"a": [1.0], "b": [1.0]}, {"b": ["old"]}), run({"a": [1.0], "c": [1.0]}, {"c": ["new"]})))
    assert {name: one.n for name, one in alone.slices.items()} == {"new": 0, "old": 0}
    assert alone.slices["old"].delta is None


def test_the_score_is_the_only_one_or_the_one_named() -> None:
    both = ({"a": Case("a", samples=[Sample(0, {"ok": 1.0, "kind": 0.5})])},) * 2
    assert chosen(both, "kind") == "kind"
    with pytest.raises(NoScore, match=r"--score: name the one .* 'kind', 'ok'"):
        chosen(both, None)
    with pytest.raises(NoScore, match="no line of the baseline has 'good'"):
        chosen(both, "good")
    with pytest.raises(NoScore, match="no line of the candidate has 'ok'"):
        chosen((both[0], {"a": Case("a", samples=[Sample(0, {"kind": 1.0})])}), "ok")


def test_an_agent_that_failed_every_time_has_the_worst_value_of_any_score() -> None:
    some = {"a": Case("a", samples=[Sample(0, {"ok": 1.0})])}
    failed = {"a": Case("a", samples=[Sample(0, {}, "no such tool")])}
    assert chosen((some, failed), None) == "ok"
    now_and_then = {"a": Case("a", samples=[Sample(0, {}, "no such tool"), Sample(1, {"kind": 1.0})])}
    for run_without in (now_and_then, {}):
        with pytest.raises(NoScore, match="no line of the candidate has 'ok'"):
            chosen((some, run_without), "ok")


def test_the_scale_is_the_one_that_scores_fit() -> None:
    def scale(*values: float, told: tuple[float, float] | None = None) -> tuple[float, float]:
        found = scale_of((run({"a": list(values)}), {}), "ok", told)
        return found.low, found.high

    assert scale(0.2, 0.9) == (0.0, 1.0)
    assert scale(0.0, 1.0) == (0.0, 1.0)
    assert scale(2.0, 4.0) == (1.0, 5.0)
    assert scale(2.5, 40.0, told=(0.0, 100.0)) == (0.0, 100.0)
    with pytest.raises(NoScore, match=r"--scale: name the lowest .* 2.5 to 40 fit none"):
        scale(2.5, 40.0)
    with pytest.raises(NoScore, match="40 is a value of 'ok' and not on the scale"):
        scale(2.5, 40.0, told=(0.0, 10.0))
    with pytest.raises(NoScore, match="no number at all"):
        scale_of((run({"a": [UNSCORED]}), {}), "ok", None)
