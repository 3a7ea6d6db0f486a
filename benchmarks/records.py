"""Turns, traces and thumbs as the benchmarks feed them: realistic field lengths, ids that can be computed again."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

import orjson

TURNS_PER_SESSION = 5
PROJECT = "receipts-eval"
SUB_AGENTS = ("receipt-scanner", "merchant-lookup", "points-explainer", "dispute-helper")
CATEGORIES = ("missing_points", "scan_failed", "wrong_merchant", "general_question", "duplicate_receipt")


def response_id(turn: int) -> str:
    return "resp_" + hashlib.blake2b(turn.to_bytes(8, "big"), digest_size=12).hexdigest()


def trace_id(turn: int) -> str:
    """A UUID of version 7, as Opik asks for."""
    raw = bytearray((1_760_000_000_000 + turn).to_bytes(6, "big"))
    raw += hashlib.blake2b(b"t%d" % turn, digest_size=10).digest()
    raw[6], raw[8] = 0x70 | raw[6] & 0x0F, 0x80 | raw[8] & 0x3F
    return str(uuid.UUID(bytes=bytes(raw)))


class Feed:
    """`turns` turns that ended one after the other within the last `span` seconds, and their thumbs in that order."""

    def __init__(self, turns: int, span: float = 3_600.0) -> None:
        self.turns = turns
        self._start, self._step = time.time() - span - 60.0, span / max(turns, 1)

    def when(self, turn: int, after: float = 0.0) -> str:
        return datetime.fromtimestamp(self._start + turn * self._step + after, UTC).isoformat(timespec="milliseconds")

    def traces(self) -> Iterator[tuple[bytes, bytes]]:
        for turn in range(self.turns):
            rid, session = response_id(turn), turn // TURNS_PER_SESSION
            event = {
                "event_id": f"trace-{turn}",
                "trace_id": trace_id(turn),
                "response_id": rid,
                "project_name": PROJECT,
                "started_at": self.when(turn),
                "ended_at": self.when(turn, 2.5),
                "input": f"why did my receipt {turn} from the corner shop not count?",
                "output": "It was scanned twice, so the second one did not count. Your points are unchanged.",
                "metadata": {
                    "user_id": f"user_{session % 50_000:08d}",
                    "session_id": "sess_" + hashlib.blake2b(b"s%d" % session, digest_size=12).hexdigest(),
                    "environment": "production",
                    "agent_id": "receipts",
                    "agent_version": "2026.11.3",
                    "vertical": "receipts",
                    "sub_agent": SUB_AGENTS[session % len(SUB_AGENTS)],
                    "prompt_version": "p-41",
                    "category": CATEGORIES[session % len(CATEGORIES)],
                },
                "feedback_scores": [{"name": "helpfulness", "value": 0.8, "source": "online_scoring"}],
            }
            yield rid.encode(), orjson.dumps(event)

    def thumb(self, turn: int, edition: int = 0) -> tuple[bytes, bytes]:
        """The turn's thumb in the plain form, about 200 bytes; a later edition says the opposite of the one before."""
        rid = response_id(turn)
        event = {
            "event_id": f"thumb-{turn:09d}-{edition}",
            "response_id": rid,
            "user_id": f"user_{turn // TURNS_PER_SESSION % 50_000:08d}",
            "value": "up" if (turn + edition) % 2 else "down",
            "occurred_at": self.when(turn, 10.0 + edition),
        }
        return rid.encode(), orjson.dumps(event)

    def thumbs(self, editions: int = 1) -> Iterator[tuple[bytes, bytes]]:
        for edition in range(editions):
            for turn in range(self.turns):
                yield self.thumb(turn, edition)
