"""Preference pairs of an export (PF-9 FR-12): the last answer of a chain of rerolls against each earlier one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from evalcore.selection.where import parse_where
from rampgate.export.pairs import CUT, OTHER_QUERY, SAME_ANSWER, VOTED_DOWN, WITHOUT_TEXT, pairs
from schemas.answers import TurnView
from schemas.verticals import TraceLayout
from tests.unit.rampgate.export.session_turns import answered, found

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
