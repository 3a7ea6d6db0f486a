"""Which answers of a window are rerolls of one another (PF-9 §5.4), found page by page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.codec import TraceFacts
from agents.policy import Policy
from schemas.answers import TurnView
from streams.opik.traces import told as facts_told
from streams.sweep.events import Sessions
from tests.unit.rampgate.export.session_turns import UNTIL, WINDOW, answered, chains, pages_of, told

DAY = 24 * 60.0
TURNS = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from("ab"), st.sampled_from("st"), st.integers(1_000, 200_000)),
    max_size=14,
)


@pytest.mark.parametrize("size", [1, 2, 50])
def test_answers_to_the_same_input_within_the_reroll_window_are_a_chain_whatever_the_pages(size: int) -> None:
    turns = [
        answered("a1", 10), answered("a2", 12), answered("a3", 14), answered("late", 60),
        answered("other", 11, said="bye"), answered("theirs", 13, session="t"), answered("none", 13, session=None),
    ]  # fmt: skip
    assert told(*turns, size=size) == [(["a1", "a2", "a3"], False)]


@given(TURNS, st.integers(1, 5))
def test_pf9_5_4_a_chain_joins_what_the_sweep_calls_a_reroll(drawn: list[tuple[int, str, str, int]], size: int) -> None:
    """One rule: whom the sweep says was rerolled has a later answer in its chain, and nobody else has."""
    views = [
        answered(f"r-{number}", minute, said=said, session=session, lasted=lasted)
        for number, (minute, said, session, lasted) in enumerate(drawn)
    ]
    swept = Sessions(Policy(reroll_window=WINDOW))
    swept.add(facts(views))
    pairs = {(reroll.before.response_id, reroll.after.response_id) for reroll in swept.rerolls()}
    chained = [ids for ids, _ in told(*views, size=size)]
    places = {response_id: number for number, ids in enumerate(chained) for response_id in ids}
    assert all(places[before] == places[after] for before, after in pairs)
    assert {one for ids in chained for one in ids[:-1]} == {before for before, _ in pairs}
    assert len(places) == sum(map(len, chained)), "no answer is in two chains"


def facts(views: list[TurnView]) -> list[TraceFacts]:
    return [one for view in views if (one := facts_told(view.trace, "p")) is not None]


def test_an_answer_with_the_rerolls_score_is_joined_to_the_turn_after_it() -> None:
    """The history middleware saw a reroll that the inputs in Opik don't show."""
    assert told(answered("a", 10, reroll=1.0), answered("b", 12, said="hello!")) == [(["a", "b"], False)]
    assert told(answered("a", 10, reroll=0.0), answered("b", 12, said="hello!")) == []
    assert told(answered("a", 10, reroll=1.0), answered("b", 30, said="hello!")) == [(["a"], True)], "not in time"


def test_the_same_input_comes_before_the_turn_after() -> None:
    turns = [answered("a", 10, reroll=1.0), answered("between", 11, said="bye"), answered("b", 12)]
    assert told(*turns) == [(["a", "b"], False)]


def test_a_chain_that_began_before_the_window_is_cut_and_one_that_ended_there_is_none_of_its() -> None:
    assert told(answered("a", -2), answered("b", 1)) == [(["a", "b"], True)]
    assert told(answered("a", -2), answered("b", 1), answered("c", 3)) == [(["a", "b", "c"], True)]
    assert told(answered("a", -5), answered("b", -2)) == []


def test_a_chain_whose_last_answer_was_or_may_yet_be_rerolled_is_cut() -> None:
    assert told(answered("a", 10), answered("b", 12, reroll=1.0)) == [(["a", "b"], True)]
    assert told(answered("a", DAY - 4), answered("b", DAY - 2)) == [(["a", "b"], True)]
    last = (UNTIL - WINDOW - 10_001 - answered_at(0)) / 60_000
    assert told(answered("a", last - 2), answered("b", last)) == [(["a", "b"], False)]


def answered_at(minute: float) -> int:
    return facts([answered("r", minute)])[0].started


def test_turns_are_kept_no_longer_than_a_chain_may_reach() -> None:
    taking, most = chains(), 0
    turns = [answered(f"r-{number}", number, said=str(number // 2)) for number in range(1_000)]
    given_out = 0
    for page in pages_of(turns, 50):
        given_out += len(taking.add(page))
        most = max(most, sum(map(len, taking._sessions.values())))
    assert most < 200
    assert given_out + len(taking.rest()) == 500
    assert not taking._sessions
