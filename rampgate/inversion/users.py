"""Runs `rampgate check inversion --users`: holds judges' scores in Opik against users' signals of closed weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
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
from rampgate.checks.inversion import RESULTS, numbers
from rampgate.console import Failure, plain, print_json, run
from rampgate.logs import configure_logs
from rampgate.registry.verticals import load_verticals
from rampgate.settings import Settings
from rampgate.settings_sources import load_settings
from rampgate.tables import make_table
from rampgate.user_turns import read_turns
from schemas.verticals import Vertical

WeekOf = dict[Week, dict[str, list[UserTurn]]]
"""One turn a user of each week, by vertical."""


@dataclass(frozen=True)
class UsersAsked:
    """The options of the command. `vertical` None: all; `week` None: the last closed one."""

    vertical: str | None
    week: str | None
    configs: Path | None
    as_json: bool


def check_users(asked: UsersAsked, now: datetime | None = None) -> int:
    """Check, report, and return the exit code. Raises Failure."""
    configure_logs("error", "console")
    settings = load_settings({"configs": asked.configs})
    week = closed_week(asked.week, now or datetime.now(UTC), timedelta(seconds=settings.lookback_seconds))
    owners = _owners(settings, asked.vertical)
    try:
        picked = run(lambda: read_picks(settings, owners, [week.before, week]))
    except (Unauthorized, Unavailable) as error:
        raise Failure(f"Opik: {error}") from error
    thumbs, rerolls = (_found(picked[signal], week, signal) for signal in UserSignal)
    if asked.as_json:
        print_json(document(week, thumbs, rerolls))
    else:
        _show(week, thumbs, rerolls)
    return 0 if thumbs and all(inverted(one) is False for one in thumbs) else 1


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


def _owners(settings: Settings, wanted: str | None) -> list[Vertical]:
    verticals: Mapping[str, Vertical] = load_verticals(settings.configs)
    if wanted is None and verticals:
        return list(verticals.values())
    if wanted is not None and wanted in verticals:
        return [verticals[wanted]]
    known = ", ".join(sorted(verticals)) or "none"
    raise Failure(f"--vertical: {plain(wanted or 'all')} is not registered in {settings.configs}/verticals: {known}")


def _show(week: Week, thumbs: Sequence[UserFinding], rerolls: Sequence[UserFinding]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for about, found in ((f"Judges against thumbs, {week}", thumbs), ("Against rerolls, which page nobody", rerolls)):
        heads = ("Judge", "Vertical", ">Users", ">Effective n", ">Pearson", ">Holm's p", ">Weeks", "Result")
        table = make_table(about, *heads)
        for one in found:
            figures = (one.standing.found.pearson, one.adjusted_p)
            shown = ["" if value is None else f"{value:.3f}" for value in figures]
            sizes = f"{one.turns:,}", f"{one.standing.found.n:,.1f}"
            row = str(one.weeks_in_a_row)
            table.add_row(plain(one.judge), plain(one.vertical), *sizes, *shown, row, RESULTS[inverted(one)])
        if found:
            console.print(table)
    if not thumbs:
        console.print(f"{week}: nobody can tell: no judge scored a turn that a user gave a thumb")
