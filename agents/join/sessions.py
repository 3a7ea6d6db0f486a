"""Derives rerolls from completed traces: the same input again, in the same session, within the vertical's window after
the previous response's end (PF-9 §5.4). The score goes to the turn that the user rerolled away from.

A turn is rerolled if any later turn qualifies, so the order in which traces arrive makes no difference.

A session's recent turns are stored as one small value, in columns: there is one for every few turns, so each byte
counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agents.codec import SignalEvent, TraceFacts
from agents.join.batches import Batch
from agents.join.join import merge_signal
from agents.join.step import StepContext
from agents.join.turn import Origin, Session
from agents.keys import SESSION, turn_keys
from agents.ports import Ports
from schemas.signals import REROLL

SAID = 8
PREFIX = "resp_"
SPELT = b"\xff"
"""No UTF-8 text begins with this byte."""


class _Columns(msgspec.Struct, array_like=True, gc=False):
    """`started` counts from `base`; `lasted` is end less start; `windows` has one entry where all are the same. An id
    of OpenAI's form (`resp_`, then hexadecimal digits) is kept as SPELT and the bytes its digits spell."""

    base: int
    said: bytes
    started: list[int]
    lasted: list[int]
    windows: list[int]
    ids: list[bytes]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Columns).decode


def encode_session(turns: list[Session]) -> bytes:
    """Inverse of `decode_session`; needs at least one turn, and hashes of SAID bytes."""
    base = turns[0].started
    windows = [turn.window for turn in turns]
    return _encode(
        _Columns(
            base,
            b"".join([turn.said for turn in turns]),
            [turn.started - base for turn in turns],
            [turn.ended - turn.started for turn in turns],
            windows[:1] if len(set(windows)) == 1 else windows,
            [shorten(turn.response_id) for turn in turns],
        )
    )


def decode_session(stored: bytes) -> list[Session]:
    columns = _decode(stored)
    windows = columns.windows * len(columns.ids) if len(columns.windows) == 1 else columns.windows
    out = []
    for at, (offset, lasted, window, short) in enumerate(
        zip(columns.started, columns.lasted, windows, columns.ids, strict=True)
    ):
        started = columns.base + offset
        said = columns.said[SAID * at : SAID * (at + 1)]
        response_id = PREFIX + short[1:].hex() if short[:1] == SPELT else short.decode()
        out.append(Session(said, started, started + lasted, response_id, window))
    return out


def shorten(response_id: str) -> bytes:
    text = response_id.encode()
    digits = response_id.removeprefix(PREFIX)
    if len(digits) == len(response_id) or not digits:
        return text
    try:
        spelt = bytes.fromhex(digits)
    except ValueError:
        return text
    return SPELT + spelt if spelt.hex() == digits else text


MOST_TURNS = 200
KEEP_MS = 3_600_000


async def derive(batch: Batch, items: Sequence[TraceFacts], context: StepContext, ports: Ports) -> None:
    """Note each trace in its session and merge the rerolls that show then."""
    candidates = [facts for facts in items if facts.session and facts.said]
    if not candidates:
        return
    keys = list({SESSION.key(facts.session) for facts in candidates})
    stored_sessions = dict(zip(keys, await ports.store.read(keys), strict=True))
    sessions = {key: decode_session(stored) if stored else [] for key, stored in stored_sessions.items()}
    found: list[tuple[str, int, int]] = []
    longest = 0
    for facts in candidates:
        turns = sessions[SESSION.key(facts.session)]
        window = context.policy.window_of(facts.vertical)
        longest = max(longest, window)
        offset = batch.records[facts.index].offset
        found += [(response_id, time, offset) for response_id, time in add(turns, facts, window)]
    for key, turns in sessions.items():
        stored = encode_session(turns)
        if stored != stored_sessions[key]:
            context.change.checks[key] = stored_sessions[key]
            context.change.sets[key] = (stored, context.now + 2 * longest + KEEP_MS)
    others = list({response_id for response_id, _, _ in found if response_id not in context.turns})
    if others:
        context.load(others, await ports.store.read(turn_keys(others)))
    for response_id, time, offset in found:
        snapshot = context.turns[response_id]
        event = SignalEvent(-1, response_id, 1, time)
        snapshot.touched |= merge_signal(snapshot.turn, REROLL, event, batch.partition, offset, Origin.TRACES)


def is_reroll(before: Session, after: Session) -> bool:
    """Return whether `after` repeats the input of `before` within the window after its answer (PF-9 §5.4)."""
    later = (after.started, after.response_id) > (before.started, before.response_id)
    return later and 0 <= after.started - before.ended <= before.window


def add(turns: list[Session], facts: TraceFacts, window: int) -> list[tuple[str, int]]:
    """Add a turn to its session, in order of start; returns the (response id, time) of each reroll it takes part in.
    Of several records or traces of one turn the one that ended last counts, then the later record."""
    known = next((turn for turn in turns if turn.response_id == facts.response_id), None)
    new = Session(facts.said, facts.started, facts.ended, facts.response_id, window)
    if known is not None and new.ended < known.ended:
        return []
    if known is not None:
        turns.remove(known)
    found = []
    for turn in turns:
        if turn.said == new.said:
            for before, after in ((turn, new), (new, turn)):
                if is_reroll(before, after):
                    found.append((before.response_id, after.started))
    turns.append(new)
    turns.sort(key=lambda turn: (turn.started, turn.response_id))
    del turns[:-MOST_TURNS]
    return found
