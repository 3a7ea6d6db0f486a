"""Prepares the common turn: its first thumb arrives, its trace is known, and Opik has no score of ours for it yet.

One pass leads from the event to the stored bytes. They equal those of the general way, byte for byte
(tests/unit/agents/join/test_fast_path.py); the pass only leaves out what such a turn never needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agents.codec import SignalEvent
from agents.join.batches import Batch
from agents.join.counting import HOUR, NO_CLASS, RATED, UNJUDGED, token
from agents.join.step import StepContext
from agents.join.step_data import PreparedTurns
from agents.join.turn import decode_turn, unsignalled, with_first_thumb
from agents.keys import NAMES, turn_key
from agents.ports import Write
from schemas.signals import DECLARED, REROLL, THUMBS

_THUMBS, _REROLL = THUMBS.score, REROLL.score
_THUMBS_LABEL, _REROLL_LABEL = THUMBS.label, REROLL.label
_KINDS = (THUMBS.kind, REROLL.kind)
"""A first thumb is scored, and so is the absence of a reroll beside it."""
_SCORES = {1: 1.0, -1: -1.0}
PLAIN = (0, 1 + NAMES)
"""Bytes of a turn's versions where it has none, or its own alone."""


def prepare(
    batch: Batch, items: Sequence[SignalEvent], read: dict[str, bytes], context: StepContext
) -> Sequence[SignalEvent]:
    """Prepare the common turns as `context.prepared` and take them out of `read`; return the thumbs that go the general
    way."""
    if any(one.implied_by == THUMBS.kind and one is not REROLL for one in DECLARED.values()):
        return items
    heard = [item.response_id for item in items]
    counts = Counter(heard) if len(set(heard)) < len(heard) else None
    now, lookback = context.now, context.policy.lookback
    records, partition = batch.records, batch.partition
    prepared = PreparedTurns(kinds=_KINDS)
    ids, writes, since, hours = prepared.ids, prepared.writes, prepared.since, prepared.hours
    swaps = prepared.swaps
    keys, before, after, expires = swaps.keys, swaps.before, swaps.after, swaps.expires
    moves, written = prepared.moves, prepared.written
    others = []
    for item in items:
        response_id, value, time = item.response_id, item.value, item.time
        stored = read[response_id]
        if not value or item.observed or not unsignalled(stored) or (counts and counts[response_id] > 1):
            others.append(item)
            continue
        turn = decode_turn(stored)
        if not turn.trace or len(turn.versions) not in PLAIN:
            others.append(item)
            continue
        trace_id, project, ended, vertical = turn.trace_id, turn.project, turn.time, turn.vertical
        writes.append(Write(trace_id, project, _THUMBS, _SCORES[value], _THUMBS_LABEL))
        writes.append(Write(trace_id, project, _REROLL, 0.0, _REROLL_LABEL))
        last = ended if ended > time else time
        ids.append(response_id)
        keys.append(turn_key(response_id))
        before.append(stored)
        offset = records[item.index].offset
        after.append(with_first_thumb(stored, value, time, item.seq, item.tie, partition, offset))
        ends = last + lookback
        expires.append((ends if ends > now else now) + HOUR)
        since.append(last)
        hours.append(time // HOUR)
        second, versions = ended // 1000, turn.versions
        known = versions[1:]
        key = (vertical, token("0", versions[0], known, RATED) if versions else "0", second)
        moves[key] = moves.get(key, 0) + 1
        if not turn.judged:
            moves[vertical, UNJUDGED, second] = moves.get((vertical, UNJUDGED, second), 0) + 1
        if turn.judged or versions:
            covered = "2" if turn.judged else NO_CLASS
            key = (vertical, token(covered, versions[0], known, 0) if versions else covered, second)
            moves[key] = moves.get(key, 0) - 1
        dimensions = (vertical, turn.sub_agent, turn.category)
        written[dimensions] = written.get(dimensions, 0) + 1
    if ids:
        context.prepared = prepared
        for response_id in ids:
            del read[response_id]
    return others
