"""What is asked about many comparisons at once is what the gates say of each of them."""

from __future__ import annotations

import numpy as np
import pytest

from evalcore.drift.scale import Scale
from evalcore.suite.comparison import difference
from evalcore.suite.confirm import FRESH, stands_in_fresh, suspicion
from evalcore.suite.gates import Judged, judge, newly_failing
from evalcore.suite.pairing import Paired, paired
from evalcore.suite.results import Case, Sample
from evalcore.suite.simulation import gates
from evalcore.suite.simulation.gates import Group, group_of

CASES, SLICES = 60, ("chat", "safety")


def side(rng: np.random.Generator, rate: float, samples: int, clustered: bool) -> dict[str, Case]:
    return {
        f"c{number:03}": Case(
            f"c{number:03}",
            {SLICES[number % 2]},
            cluster=f"k{number // 3}" if clustered else "",
            samples=[Sample(n, {"ok": float(rng.random() < rate)}) for n in range(samples)],
        )
        for number in range(CASES)
    }


def compared(rng: np.random.Generator, drop: float, clustered: bool) -> tuple[Paired, Judged]:
    sides = [side(rng, rate, 3, clustered) for rate in (0.8, 0.8 - drop)]
    found = paired(sides[0], sides[1], "ok", Scale(0.0, 1.0, whole=False))
    return found, judge(found)


def groups(found: Paired) -> tuple[Group, dict[str, Group]]:
    clusters = [pair.cluster for pair in found.pairs]
    places = {
        name: np.array([place for place, pair in enumerate(found.pairs) if name in pair.slices]) for name in SLICES
    }
    whole = group_of("", np.arange(len(clusters)), clusters)
    return whole, {name: group_of(name, one, clusters) for name, one in places.items()}


@pytest.mark.parametrize("clustered", [False, True])
def test_gates_say_of_each_comparison_what_they_say_of_it_alone(
    clustered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "FLIPS", 10_000)
    rng = np.random.default_rng(12)
    runs = [compared(rng, drop, clustered) for drop in (0.0, 0.0, 0.1, 0.1, 0.2, 0.2)]
    whole, slices = groups(runs[0][0])
    deltas = np.array([[pair.delta() for pair in found.pairs] for found, _ in runs])
    assert gates.all_worse(whole, deltas).tolist() == [judged.headline_worse for _, judged in runs]
    told = set()
    for name, group in slices.items():
        worse, errors = gates.slice_worse(group, deltas)
        assert worse.tolist() == [judged.comparison.slices[name].worse for _, judged in runs]
        assert errors.tolist() == pytest.approx([judged.comparison.slices[name].error for _, judged in runs])
        of = [[pair for pair in found.pairs if name in pair.slices] for found, _ in runs]
        assert gates.slice_stands(group, deltas).tolist() == [stands_in_fresh(difference(pairs)) for pairs in of]
        told |= set(worse.tolist())
    assert told == {True, False}
    for found, _ in runs:
        counts = np.array([[one.failing(False) for one in (pair.baseline, pair.candidate)] for pair in found.pairs])
        suspects = gates.newly_failing(counts[:, 0], counts[:, 1], 3)
        safety = [pair.case_id for pair in newly_failing(found)]
        assert [found.pairs[place].case_id for place in slices["safety"].places if suspects[place]] == safety


def test_suspect_cases_block_by_the_rule_of_suspects() -> None:
    rng = np.random.default_rng(1)
    sides = [side(rng, rate, FRESH, clustered=False) for rate in (0.9, 0.6)]
    found = paired(sides[0], sides[1], "ok", Scale(0.0, 1.0, whole=False))
    counts = np.array([[one.failing(False) for one in (pair.baseline, pair.candidate)] for pair in found.pairs])
    for always in (0, 3):
        expected = [suspicion(pair.case_id, pair, always).stands for pair in found.pairs]
        before = np.full(len(counts), always > 0)
        assert gates.fails_again(counts[:, 0], counts[:, 1], before).tolist() == expected
        assert set(expected) == {True, False}
    assert gates.fails_always(np.array([3, 2, 0]), 3).tolist() == [True, False, False]
    assert gates.fails_always(np.array([2, 1]), 2).tolist() == [False, False]


def test_a_slice_of_one_cluster_claims_nothing() -> None:
    group = group_of("chat", np.arange(4), ["k"] * 4)
    falls = np.full((2, 4), -1.0)
    assert not gates.slice_worse(group, falls)[0].any()
    assert not gates.slice_stands(group, falls).any()
    assert not gates.all_worse(group, falls).any()
