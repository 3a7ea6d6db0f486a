"""The agent of the topic `rerolls`: events of the history middleware (PF-9 §5.4). The score goes to the turn that the
user rerolled away from."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from agents.codec import Bad, Decoded, Dropped, SignalEvent, load, time_ms, validate
from agents.join.batches import signal_agent
from agents.policy import Policy
from schemas.dead_letters import Record
from schemas.events import REROLLS, RerollEvent
from schemas.outcomes import Cause, FilterReason
from schemas.signals import REROLL


def decode(records: Sequence[Record], now: int, policy: Policy) -> Decoded[SignalEvent]:
    """Make reroll events of records. One slower than the vertical's window, or older than the lookback, is filtered as
    `out_of_window`."""
    out: Decoded[SignalEvent] = Decoded()
    rows = []
    for index, event in load(enumerate(records), policy, out.bad):
        if isinstance(event, dict) and ("response_id" in event or "new_response_id" in event):
            rows.append((index, event))
        else:
            out.bad.append(Bad(index, Cause.UNKNOWN_SCHEMA, "not a reroll event: response_id is missing"))
    earliest = now - policy.lookback

    def build(index: int, event: RerollEvent) -> SignalEvent | None:
        time = time_ms(event["occurred_at"], "occurred_at", now, policy)
        elapsed = event["elapsed_seconds"] * 1000
        if not 0 <= elapsed < 1e15:
            raise ValueError(f"elapsed_seconds: {event['elapsed_seconds']!r} is no duration")
        if event["response_id"] == event["new_response_id"]:
            raise ValueError("new_response_id: the same as response_id")
        vertical = event.get("vertical") or ""
        if time < earliest or elapsed > policy.window_of(vertical):
            out.dropped.append(Dropped(index, FilterReason.OUT_OF_WINDOW, time))
            return None
        tie = zlib.crc32(event["event_id"].encode()) & 0xFFFF
        return SignalEvent(index, event["response_id"], 1, time, tie=tie, vertical=vertical)

    validate(REROLLS, rows, build, out)
    return out


AGENT = signal_agent(REROLL, decode)
