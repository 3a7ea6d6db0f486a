"""Who scores against people is found, who does not is not called, and who can't be told is neither (PF-9 FR-10). What
people said in a reference set, by judge, beside the judge's scores (PF-9 FR-10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from evalcore.inversion.check import Composed, Pairs, check, check_composites, check_slices, composed, standing
from evalcore.inversion.reference import People, people
from evalcore.stats.correlation import correlation

SEEDS = 200
ITEMS = 301


def scores(seed: int, correlations: list[float]) -> Iterator[Pairs]:
    """Judges and people on a scale from 1 to 5, correlated by so much before they are cut to it."""
    draw = np.random.default_rng(seed)
    for rho in correlations:
        one, noise = draw.normal(size=(2, ITEMS))
        other = rho * one + np.sqrt(1 - rho**2) * noise
        judge, human = (np.clip(np.round(series * 1.2 + 3), 1, 5) for series in (one, other))
        yield Pairs([str(item) for item in range(ITEMS)], judge, human)


def inverted(seed: int, correlations: list[float]) -> list[bool | None]:
    return [one.inverted for one in check({str(at): pairs for at, pairs in enumerate(scores(seed, correlations))})]


def test_pf9_ac6_ten_inverted_judges_are_found_and_two_sound_ones_are_not_called() -> None:
    """Of 301 items, as in JADE's first round, in each of 200 seeds."""
    for seed in range(SEEDS):
        assert inverted(seed, [-0.4] * 5 + [-0.5] * 5 + [0.3, 0.4]) == [True] * 10 + [False] * 2, seed


def test_uncorrelated_judges_are_called_in_at_most_3_percent() -> None:
    called = [one for seed in range(SEEDS) for one in inverted(seed, [0.0] * 20)]
    assert sum(one is True for one in called) / len(called) <= 0.03
    assert sum(one is None for one in called) / len(called) <= 0.2, "Spearman's may be of the other sign near zero"


def of(judge: list[float], human: list[float]) -> bool | None:
    return standing("a", correlation(np.array(judge), np.array(human))).inverted


def test_few_pairs_and_series_that_say_nothing_are_undecidable_and_not_fine() -> None:
    falling = [float(-n) for n in range(10)]
    rising = [float(n) for n in range(10)]
    assert of(falling, rising) is True
    assert of(falling[:9], rising[:9]) is None
    assert of([1.0] * 10, rising) is None
    assert of(rising, [1.0] * 10) is None
    nearly = standing("a", correlation(np.array([0.0] * 4 + [1.0] * 196), np.array([0.0] * 8 + [1.0] * 192)))
    assert (nearly.inverted, nearly.detectable) == (None, None)
    assert "no pairing" in nearly.reason


def test_weights_that_are_all_alike_are_none_and_others_count() -> None:
    one = next(scores(1, [0.2]))
    alike = Pairs(one.items, one.judge, one.human, weights=np.full(ITEMS, 2.5))
    assert check({"a": alike}) == check({"a": one})
    rare = Pairs(one.items, one.judge, one.human, weights=np.where(np.arange(ITEMS) < 30, 10.0, 1.0))
    (weighted,) = check({"a": rare})
    assert weighted.found.n < ITEMS / 2, "Kish's number of pairs"
    assert weighted.found.spearman == check({"a": one})[0].found.spearman, "of the pairs as they are"


def test_inversion_is_declared_when_the_whole_interval_lies_below_zero() -> None:
    """PF-9 AC-10."""
    for n, pairs in enumerate(scores(3, [-0.05, -0.1, -0.15, -0.2])):
        found = correlation(pairs.judge, pairs.human)
        assert found.ci95 is not None
        assert standing(str(n), found).inverted is (found.ci95[1] < 0)


def test_a_composite_is_its_members_scores_made_one_on_the_items_that_all_have() -> None:
    sound, against = list(scores(1, [0.5, -0.9]))
    part = Pairs(against.items[:50], against.judge[:50], against.human[:50])
    judges = {"sound": sound, "against": part}
    (least,) = check_composites(judges, {"least": Composed({"sound": 1.0, "against": 1.0}, least=True)})
    assert least.found.n == 50
    both = np.minimum(sound.judge[:50], part.judge), np.minimum(sound.human[:50], part.human)
    assert least.found.pearson == pytest.approx(np.corrcoef(*both)[0, 1])
    (weighted,) = check_composites(judges, {"mean": Composed({"sound": 3.0, "against": 1.0})})
    mean = (3 * sound.judge[:50] + part.judge) / 4, (3 * sound.human[:50] + part.human) / 4
    assert weighted.found.pearson == pytest.approx(np.corrcoef(*mean)[0, 1])
    assert check_composites(judges, {"lacks one": Composed({"sound": 1.0, "other": 1.0})}) == []


def test_slices_are_adjusted_over_all_of_them() -> None:
    """Forty slices of uncorrelated scores: unadjusted, one is called in two of three checks."""
    called = 0
    for seed in range(60):
        places = np.arange(ITEMS) % 20
        sliced = {"category": (["", *map(str, range(20))], places + 1)}
        pairs = {
            str(n): Pairs(one.items, one.judge, one.human, sliced) for n, one in enumerate(scores(seed, [0.0] * 2))
        }
        found = check_slices(pairs)
        assert len(found) == 40
        called += any(one.against for one in found)
    assert called <= 6
    strong = Pairs(pairs["0"].items, pairs["0"].judge, -pairs["0"].judge, sliced)
    assert all(one.against for one in check_slices({"a": strong}))


def entry(item: str, score: float | str, name: str = "r1", who: str = "ann") -> dict[str, Any]:
    return {"round": name, "category": "c", "item_id": item, "annotator": who, "score": score}


def entry_of(*entries: dict[str, Any]) -> People:
    return people(entries, "shop")[0]["tone"]


def test_a_turn_has_the_mean_of_what_people_said_in_the_last_round_that_rated_it() -> None:
    said = entry_of(entry("tone/a", 1), entry("tone/a", 2, who="ben"), entry("tone/b", 5), entry("tone/a", 4, "r2"))
    assert {name: (turn.score, turn.round) for name, turn in said.turns.items()} == {"a": (4, "r2"), "b": (5, "r1")}
    assert said.last_round == "r2"
    assert entry_of(entry("tone/a", 1), entry("tone/a", 2, who="ben")).turns["a"].score == 1.5


def test_labels_and_items_of_no_judge_are_left_out_and_counted() -> None:
    found, others = people([entry("a", 1), entry("tone/a", "rude"), entry("tone/b/c", 2), entry("tone/", 1)], "shop")
    assert (list(found), list(found["tone"].turns), others) == (["tone"], ["b/c"], 3)


def test_a_judges_version_of_the_set_is_what_people_said_of_its_turns_and_nothing_else() -> None:
    one = entry_of(entry("tone/a", 1), entry("tone/b", 2))
    assert one.version == entry_of(entry("tone/b", 2), entry("other/a", 5), entry("tone/a", 1, "r2")).version
    assert one.version != entry_of(entry("tone/a", 1), entry("tone/b", 3)).version
    assert one.version != people([entry("tone/a", 1), entry("tone/b", 2)], "travel")[0]["tone"].version
    few, all_ = (one.beside(scores, "v", {}) for scores in ({"a": 1.0}, {"a": 1.0, "b": 2.0}))
    assert few.reference == all_.reference == one.version, "who leaves out turns gets no new chance"


def test_nine_tenths_of_the_last_rounds_turns_need_a_score() -> None:
    said = entry_of(*(entry(f"tone/old{n}", 1) for n in range(50)), *(entry(f"tone/{n}", 1, "r2") for n in range(10)))
    assert said.enough({str(n): 1.0 for n in range(9)})
    assert not said.enough({str(n): 1.0 for n in range(8)} | {f"old{n}": 1.0 for n in range(50)})


def test_weights_of_two_draws_are_evened_and_an_unknown_draw_has_none() -> None:
    said = entry_of(entry("tone/a", 1), entry("tone/b", 2), entry("tone/c", 3, "r2"), entry("tone/d", 4, "r2"))
    scores = dict.fromkeys("abcd", 1.0)
    weights = said.beside(scores, "v", {"r1": {"a": 1, "b": 3}, "r2": {"c": 10, "d": 30}}).weights
    assert weights is not None
    assert weights.tolist() == pytest.approx([0.5, 1.5, 0.5, 1.5])
    half = said.beside(scores, "v", {"r1": {"a": 1, "b": 3}, "r2": {"c": 10}}).weights
    assert half is not None
    assert half.tolist() == pytest.approx([0.5, 1.5, 1, 1])
    assert said.beside(scores, "v", {}).weights is None


def test_a_composites_pairs_keep_their_weights() -> None:
    said = entry_of(entry("tone/a", 1), entry("tone/b", 2), entry("tone/c", 2))
    one = said.beside({"c": 1.0, "a": 2.0}, "v", {"r1": {"a": 1, "b": 3, "c": 3}})
    both: Pairs | None = composed({"tone": one, "other": one}, Composed({"tone": 1.0, "other": 1.0}))
    assert both is not None
    assert both.weights is not None
    assert both.weights.tolist() == pytest.approx([0.5, 1.5])
