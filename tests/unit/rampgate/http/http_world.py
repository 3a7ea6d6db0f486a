"""What the HTTP side is asked about, in memory."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any, cast

from agents.join.counting import BOTH, CLASSES, count_moves
from agents.policy import Policy
from agents.ports import Change, Unavailable
from rampgate.http.routes import Side
from rampgate.queries import Queries
from rampgate.settings import Settings
from rampgate.wiring import Parts
from schemas.answers import Health
from schemas.topics import Topics
from schemas.verticals import Vertical
from streams.metrics import Metrics
from tests.memory_ports import ManualClock, MemoryStore

NASTY = "<script>alert(1)</script>"


TRACE = str(uuid.uuid4())


GOOD = Health(ok=True, reasons=[], checks={})


class Sent:
    """Stands for the producer; `broken` makes it unavailable."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.broken = False

    async def send(self, messages: Any) -> None:
        if self.broken:
            raise Unavailable("Kafka producer: no broker")
        self.messages += messages


class Traces:
    """Opik with one trace, read only."""

    async def get(self, trace_id: str) -> dict[str, Any] | None:
        return {"id": trace_id, "metadata": {"vertical": NASTY}, "feedback_scores": []} if trace_id == TRACE else None

    async def find(self, since_ms: Any) -> dict[str, Any]:
        return {}


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.producer = Sent()
        self.metrics = Metrics()
        self.health = GOOD
        parts = SimpleNamespace(
            settings=Settings(),
            topics=Topics(),
            policy=Policy(),
            verticals={"receipts": Vertical(name="receipts", project="p")},
            store=self.store,
            producer=self.producer,
            metrics=self.metrics,
            clock=self.clock,
            opik=SimpleNamespace(traces=Traces()),
        )
        self.queries = Queries(cast(Parts, parts))

    def counted(self, vertical: str, by: int) -> Change:
        """A turn of now with both sides, counted in or out."""
        change, now = Change(), self.clock.now_ms()
        count_moves(change, {(vertical, str(CLASSES.index(BOTH)), now // 1000): by}, now, Policy().lookback)
        return change

    def side(self, token: str | None = None) -> Side:
        return Side(self.metrics, lambda: self.health, lambda: self.health, token, self.queries)
