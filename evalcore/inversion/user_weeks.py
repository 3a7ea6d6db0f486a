"""Which closed weeks are still to be looked at, what is kept of one, and what operators are told (PF-9 FR-10). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from evalcore.inversion.users import IN_A_ROW, UserFinding, UserSignal, UserTurn, Week, check_picked, counted_on
from schemas.checks.user_week import JudgeWeek, UserWeek
from schemas.dead_letters import clean

MADE_UP = 13
"""Weeks that are made up after no one looked for long: a quarter of them."""
MOST = 15
"""Judges in one message; the record has all."""


def due(known: Collection[Week], latest: Week) -> list[Week]:
    """Returns the closed weeks that are still to be looked at, the oldest first. Who has never looked begins with as
    many as make news."""
    start = latest
    for _ in range((MADE_UP if known else IN_A_ROW) - 1):
        start = start.before
    week, out = max(start, max(known).after if known else start), []
    while week <= latest:
        out.append(week)
        week = week.after
    return out


def looked_at(
    chosen: Mapping[str, Sequence[UserTurn]],
    week: Week,
    before: UserWeek | None,
    at: datetime,
    unread: Iterable[str] = (),
) -> UserWeek:
    """Returns the record of a week's picks by vertical; `before` is that of the week before, where there is one."""
    known = {}
    if before is not None:
        then = Week.parse(before.week)
        known = {(one.judge_id, one.vertical, UserSignal.THUMBS, then): one.weeks_in_a_row for one in before.judges}
    found = counted_on(check_picked(chosen, week, UserSignal.THUMBS), known)
    return UserWeek(week=str(week), at=at, judges=tuple(map(_kept, found)), unread=tuple(unread))


def merged(records: Iterable[UserWeek]) -> dict[Week, UserWeek]:
    """Returns each week's record, whatever the order of the topic's: the one that was told counts."""
    out: dict[Week, UserWeek] = {}
    for record in records:
        week = Week.parse(record.week)
        if record.told or week not in out or not out[week].told:
            out[week] = record
    return out


def news_in(record: UserWeek) -> list[JudgeWeek]:
    """Returns the judges of whom this week makes news: it is just enough weeks in a row, so that no one hears it twice
    of the same run of weeks."""
    return [one for one in record.judges if one.weeks_in_a_row == IN_A_ROW]


def untold(known: Mapping[Week, UserWeek]) -> list[UserWeek]:
    """Returns the records with news that were not sent, the oldest first."""
    return [record for _, record in sorted(known.items()) if not record.told and news_in(record)]


def against_now(known: Mapping[Week, UserWeek]) -> dict[tuple[str, str], int]:
    """Returns the weeks in a row up to the last known one, by judge and vertical, of those that score against users."""
    if not known:
        return {}
    return {(one.judge_id, one.vertical): one.weeks_in_a_row for one in known[max(known)].judges if one.weeks_in_a_row}


def is_behind(known: Collection[Week], latest: Week, closed: datetime, now: datetime, patience_seconds: float) -> bool:
    """Tells whether the latest closed week should have been looked at by `now`; it closed at `closed`."""
    return not (known and max(known) >= latest) and (now - closed).total_seconds() >= patience_seconds


def news(record: UserWeek) -> str:
    """Returns the text that tells operators of a week's judges, on a line each, whatever their names hold."""
    week, judges = Week.parse(record.week), news_in(record)
    lines = [f"• {clean(one.judge_id, 100)} in {clean(one.vertical, 100)}: {_figures(one)}" for one in judges]
    more = [f"… and {len(lines) - MOST} more"] if len(lines) > MOST else []
    head = f"Judges score against users, in {week.before} and {week}: what users voted down got the better scores."
    foot = (
        "No one is suspended: users are not the people of a reference set. Hold these judges against people; "
        f"`rampgate check inversion --users --week {week}` shows more, docs/trust.md what to do."
    )
    return "\n".join([head, *lines[:MOST], *more, foot])


def _figures(one: JudgeWeek) -> str:
    low, high = one.pearson_ci95 or (float("nan"), float("nan"))
    return f"Pearson {one.pearson:.3f}, 95 % {low:.3f} to {high:.3f}, of {one.n} users, Holm's p {one.adjusted_p:.2g}"


def _kept(found: UserFinding) -> JudgeWeek:
    one = found.standing.found
    return JudgeWeek(
        judge_id=found.judge,
        vertical=found.vertical,
        n=found.turns,
        effective_n=one.n,
        pearson=one.pearson,
        pearson_ci95=one.ci95,
        adjusted_p=found.adjusted_p,
        weeks_in_a_row=found.weeks_in_a_row,
    )
