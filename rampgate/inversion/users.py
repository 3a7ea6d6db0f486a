"""Compares judges' scores in Opik with users' signals of closed weeks: `rampgate check inversion --users`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from agents.ports import Unauthorized, Unavailable
from evalcore.inversion.users import (
    IN_A_ROW,
    Picks,
    UserFinding,
    UserSignal,
    UserTurn,
    Week,
    check_picked,
    in_a_row,
    latest_closed,
)
from rampgate.command import Context, Document
from rampgate.console import Failure, plain, run
from rampgate.inversion.documents import numbers
from rampgate.logs import configure_logs
from rampgate.settings import Settings
from rampgate.user_turns import read_turns
from schemas.verticals import Vertical

WeekOf = dict[Week, dict[str, list[UserTurn]]]
"""One turn a user of each week, by vertical."""


def against_users(context: Context, vertical: str | None, week_name: str | None) -> Document:
    """The answer of the command, of one `vertical` or all; `week_name` None: the last closed one. Raises Failure."""
    configure_logs("error", "console")
    settings = context.settings
    late = timedelta(seconds=settings.lookback_seconds)
    week = closed_week(week_name, context.time, late)
    owners = _owners(context, vertical)
    try:
        picked = run(lambda: read_picks(settings, owners, [week.before, week]))
    except (Unauthorized, Unavailable) as error:
        raise Failure(f"Opik: {error}") from error
    thumbs, rerolls = (_found(picked[signal], week, signal) for signal in UserSignal)
    sound = thumbs and all(inverted(one) is False for one in thumbs)
    return Document(document(week, thumbs, rerolls), 0 if sound else 1)


def closed_week(asked: str | None, now: datetime, late: timedelta) -> Week:
    """The week that is asked for. Raises Failure for none, and for one whose signals may still come."""
    if asked is None:
        return latest_closed(now, late)
    try:
        week = Week.parse(asked)
    except ValueError as error:
        raise Failure(f"--week: {error}") from error
    if now < week.closes(late):
        closes = week.closes(late).isoformat(timespec="minutes")
        raise Failure(f"--week: {week} is open until {closes}: signals may still come; the last closed week is "
                      f"{latest_closed(now, late)}")  # fmt: skip
    return week


async def read_picks(settings: Settings, owners: Sequence[Vertical], weeks: Sequence[Week]) -> dict[UserSignal, WeekOf]:
    """Each week's picks of the verticals, by signal. Raises Unavailable and Unauthorized where one can't be read:
    judges are adjusted over all verticals, and half of them would be another check."""
    out: dict[UserSignal, WeekOf] = {}
    for signal in UserSignal:
        picks = [Picks(week, signal) for week in weeks]
        for owner in owners:
            async for turns in read_turns(settings, owner, signal, weeks[0].since_ms, weeks[-1].until_ms, tells=True):
                for one in picks:
                    one.add(turns)
        out[signal] = {week: one.by_vertical() for week, one in zip(weeks, picks, strict=True)}
    return out


def _found(picked: WeekOf, week: Week, signal: UserSignal) -> list[UserFinding]:
    before = check_picked(picked[week.before], week.before, signal)
    return in_a_row(check_picked(picked[week], week, signal), before)


def inverted(one: UserFinding) -> bool | None:
    """Whether the judge scored against users in so many weeks in a row that somebody is to be told; None where this
    week can't tell."""
    return None if one.against is None else one.weeks_in_a_row >= IN_A_ROW


def document(week: Week, thumbs: Sequence[UserFinding], rerolls: Sequence[UserFinding]) -> dict[str, Any]:
    return {
        "week": str(week),
        "judges": [_told(one) for one in thumbs],
        "inverted_count": len({one.judge for one in thumbs if inverted(one)}),
        "rerolls": [_told(one) for one in rerolls],
    }


def _told(one: UserFinding) -> dict[str, Any]:
    return {
        "judge_id": one.judge,
        "vertical": one.vertical,
        "week": str(one.week),
        "signal": str(one.signal),
        **numbers(one.standing.found),
        "n": one.turns,
        "effective_n": one.standing.found.n,
        "adjusted_p": one.adjusted_p,
        "against": one.against,
        "weeks_in_a_row": one.weeks_in_a_row,
        "inverted": inverted(one),
        "carries_signal": one.standing.carries_signal,
        "detectable": one.standing.detectable,
        "reason": one.standing.reason,
    }


def _owners(context: Context, wanted: str | None) -> list[Vertical]:
    verticals = context.verticals
    if wanted is None and verticals:
        return list(verticals.values())
    if wanted is not None and wanted in verticals:
        return [verticals[wanted]]
    known = ", ".join(sorted(verticals)) or "none"
    place = f"{context.settings.configs}/verticals"
    raise Failure(f"--vertical: {plain(wanted or 'all')} is not registered in {place}: {known}")
