"""Turns of sessions as an export reads them, and the audit that its lines wait for, in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from agents.join.turn import Turn
from schemas.answers import TurnView
from streams.queries.turn_view import joined
from tests.contract.opik.scripted_opik import trace_id_at
from tests.contract.opik.traces_rig import MINUTE, iso

SINCE = 1_780_000_000_000


def answered(response_id: str, minute: float, *, said: str) -> TurnView:
    """A turn that began so many minutes into the window; its answer is its id."""
    at = SINCE + round(minute * MINUTE)
    trace = {
        "id": trace_id_at(at), "start_time": iso(at), "end_time": iso(at + 10_000), "input": said,
        "output": response_id,
        "metadata": {"response_id": response_id, "vertical": "receipts", "session_id": "s"},
    }  # fmt: skip
    return joined(response_id, Turn(), "p", trace)


def pages_of(views: Sequence[TurnView], size: int) -> list[list[TurnView]]:
    """Newest first, as Opik has them."""
    ordered = sorted(views, key=lambda view: str(view.trace["id"]), reverse=True)
    return [ordered[first : first + size] for first in range(0, len(ordered), size)]


async def each(pages: Sequence[list[TurnView]]) -> AsyncIterator[list[TurnView]]:
    for page in pages:
        yield page
