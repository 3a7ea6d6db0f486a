"""Turns whose trace now carries our own judge scores: coverage counts only those (PF-9 FR-11, contracts §2)."""

from __future__ import annotations

from collections.abc import Sequence

from agents.policy import Policy
from agents.ports import Ports
from agents.work import ATTEMPTS, Work, exhausted, record


async def note_judged(response_ids: Sequence[str], ports: Ports, policy: Policy) -> None:
    """Raises Unavailable. A turn that the join does not know, or whose trace it does not, is left alone: it asks Opik
    for judge scores when it learns of the trace."""
    ids = list(dict.fromkeys(response_ids))
    for _ in range(ATTEMPTS):
        work = Work(ports.clock.now_ms(), policy)
        work.load(ids, await ports.store.read(["t:" + rid for rid in ids]))
        for loaded in work.turns.values():
            if loaded.turn.trace and not loaded.turn.judged:
                loaded.turn.judged, loaded.touched = 1, True
        if await record(work, ports):
            return
    raise exhausted()
