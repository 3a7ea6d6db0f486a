"""Audits reads for evaluation: one record for each, on PS-5's topic (contracts §1)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from agents.ports import Clock
from schemas.dead_letters import clean
from streams.kafka.client import Producer


@dataclass(frozen=True)
class Audit:
    """Writes the record before the reader gets an answer: a read that can't be audited must not happen."""

    producer: Producer
    topic: str
    clock: Clock

    async def read(
        self, caller: str, purpose: str, query: dict[str, Any], vertical: str | None, response_ids: Iterable[str]
    ) -> None:
        """Return once the record is durable; raises Unavailable otherwise."""
        ids = sorted(response_ids)
        record = {
            "at": datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC).isoformat(),
            "caller": clean(caller, 128),
            "purpose": purpose,
            "query": query,
            "vertical": vertical,
            "count": len(ids),
            "response_ids_sha256": hashlib.sha256("\n".join(ids).encode()).hexdigest(),
        }
        await self.send(record)

    async def send(self, record: dict[str, Any]) -> None:
        await self.producer.send([(self.topic, str(record["caller"]).encode(), orjson.dumps(record), ())])
