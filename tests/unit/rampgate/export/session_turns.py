"""Turns of sessions as an export reads them, and the audit that its lines wait for, in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agents.join.turn import Turn
from rampgate.export.chains import Chain, Chains
from schemas.answers import TurnView
from streams.queries.turn_view import joined
from tests.contract.opik.scripted_opik import trace_id_at
from tests.contract.opik.traces_rig import MINUTE, iso

SINCE = 1_780_000_000_000
UNTIL = SINCE + 24 * 60 * MINUTE
WINDOW = 5 * MINUTE


def answered(
    response_id: str, minute: float, *, said: Any = "hello", session: str | None = "s", answer: Any = None,
    lasted: int = 10_000, **scores: float,
) -> TurnView:  # fmt: skip
    """A turn that began so many minutes into the window; its answer is its id unless it is said to be another."""
    at = SINCE + round(minute * MINUTE)
    trace = {
        "id": trace_id_at(at), "start_time": iso(at), "end_time": iso(at + lasted), "input": said,
        "output": response_id if answer is None else answer,
        "metadata": {"response_id": response_id, "vertical": "receipts", "session_id": session},
        "feedback_scores": [
            {"name": f"user_signal_{name}", "value": value, "source": "sdk"} for name, value in scores.items()
        ],
    }  # fmt: skip
    return joined(response_id, Turn(), "p", trace)


def chains() -> Chains:
    return Chains("p", since_ms=SINCE, until_ms=UNTIL, window_ms=WINDOW)


def pages_of(views: Sequence[TurnView], size: int) -> list[list[TurnView]]:
    """Newest first, as Opik has them."""
    ordered = sorted(views, key=lambda view: str(view.trace["id"]), reverse=True)
    return [ordered[first : first + size] for first in range(0, len(ordered), size)]


def found(*views: TurnView, size: int = 2) -> list[Chain]:
    taking = chains()
    whole = [chain for page in pages_of(views, size) for chain in taking.add(page)]
    return whole + taking.rest()


def told(*views: TurnView, size: int = 2) -> list[tuple[list[str], bool]]:
    """Response ids and whether they are cut, of each chain."""
    return [([view.response_id for view in chain.answers], chain.cut) for chain in found(*views, size=size)]


async def each(pages: Sequence[list[TurnView]]) -> AsyncIterator[list[TurnView]]:
    for page in pages:
        yield page
