"""Reads a window of one project's turns in pages, each as `/turns` shows it (PF-9 §5.10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from agents.join.turn import Turn
from schemas.answers import TurnView
from schemas.signals import UserSignal
from streams.opik.traces import SLACK_MS, OpikTraces, facts_of
from streams.queries.turn_view import joined

SLICE = 100
"""Turns made at once, in some ten milliseconds; of one of Opik's pages it would be a fifth of a second."""


async def turn_pages(
    traces: OpikTraces,
    project: str,
    *,
    vertical: str | None,
    since_ms: int,
    until_ms: int,
    whole: bool = False,
    having: Sequence[str] = (),
    after: str = "",
) -> AsyncIterator[list[TurnView]]:
    """The project's turns that began from `since_ms` to before `until_ms`, newest first, in pages, none of them empty.

    Each response comes once, with the latest trace that answers it, as the join counts (`latest_first`): the project is
    first read without texts, up to an hour beyond the window's ends, because its traces may stand on any page. Our own
    judges' calls are left out. `vertical`: only turns whose metadata name it, None for all. `whole` brings input and
    output, but for a trace too long with them; `having`: names of scores that a trace carries; `after`: the id of the
    trace behind which to go on. Raises Unavailable and Unauthorized.
    """
    passed_over = await _older(traces, project, since_ms, until_ms)
    async for page in traces.window(project, since_ms, until_ms, whole=whole, having=having, after=after):
        views = [
            joined(facts.response_id, Turn(), project, trace)
            for trace in page
            if (facts := facts_of(trace, project)) is not None and facts.trace not in passed_over
        ]
        wanted = [view for view in views if vertical is None or view.vertical == vertical]
        if wanted:
            yield wanted


async def signal_pages(
    traces: OpikTraces, project: str, signal: UserSignal, *, vertical: str, since_ms: int, until_ms: int
) -> AsyncIterator[list[TurnView]]:
    """The vertical's turns of the window that carry this signal's score, newest first, in slices, none of them empty.

    Only traces with the score are read, and each once: the join keeps a response's signals on the trace that ended last
    and takes them off the others. Between two slices the event loop goes on: a worker's has more to do. Raises
    Unavailable and Unauthorized.
    """
    async for page in traces.window(project, since_ms, until_ms, having=[signal.score]):
        for first in range(0, len(page), SLICE):
            part = page[first : first + SLICE]
            views = [joined(str(trace["metadata"]["response_id"]), Turn(), project, trace) for trace in part]
            wanted = [view for view in views if view.vertical == vertical and signal.score in view.feedback_scores]
            if wanted:
                yield wanted
            await asyncio.sleep(0)


async def _older(traces: OpikTraces, project: str, since_ms: int, until_ms: int) -> set[bytes]:
    """Ids of the traces whose response a later trace answers."""
    latest: dict[str, tuple[int, bytes]] = {}
    older: set[bytes] = set()
    async for page in traces.window(project, since_ms - SLACK_MS, until_ms + SLACK_MS):
        for trace in page:
            facts = facts_of(trace, project)
            if facts is None:
                continue
            this = (facts.ended, facts.trace)
            known = latest.setdefault(facts.response_id, this)
            if known != this:
                latest[facts.response_id] = max(known, this)
                older.add(min(known, this)[1])
    return older
