"""Which answers of a window are rerolls of one another (PF-9 §5.4), found page by page. Preference pairs of an export
(PF-9 FR-12): the last answer of a chain of rerolls against each earlier one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.codec import TraceFacts
from agents.policy import Policy
from evalcore.selection.where import parse_where
from rampgate.export.pairs import CUT, OTHER_QUERY, SAME_ANSWER, VOTED_DOWN, WITHOUT_TEXT, pairs
from schemas.answers import TurnView
from schemas.verticals import TraceLayout
from streams.opik.traces import told as facts_told
from streams.sweep.events import Sessions
from tests.unit.rampgate.export.session_turns import UNTIL, WINDOW, answered, chains, found, pages_of, told

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
    """One rule: whom the sweep says was rerolled has a later answer in its chain, and no one else has."""
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


ALL = 'vertical = "receipts"'


def paired(*views: TurnView, where: str = ALL) -> tuple[list[tuple[Any, Any]], dict[str, int]]:
    """(chosen, rejected) of each line, and what was left out."""
    left_out: Counter[str] = Counter()
    lines = [line for lines in pairs(found(*views), parse_where(where), TraceLayout(), left_out) for line in lines]
    return [(line["chosen"], line["rejected"]) for line in lines], dict(left_out)


def test_pf9_fr12_the_last_answer_is_chosen_over_each_earlier_one() -> None:
    turns = [answered("a", 10, thumbs=-1.0), answered("b", 12), answered("c", 14, thumbs=1.0)]
    assert paired(*turns) == ([("c", "a"), ("c", "b")], {})
    assert paired(answered("alone", 10)) == ([], {})


def test_a_line_has_texts_labels_and_the_ids_of_both() -> None:
    turns = answered("a", 10, said={"q": "why?"}, answer={"a": 1}), answered("b", 12, said={"q": "why?"})
    ((line,),) = pairs(found(*turns), parse_where(ALL), TraceLayout(), Counter())
    assert line == {
        "chosen_trace_id": turns[1].trace["id"],
        "rejected_trace_id": turns[0].trace["id"],
        "chosen_response_id": "b",
        "rejected_response_id": "a",
        "vertical": "receipts",
        "sub_agent": None,
        "category": None,
        "timestamp": turns[1].timestamp,
        "user_query": '{"q": "why?"}',
        "chosen": "b",
        "rejected": '{"a": 1}',
    }


def test_pf9_fr12_a_pair_has_the_texts_that_judges_read_and_one_query_is_the_whole_input() -> None:
    def asked(text: str, before: str = "hi") -> Any:
        return {"messages": [{"role": "user", "content": before}, {"role": "user", "content": text}]}

    def said(text: str) -> Any:
        return {"messages": [{"role": "assistant", "content": [{"type": "text", "text": text}]}]}

    turns = answered("a", 10, said=asked("why?"), answer=said("so")), answered("b", 12, said=asked("why?"), answer="as")
    ((line,),) = pairs(found(*turns), parse_where(ALL), TraceLayout(), Counter())
    assert (line["user_query"], line["chosen"], line["rejected"]) == ("why?", "as", "so")
    other = answered("c", 10, said=asked("why?"), reroll=1.0), answered("d", 12, said=asked("why?", "bye"))
    assert paired(*other) == ([], {OTHER_QUERY: 1})


def test_the_filter_picks_the_rejected_answer() -> None:
    turns = [answered("a", 10, thumbs=-1.0), answered("b", 12), answered("c", 14)]
    assert paired(*turns, where="feedback_scores.user_signal_thumbs < 0") == ([("c", "a")], {})
    assert paired(*turns, where='response_id = "c"') == ([], {})


def test_an_answer_that_was_voted_down_is_never_chosen() -> None:
    turns = [answered("a", 10), answered("b", 12, thumbs=-1.0)]
    assert paired(*turns) == ([], {VOTED_DOWN: 1})
    assert paired(*turns, where='response_id = "b"') == ([], {}), "none that the filter would have picked"


def test_a_chain_cut_by_the_window_is_left_out_and_told() -> None:
    turns = [answered("a", -2), answered("b", 1), answered("c", 3)]
    assert paired(*turns) == ([], {CUT: 1})
    assert paired(*turns, where='response_id = "other"') == ([], {})


def test_pairs_that_say_nothing_of_one_query_are_left_out_and_told() -> None:
    different = [answered("a", 10, reroll=1.0), answered("b", 12, said="hello!")]
    assert paired(*different) == ([], {OTHER_QUERY: 1})
    equal = [answered("a", 10, answer="yes"), answered("b", 12), answered("c", 14, answer="yes")]
    assert paired(*equal) == ([("yes", "b")], {SAME_ANSWER: 1})
    silent = answered("a", 10)
    del silent.trace["output"]
    assert paired(silent, answered("b", 12)) == ([], {WITHOUT_TEXT: 1})
