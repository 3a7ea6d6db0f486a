"""The filter of an export, PF-9 FR-12: what matches, and what a bad one is told."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.selection.where import LABELS, BadWhere, Comparison, matches, needed_scores, parse_where, printed
from schemas.answers import JudgeOpinion, TurnView

NAMES = st.one_of(st.sampled_from(["user_signal_thumbs", "ux-quality", "judge.tone"]), st.text(min_size=1, max_size=8))
NUMBERS = st.one_of(st.sampled_from([-1.0, 0.0, 1.0, 4.0]), st.floats(allow_nan=False, allow_infinity=False))
TEXTS = st.one_of(st.sampled_from(["tips", "12"]), st.text(max_size=8))
SYMBOLS: dict[str, Any] = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge
}  # fmt: skip
OF_SCORES = st.builds(
    Comparison, st.sampled_from(["feedback_scores", "judge_scores"]), NAMES, st.sampled_from([*SYMBOLS]), NUMBERS
)
OF_LABELS = st.builds(Comparison, st.just(""), st.sampled_from(LABELS), st.sampled_from(["=", "!="]), TEXTS)
FILTERS = st.lists(st.one_of(OF_SCORES, OF_LABELS), min_size=1, max_size=4).map(tuple)
VIEWS = st.builds(
    TurnView,
    response_id=TEXTS,
    category=st.none() | TEXTS,
    sub_agent=st.none() | TEXTS,
    feedback_scores=st.dictionaries(NAMES, NUMBERS, max_size=3),
    judge_scores=st.lists(
        st.builds(JudgeOpinion, judge_id=NAMES, score=st.none() | NUMBERS),
        max_size=3,
        unique_by=lambda one: one.judge_id,
    ),
)


@given(FILTERS)
def test_a_filter_that_is_printed_is_read_as_itself(where: tuple[Comparison, ...]) -> None:
    assert parse_where(printed(where)) == where


@given(FILTERS, VIEWS)
def test_a_filter_matches_what_plain_python_does(where: tuple[Comparison, ...], view: TurnView) -> None:
    document = view.model_dump()
    document["judge_scores"] = {judge["judge_id"]: judge["score"] for judge in document["judge_scores"]}
    expected = True
    for one in where:
        value = document[one.kind].get(one.name) if one.kind else document[one.name]
        expected = expected and value is not None and SYMBOLS[one.operator](value, one.than)
    assert matches(where, view) == expected


def test_pf9_fr12_a_missing_value_matches_nothing() -> None:
    silent = TurnView(response_id="r", judge_scores=[JudgeOpinion(judge_id="tone", score=None)])
    for symbol in SYMBOLS:
        for field in ("feedback_scores.user_signal_thumbs", "judge_scores.tone", "judge_scores.other"):
            assert not matches(parse_where(f"{field} {symbol} 0"), silent)
    assert not matches(parse_where("category != 'tips'"), silent)
    assert matches(parse_where("response_id = 'r'"), silent)


def test_comparisons_are_joined_by_and_in_any_case_and_two_equal_signs_are_one() -> None:
    where = parse_where("feedback_scores.user_signal_thumbs<0 and judge_scores.ux-quality>=.5 AND category=='it''s'")
    assert printed(where) == (
        'feedback_scores.user_signal_thumbs < 0.0 AND judge_scores.ux-quality >= 0.5 AND category = "it\'s"'
    )
    assert needed_scores(where) == ("user_signal_thumbs", "ux-quality")


@pytest.mark.parametrize(
    ("text", "column", "remedy"),
    [
        ("", 1, "a field is missing"),
        ("category", 9, "is missing"),
        ("category =", 11, "a quoted text is missing"),
        ("category = tips", 12, "a quoted text"),
        ("category = 12", 12, 'write "12" with quotes'),
        ("category < 'tips'", 10, "only = and !="),
        ("categroy = 'tips'", 1, "there are feedback_scores.NAME"),
        ("feedback_scores < 0", 1, "feedback_scores.NAME"),
        ("judge_scores.tone = 'good'", 21, "with a number"),
        ("judge_scores.tone < ４", 21, "begins nothing"),
        ("judge_scores.tone < 1e999", 21, "too large"),
        ("judge_scores.tone < nan", 21, "not a number"),
        ("judge_scores.tone < 1 OR category = 'tips'", 23, "by AND only"),
        ("judge_scores.tone < 1 AND", 26, "a field is missing"),
        ("category = 'tips", 12, "not closed"),
        ("category ~ 'tips'", 10, "begins nothing"),
    ],
)
def test_a_bad_filter_is_told_with_its_column_and_what_to_write(text: str, column: int, remedy: str) -> None:
    with pytest.raises(BadWhere) as raised:
        parse_where(text)
    assert raised.value.column == column
    assert remedy in str(raised.value)
