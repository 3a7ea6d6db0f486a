"""The agent of the topic `thumbs`: DynamoDB stream records, bare or wrapped, and the plain form (contracts §1)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from agents.codec import Bad, Decoded, Dropped, SignalEvent, load, sequence_of, time_ms, validate
from agents.dynamodb import VALUES, of_change, unwrap
from agents.join.batches import signal_agent
from agents.join.fast_path import prepare
from agents.policy import Policy
from schemas.dead_letters import Record
from schemas.events import PLAIN_THUMBS, STREAM_RECORDS, ExactThumb, PlainThumb, StreamRecord
from schemas.outcomes import Cause, FilterReason
from schemas.signals import THUMBS


def decode(records: Sequence[Record], now: int, policy: Policy) -> Decoded[SignalEvent]:
    """Make thumbs of records. A wrapper that holds several changes gives several thumbs."""
    out: Decoded[SignalEvent] = Decoded()
    others = decode_exact(records, now, policy, out.items)
    if others:
        found = decode_at_length(others, now, policy)
        out.bad, out.dropped = found.bad, found.dropped
        out.items = sorted(out.items + found.items, key=attrgetter("index"))
    return out


def decode_at_length(records: Sequence[tuple[int, Record]], now: int, policy: Policy) -> Decoded[SignalEvent]:
    """Decode any form, right or wrong. `records`: (index in the batch, record)."""
    out: Decoded[SignalEvent] = Decoded()
    plain: list[tuple[int, Any]] = []
    changes: list[tuple[int, Any]] = []
    for index, event in load(records, policy, out.bad):
        if type(event) is dict and "response_id" in event:
            plain.append((index, event))
        else:
            found = unwrap(event)
            if found:
                changes.extend((index, change) for change in found)
            else:
                out.bad.append(Bad(index, Cause.UNKNOWN_SCHEMA, unknown(event)))
    earliest = now - policy.lookback

    def from_plain(index: int, event: PlainThumb) -> SignalEvent | None:
        time = time_ms(event["occurred_at"], "occurred_at", now, policy)
        observed = event.get("observed_at")
        thumb = SignalEvent(
            index,
            event["response_id"],
            VALUES[event["value"]],
            time,
            sequence_of(event.get("sequence"), "sequence"),
            observed=time_ms(observed, "observed_at", now, policy) if observed is not None else 0,
            vertical=event.get("vertical") or "",
        )
        if not thumb.seq:
            thumb.tie = zlib.crc32(event["event_id"].encode()) & 0xFFFF
        return keep(thumb, out, earliest)

    def from_change(index: int, record: StreamRecord) -> SignalEvent | None:
        found = of_change(index, record, now, policy)
        if isinstance(found, Dropped):
            out.dropped.append(found)
            return None
        return keep(found, out, earliest)

    validate(PLAIN_THUMBS, plain, from_plain, out)
    validate(STREAM_RECORDS, changes, from_change, out)
    return out


def decode_exact(
    records: Sequence[Record], now: int, policy: Policy, items: list[SignalEvent]
) -> list[tuple[int, Record]]:
    """Append the thumbs of records in the exact plain form to `items`; return the other records for
    `decode_at_length`. Whatever this takes, `decode_at_length` takes too and makes the same thumb of it."""
    limit, earliest = policy.max_record_bytes, now - policy.lookback
    others = []
    for index, record in enumerate(records):
        value = record.value
        if value is not None and len(value) <= limit:
            try:
                event = _exact(value)
                time = time_ms(event.occurred_at, "occurred_at", now, policy)
                seq = sequence_of(event.sequence, "sequence")
            except ValueError:
                pass
            else:
                if time >= earliest:
                    tie = 0 if seq else zlib.crc32(event.event_id.encode()) & 0xFFFF
                    named = event.vertical or ""
                    items.append(SignalEvent(index, event.response_id, VALUES[event.value], time, seq, tie, 0, named))
                    continue
        others.append((index, record))
    return others


_exact = msgspec.json.Decoder(ExactThumb).decode


def keep(thumb: SignalEvent, out: Decoded[SignalEvent], earliest: int) -> SignalEvent | None:
    if thumb.time < earliest:
        out.dropped.append(Dropped(thumb.index, FilterReason.OUT_OF_WINDOW, thumb.time))
        return None
    return thumb


_FIELDS = frozenset((*PlainThumb.__annotations__, *StreamRecord.__annotations__))


def unknown(event: Any) -> str:
    """Return what an event of no known form is. Only names of our forms are shown: a user's words can be a name too."""
    kind = type(event).__name__
    if isinstance(event, dict):
        known = sorted(_FIELDS.intersection(event))
        fields = [*known, *([f"{len(event) - len(known)} unknown"] if len(event) > len(known) else [])]
        kind = f"an object with {', '.join(fields) or 'no fields'}"
    return f"neither a DynamoDB stream record nor a plain thumb: {kind}"


AGENT = signal_agent(THUMBS, decode, prepare)
