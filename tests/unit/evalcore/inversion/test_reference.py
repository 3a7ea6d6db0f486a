"""What people said in a reference set, by judge, beside the judge's scores (PF-9 FR-10)."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.inversion.check import Composed, Pairs, composed
from evalcore.inversion.reference import People, people


def entry(item: str, score: float | str, name: str = "r1", who: str = "ann") -> dict[str, Any]:
    return {"round": name, "category": "c", "item_id": item, "annotator": who, "score": score}


def of(*entries: dict[str, Any]) -> People:
    return people(entries, "shop")[0]["tone"]


def test_a_turn_has_the_mean_of_what_people_said_in_the_last_round_that_rated_it() -> None:
    said = of(entry("tone/a", 1), entry("tone/a", 2, who="ben"), entry("tone/b", 5), entry("tone/a", 4, "r2"))
    assert {name: (turn.score, turn.round) for name, turn in said.turns.items()} == {"a": (4, "r2"), "b": (5, "r1")}
    assert said.last_round == "r2"
    assert of(entry("tone/a", 1), entry("tone/a", 2, who="ben")).turns["a"].score == 1.5


def test_labels_and_items_of_no_judge_are_left_out_and_counted() -> None:
    found, others = people([entry("a", 1), entry("tone/a", "rude"), entry("tone/b/c", 2), entry("tone/", 1)], "shop")
    assert (list(found), list(found["tone"].turns), others) == (["tone"], ["b/c"], 3)


def test_a_judges_version_of_the_set_is_what_people_said_of_its_turns_and_nothing_else() -> None:
    one = of(entry("tone/a", 1), entry("tone/b", 2))
    assert one.version == of(entry("tone/b", 2), entry("other/a", 5), entry("tone/a", 1, "r2")).version
    assert one.version != of(entry("tone/a", 1), entry("tone/b", 3)).version
    assert one.version != people([entry("tone/a", 1), entry("tone/b", 2)], "travel")[0]["tone"].version
    few, all_ = (one.beside(scores, "v", {}) for scores in ({"a": 1.0}, {"a": 1.0, "b": 2.0}))
    assert few.reference == all_.reference == one.version, "who leaves out turns gets no new chance"


def test_nine_tenths_of_the_last_rounds_turns_need_a_score() -> None:
    said = of(*(entry(f"tone/old{n}", 1) for n in range(50)), *(entry(f"tone/{n}", 1, "r2") for n in range(10)))
    assert said.enough({str(n): 1.0 for n in range(9)})
    assert not said.enough({str(n): 1.0 for n in range(8)} | {f"old{n}": 1.0 for n in range(50)})


def test_weights_of_two_draws_are_evened_and_an_unknown_draw_has_none() -> None:
    said = of(entry("tone/a", 1), entry("tone/b", 2), entry("tone/c", 3, "r2"), entry("tone/d", 4, "r2"))
    scores = dict.fromkeys("abcd", 1.0)
    weights = said.beside(scores, "v", {"r1": {"a": 1, "b": 3}, "r2": {"c": 10, "d": 30}}).weights
    assert weights is not None
    assert weights.tolist() == pytest.approx([0.5, 1.5, 0.5, 1.5])
    half = said.beside(scores, "v", {"r1": {"a": 1, "b": 3}, "r2": {"c": 10}}).weights
    assert half is not None
    assert half.tolist() == pytest.approx([0.5, 1.5, 1, 1])
    assert said.beside(scores, "v", {}).weights is None


def test_a_composites_pairs_keep_their_weights() -> None:
    said = of(entry("tone/a", 1), entry("tone/b", 2), entry("tone/c", 2))
    one = said.beside({"c": 1.0, "a": 2.0}, "v", {"r1": {"a": 1, "b": 3, "c": 3}})
    both: Pairs | None = composed({"tone": one, "other": one}, Composed({"tone": 1.0, "other": 1.0}))
    assert both is not None
    assert both.weights is not None
    assert both.weights.tolist() == pytest.approx([0.5, 1.5])
