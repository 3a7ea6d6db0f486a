"""A turn and its trace, as a view of it finds them: in a store, and in an Opik of this process."""

from __future__ import annotations

import uuid
from typing import Any

from agents.codec import TraceFacts
from agents.join.turn import Turn, encode_turn
from tests.memory_ports import ManualClock, MemoryStore

TRACE = uuid.uuid4()


class Opik:
    def __init__(self, traces: dict[str, dict[str, Any]], found: dict[str, TraceFacts]) -> None:
        self.traces, self.found, self.searches = traces, found, 0

    async def get(self, trace_id: str) -> dict[str, Any] | None:
        return self.traces.get(trace_id)

    async def find(self, since_ms: dict[str, int]) -> dict[str, TraceFacts]:
        self.searches += 1
        return {rid: self.found[rid] for rid in since_ms if rid in self.found}


def store_with(turn: Turn | None) -> MemoryStore:
    store = MemoryStore(ManualClock())
    if turn is not None:
        store.values["t2:r"] = (encode_turn(turn), store.clock.now_ms() + 1)
    return store
