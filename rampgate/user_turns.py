"""Reads users' turns from Opik: one vertical's, with what users and judges said of each (PF-9 §5.4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from aiolimiter import AsyncLimiter

from evalcore.inversion.users import UserSignal, UserTurn
from rampgate.registry.opik_reading import opened
from rampgate.settings import Settings
from schemas.answers import TurnView
from schemas.signals import REROLL, THUMBS
from schemas.verticals import Vertical
from streams.opik.traces import moment
from streams.queries.turn_pages import signal_pages

SCORES = {UserSignal.THUMBS: (THUMBS, 1.0), UserSignal.REROLL: (REROLL, -1.0)}
"""Each signal as it is declared, and whether a higher score is better: a rerolled turn has 1."""
PATIENCE_SECONDS = 60.0
"""A week is many pages; one that does not come need not end the check."""


async def read_turns(
    settings: Settings,
    owner: Vertical,
    signal: UserSignal,
    since_ms: int,
    until_ms: int,
    limiter: AsyncLimiter | None = None,
    tells: bool = False,
) -> AsyncIterator[list[UserTurn]]:
    """A vertical's turns of users with this signal, in pages, each trace read once. With `tells`, people learn on
    stderr that it waits. Raises Unavailable and Unauthorized."""
    declared, _ = SCORES[signal]
    window = {"since_ms": since_ms, "until_ms": until_ms}
    async with opened(settings, owner, retry_seconds=PATIENCE_SECONDS, limiter=limiter, tells=tells) as traces:
        async for page in signal_pages(traces, owner.project, declared, vertical=owner.name, **window):
            yield turns_of(page)


def turns_of(views: Iterable[TurnView]) -> list[UserTurn]:
    """The turns of a user with a signal; of one without a user no one can say whose it is."""
    out = []
    for view in views:
        signals = {
            signal: better * view.feedback_scores[declared.score]
            for signal, (declared, better) in SCORES.items()
            if declared.score in view.feedback_scores
        }
        if signals and view.user_id:
            judges = {one.judge_id: one.score for one in view.judge_scores if one.score is not None}
            began = moment(view.trace.get("start_time"))
            out.append(UserTurn(view.response_id, view.user_id, view.vertical or "", began, signals, judges))
    return out
