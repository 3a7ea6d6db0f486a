"""Who scores against users pages within weeks, who does not pages less than once a year (PF-9 FR-10, §5.4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from evalcore.inversion.users import (
    UserFinding,
    UserSignal,
    UserTurn,
    Week,
    check_week,
    in_a_row,
    latest_closed,
    picked,
)

THUMBS, REROLL = UserSignal.THUMBS, UserSignal.REROLL
FIRST = Week(2026, 1)
VERTICALS = ("receipts", "shopping")


def next_week(week: Week) -> Week:
    return Week.of(week.until_ms)


def check_weeks(turns: list[UserTurn], last: Week, weeks: int, signal: UserSignal) -> list[UserFinding]:
    """What is found of the last week, after so many in all."""
    before = check_weeks(turns, last.before, weeks - 1, signal) if weeks > 1 else []
    return in_a_row(check_week(turns, last, signal), before)


def week_of(draw: np.random.Generator, week: Week, users: int, correlations: list[float]) -> list[UserTurn]:
    """One turn a user in each vertical; three thumbs of ten are down, and judges' scores go with them by so much."""
    out = []
    for vertical in VERTICALS:
        thumbs = np.where(draw.random(users) < 0.3, -1.0, 1.0)
        side = (thumbs - thumbs.mean()) / thumbs.std()
        scores = [rho * side + np.sqrt(1 - rho**2) * draw.normal(size=users) for rho in correlations]
        columns = list(zip(*(one.tolist() for one in scores), strict=True))
        out += [
            UserTurn(
                f"{vertical} {week} {user}", f"u{user}", vertical, week.since_ms + user, {THUMBS: float(thumbs[user])},
                {f"judge {place}": score for place, score in enumerate(columns[user])},
            )
            for user in range(users)
        ]  # fmt: skip
    return out


def test_16_uncorrelated_judges_page_under_once_a_year() -> None:
    """Of two verticals, over six simulated years: a judge called by chance is not called by chance again."""
    draw, pages, calls, week = np.random.default_rng(13), 0, 0, FIRST
    before: list[UserFinding] = []
    years = 6
    for _ in range(52 * years):
        before = in_a_row(check_week(week_of(draw, week, 60, [0.0] * 16), week, THUMBS), before)
        assert len(before) == 32
        pages += sum(one.pages for one in before)
        calls += any(one.against for one in before)
        week = next_week(week)
    assert pages < years
    assert calls / (52 * years) <= 0.06, "a week's 32 looks together call somebody by chance in one of forty weeks"


@pytest.mark.parametrize("seed", range(12))
def test_a_judge_that_scores_against_users_pages_within_four_weeks(seed: int) -> None:
    draw, week = np.random.default_rng(seed), FIRST
    before: list[UserFinding] = []
    paged: set[tuple[str, str]] = set()
    for _ in range(4):
        turns = week_of(draw, week, 300, [-0.3, 0.3] + [0.0] * 14)
        before = in_a_row(check_week(turns, week, THUMBS), before)
        paged |= {(one.judge, one.vertical) for one in before if one.pages}
        week = next_week(week)
    assert paged == {("judge 0", vertical) for vertical in VERTICALS}


def test_one_week_pages_nobody_and_a_gap_begins_anew() -> None:
    draw = np.random.default_rng(1)
    first, second, third = FIRST, next_week(FIRST), next_week(next_week(FIRST))
    turns = [turn for week in (first, second, third) for turn in week_of(draw, week, 300, [-0.6])]
    assert not any(one.pages for one in check_weeks(turns, first, 1, THUMBS))
    assert all(one.pages for one in check_weeks(turns, second, 2, THUMBS))
    gap = in_a_row(check_week(turns, third, THUMBS), check_week(turns, first, THUMBS))
    assert [one.weeks_in_a_row for one in gap] == [1, 1]


def test_a_weeks_turns_seen_twice_or_of_another_week_add_nothing() -> None:
    turns = week_of(np.random.default_rng(2), FIRST, 100, [-0.3, 0.2])
    found = check_week(turns, FIRST, THUMBS)
    late = week_of(np.random.default_rng(3), next_week(FIRST), 100, [0.9, 0.9])
    assert check_week([*turns, *turns, *late], FIRST, THUMBS) == found
    assert check_week(reversed(turns), FIRST, THUMBS) == found
    again = in_a_row(found, found)
    assert [one.weeks_in_a_row for one in again] == [one.weeks_in_a_row for one in found], (
        "a week does not follow itself"
    )


def test_one_turn_a_user_takes_part_whatever_its_scores() -> None:
    turns = week_of(np.random.default_rng(4), FIRST, 20, [0.5])
    many = [*turns, *(replace(turns[0], response_id=f"more {n}", judges={"judge 0": 9.0 * n}) for n in range(50))]
    (chosen,) = [turn for turn in picked(many, FIRST, THUMBS)["receipts"] if turn.user_id == "u0"]
    assert len(picked(many, FIRST, THUMBS)["receipts"]) == 20
    other = [replace(turn, judges={"judge 0": -turn.judges["judge 0"]}) for turn in many]
    (same,) = [turn for turn in picked(other, FIRST, THUMBS)["receipts"] if turn.user_id == "u0"]
    assert same.response_id == chosen.response_id
    assert picked(reversed(many), FIRST, THUMBS) == picked(many, FIRST, THUMBS), "nor does the order of pages choose"
    unjudged = [replace(turn, judges={}) if turn.response_id == chosen.response_id else turn for turn in many]
    assert [one.turns for one in check_week(unjudged, FIRST, THUMBS)] == [19, 20], "no other turn stands in for it"
    assert picked([replace(turn, user_id="") for turn in turns], FIRST, THUMBS) == {}


def test_what_is_judged_rarely_stands_for_its_kind() -> None:
    """All that was voted down is judged, and one in five of the rest: weighted, the series are those of all turns."""
    turns = [turn for turn in week_of(np.random.default_rng(5), FIRST, 4000, [-0.3]) if turn.vertical == "receipts"]
    some = [
        turn if turn.signals[THUMBS] < 0 or place % 5 == 0 else replace(turn, judges={})
        for place, turn in enumerate(turns)
    ]
    (whole,), (part,) = check_week(turns, FIRST, THUMBS), check_week(some, FIRST, THUMBS)
    assert whole.standing.found.n == pytest.approx(4000)
    assert whole.standing.found.pearson == pytest.approx(-0.3, abs=0.03)
    assert part.standing.found.pearson == pytest.approx(-0.3, abs=0.06)
    assert part.standing.found.n < part.turns < 4000, "unequal weights say less than so many equal ones"


def test_pf9_decision_12_rerolls_are_a_dimension_of_their_own_and_page_nobody() -> None:
    draw, weeks = np.random.default_rng(6), (FIRST, next_week(FIRST))
    turns = [turn for week in weeks for turn in week_of(draw, week, 300, [0.3])]
    both = [replace(turn, signals={**turn.signals, REROLL: -turn.signals[THUMBS]}) for turn in turns]
    assert check_weeks(both, weeks[1], 2, THUMBS) == check_weeks(turns, weeks[1], 2, THUMBS)
    rerolls = check_weeks(both, weeks[1], 2, REROLL)
    assert [(one.against, one.weeks_in_a_row, one.pages) for one in rerolls] == [(True, 2, False)] * 2


def test_few_users_or_thumbs_that_are_all_the_same_tell_nothing() -> None:
    few = week_of(np.random.default_rng(7), FIRST, 9, [-0.9])
    assert [one.against for one in check_week(few, FIRST, THUMBS)] == [None, None]
    up = [replace(turn, signals={THUMBS: 1.0}) for turn in week_of(np.random.default_rng(8), FIRST, 50, [-0.9])]
    assert [(one.against, one.weeks_in_a_row) for one in check_week(up, FIRST, THUMBS)] == [(None, 0)] * 2


def test_weeks_are_isos_in_utc_and_closed_once_no_signal_can_come() -> None:
    week = Week.parse("2026-W53")
    assert (str(week.before), str(next_week(week))) == ("2026-W52", "2027-W01")
    assert datetime.fromtimestamp(week.since_ms / 1000, UTC) == datetime(2026, 12, 28, tzinfo=UTC)
    assert Week.of(week.until_ms - 1) == week
    late = timedelta(days=7)
    closes = week.closes(late)
    assert closes == datetime(2027, 1, 11, tzinfo=UTC)
    assert latest_closed(closes, late) == week
    assert latest_closed(closes - timedelta(milliseconds=1), late) == week.before
    for wrong in ("2026-47", "2026-W54", "W47", "2026-W00", ""):
        with pytest.raises(ValueError, match=r"week|is no"):
            Week.parse(wrong)
