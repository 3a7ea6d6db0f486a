"""Runs `rampgate check inversion --users`: holds judges' scores in Opik against users' signals of closed weeks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agents.ports import Unauthorized, Unavailable
from evalcore.inversion.users import IN_A_ROW, UserFinding, UserSignal, UserTurn, Week, check_weeks, latest_closed
from rampgate.checks.inversion import RESULTS, numbers
from rampgate.console import Failure, plain, print_json, run
from rampgate.logs import configure_logs
from rampgate.opik_reading import opened
from rampgate.registry.verticals import load_verticals
from rampgate.settings import Settings
from rampgate.settings_sources import load_settings
from rampgate.tables import make_table
from schemas.answers import TurnView
from schemas.signals import REROLL, THUMBS
from schemas.verticals import Vertical
from streams.opik.traces import moment
from streams.queries.turn_pages import turn_pages

SCORES = {UserSignal.THUMBS: (THUMBS.score, 1.0), UserSignal.REROLL: (REROLL.score, -1.0)}
"""Each signal's score in Opik, and whether a higher one is better: a rerolled turn has 1."""
PATIENCE_SECONDS = 60.0
"""A week is many pages; one that does not come need not end the check."""


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
        turns = run(lambda: read_turns(settings, owners, week.before.since_ms, week.until_ms))
    except (Unauthorized, Unavailable) as error:
        raise Failure(f"Opik: {error}") from error
    thumbs, rerolls = (check_weeks(turns, week, IN_A_ROW, signal) for signal in UserSignal)
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


async def read_turns(settings: Settings, owners: Sequence[Vertical], since_ms: int, until_ms: int) -> list[UserTurn]:
    """The verticals' turns with a signal of users. Raises Unavailable and Unauthorized where one can't be read: judges
    are adjusted over all verticals, and half of them would be another check."""
    found: list[UserTurn] = []
    for owner in owners:
        async with opened(settings, owner, retry_seconds=PATIENCE_SECONDS) as traces:
            name = owner.name
            async for page in turn_pages(traces, owner.project, vertical=name, since_ms=since_ms, until_ms=until_ms):
                found += turns_of(page)
    return found


def turns_of(views: Iterable[TurnView]) -> list[UserTurn]:
    """The turns of a user with a signal; of one without a user nobody can say whose it is."""
    out = []
    for view in views:
        signals = {
            signal: better * view.feedback_scores[name]
            for signal, (name, better) in SCORES.items()
            if name in view.feedback_scores
        }
        if signals and view.user_id:
            judges = {one.judge_id: one.score for one in view.judge_scores if one.score is not None}
            began = moment(view.trace.get("start_time"))
            out.append(UserTurn(view.response_id, view.user_id, view.vertical or "", began, signals, judges))
    return out


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
