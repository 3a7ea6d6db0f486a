"""The draw of a calibration round: by category, with a stratum of turns that users and judges see otherwise."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from evalcore.calibration.draw import TooFewTurns, Turn, disagree, draw


def turns(**of: int) -> list[Turn]:
    """So many turns of each category; one in ten is disagreed about."""
    return [Turn(f"{name}{n}", name, n % 10 == 0) for name, many in of.items() for n in range(many)]


def test_pf9_5_3_at_least_200_turns_are_drawn_by_category() -> None:
    drawn = draw(turns(much=3_000, some=900, few=15), ["much", "some", "few"], 200, "seed")
    assert Counter(one.turn.category for one in drawn) == {"much": 154, "some": 46, "few": 15}
    assert len({one.turn.item for one in drawn}) == len(drawn) >= 200


def test_pf9_5_3_weights_bring_each_category_back_to_its_turns() -> None:
    drawn = draw(turns(much=3_000, some=900), ["much", "some"], 200, "seed")
    back = Counter[tuple[str, bool]]()
    for one in drawn:
        back[one.turn.category, one.turn.disagreeing] += round(one.weight * 1_000)
    wanted = {("much", True): 300, ("much", False): 2_700, ("some", True): 90, ("some", False): 810}
    assert {key: round(weight / 1_000) for key, weight in back.items()} == wanted


def test_turns_that_users_and_judges_see_otherwise_are_a_quarter() -> None:
    drawn = draw(turns(much=3_000), ["much"], 200, "seed")
    assert sum(one.turn.disagreeing for one in drawn) == 50
    all_of_them = draw([Turn(f"t{n}", "c", True) for n in range(200)], ["c"], 200, "seed")
    assert {one.weight for one in all_of_them} == {1.0}
    rare = draw([Turn(f"t{n}", "c", n == 0) for n in range(900)], ["c"], 200, "seed")
    assert [one.weight for one in rare if one.turn.disagreeing] == [1.0]


def test_the_draw_is_the_same_in_whatever_order_turns_come_and_another_with_another_seed() -> None:
    of = turns(much=3_000, some=900)
    shuffled = random.Random(3).sample(of, len(of))
    assert draw(of, ["much", "some"], 200, "a") == draw(shuffled, ["much", "some"], 200, "a")
    assert draw(of, ["much", "some"], 200, "a") != draw(of, ["much", "some"], 200, "b")


def test_too_few_turns_are_told() -> None:
    with pytest.raises(TooFewTurns, match="few has 9, none has 0 turns; 10 of each"):
        draw(turns(much=300, few=9), ["much", "few", "none"], 200, "seed")
    with pytest.raises(TooFewTurns, match="199 turns"):
        draw(turns(much=199), ["much"], 200, "seed")


def test_a_user_and_judges_that_say_the_opposite_disagree() -> None:
    assert disagree(1.0, [0.0, 0.25])
    assert disagree(-1.0, [1.0, 0.5])
    assert not disagree(1.0, [0.5])
    assert not disagree(None, [0.0])
    assert not disagree(-1.0, [])
