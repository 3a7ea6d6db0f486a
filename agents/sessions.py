"""Rerolls that nobody reported, found in completed traces: the same input again, in the same session, within the
vertical's window of the previous response's end (PF-9 §5.4). The score goes to the turn rerolled away from.

A turn is rerolled if any later turn qualifies, so the order in which traces arrive makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.items import Reroll, TraceFacts
from agents.join import merge_reroll
from agents.ports import Ports
from agents.session_log import decode_session, encode_session
from agents.steps import Batch
from agents.turn import Origin, Session
from agents.work import Work

MOST_TURNS = 200
KEEP_MS = 3_600_000


async def derive(batch: Batch, items: Sequence[TraceFacts], work: Work, ports: Ports) -> None:
    """Note each trace in its session and merge the rerolls that this reveals."""
    candidates = [facts for facts in items if facts.session and facts.said]
    if not candidates:
        return
    cells = list({"s:" + facts.session for facts in candidates})
    blobs = dict(zip(cells, await ports.store.read(cells), strict=True))
    sessions = {cell: decode_session(blob) if blob else [] for cell, blob in blobs.items()}
    found: list[tuple[str, int, int]] = []
    longest = 0
    for facts in candidates:
        turns = sessions["s:" + facts.session]
        window = work.policy.window_of(facts.vertical)
        longest = max(longest, window)
        offset = batch.records[facts.index].offset
        found += [(rid, time, offset) for rid, time in add(turns, facts, window)]
    for cell, turns in sessions.items():
        blob = encode_session(turns)
        if blob != blobs[cell]:
            work.change.checks[cell] = blobs[cell]
            work.change.sets[cell] = (blob, work.now + 2 * longest + KEEP_MS)
    others = list({rid for rid, _, _ in found if rid not in work.turns})
    if others:
        work.load(others, await ports.store.read(["t:" + rid for rid in others]))
    for rid, time, offset in found:
        loaded = work.turns[rid]
        reroll = Reroll(-1, rid, time)
        loaded.touched |= merge_reroll(loaded.turn, reroll, batch.partition, offset, Origin.TRACES)


def is_reroll(before: Session, after: Session) -> bool:
    """Whether the same input, said again in `after`, came within the window of the answer in `before` (PF-9 §5.4)."""
    later = (after.started, after.response_id) > (before.started, before.response_id)
    return later and 0 <= after.started - before.ended <= before.window


def add(turns: list[Session], facts: TraceFacts, window: int) -> list[tuple[str, int]]:
    """Add a turn to its session, in order of start; returns the (response id, time) of each reroll it takes part in."""
    known = next((turn for turn in turns if turn.response_id == facts.response_id), None)
    new = known or Session(facts.said, facts.started, facts.ended, facts.response_id, window)
    found = []
    for turn in turns:
        if turn.said == new.said and turn is not new:
            for before, after in ((turn, new), (new, turn)):
                if is_reroll(before, after):
                    found.append((before.response_id, after.started))
    if known is not None:
        return found
    turns.append(new)
    turns.sort(key=lambda turn: (turn.started, turn.response_id))
    del turns[:-MOST_TURNS]
    return found
