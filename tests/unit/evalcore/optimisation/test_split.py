"""PF-9 FR-9, §5.7: which items are held out is said by the hash of their ids."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.optimisation.split import is_held_out, split


def row(item: str, asked: Any = None) -> dict[str, Any]:
    return {"input": f"question about {item}" if asked is None else asked, "metadata": {"id": item}}


@given(st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=30), st.integers(0, 30))
def test_an_item_stays_on_its_side_whatever_is_added(items: list[str], first: int) -> None:
    before, after = split([row(item) for item in items[:first]]), split([row(item) for item in items])
    assert set(before.held_out) == {item for item in items[:first] if item in after.held_out}


def test_about_the_part_that_is_asked_for_is_held_out() -> None:
    for part in (0.2, 0.5, 0.8):
        held = sum(is_held_out(f"item-{number}", part) for number in range(2_000))
        assert abs(held / 2_000 - part) < 0.05


def test_a_larger_part_holds_out_what_a_smaller_one_does() -> None:
    small, large = ({n for n in range(300) if is_held_out(f"i{n}", part)} for part in (0.3, 0.6))
    assert small < large


def test_an_item_that_asks_what_a_held_out_one_asks_is_shown_to_nobody() -> None:
    held = next(f"i{n}" for n in range(100) if is_held_out(f"i{n}"))
    shown = next(f"i{n}" for n in range(100) if not is_held_out(f"i{n}"))
    found = split([row(held, "Where is my parcel?"), row(shown, "where  is my PARCEL"), row(f"{shown}x", "?")])
    assert shown in found.twins
    assert shown not in {*found.shown, *found.held_out}


LONG = "my parcel with the two lamps was to come on Monday and it has not come yet, where is it?"


@pytest.mark.parametrize(
    ("held_out", "asked"),
    [
        ({"question": "where is my parcel", "order": 7}, {"order": 7, "question": "Where is my parcel?"}),
        ("where is my parcel", "where is my parcel please"),
        ("please where is my parcel", "where is my parcel"),
        ("where is my parcel", {"messages": [{"content": "where is my parcel"}]}),
        (LONG, LONG.replace("Monday", "Tuesday")),
        ("???", "???"),
    ],
)
def test_a_twin_in_other_spelling_or_nearly_the_same_is_shown_to_nobody(held_out: Any, asked: Any) -> None:
    held = next(f"i{n}" for n in range(100) if is_held_out(f"i{n}"))
    shown, other = [f"i{n}" for n in range(100) if not is_held_out(f"i{n}")][:2]
    found = split([row(held, held_out), row(shown, asked), row(other, "how do I pay with a card?")])
    assert (found.twins, [*found.shown]) == ((shown,), [other])


@pytest.mark.parametrize(
    ("held_out", "asked"),
    [
        ("how do I do 4", "how do I do 5"),
        ("where is my parcel", "where is my refund"),
        ({"order": 7}, {"order": 8}),
        ("?", "!"),
        (LONG, LONG.replace("Monday", "Tuesday").replace("two lamps", "three chairs")),
    ],
)
def test_another_question_in_the_same_form_stays_shown(held_out: Any, asked: Any) -> None:
    held = next(f"i{n}" for n in range(100) if is_held_out(f"i{n}"))
    shown = next(f"i{n}" for n in range(100) if not is_held_out(f"i{n}"))
    assert split([row(held, held_out), row(shown, asked)]).twins == ()
