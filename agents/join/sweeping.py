"""Joins a sweep's readings as the stream's records are joined (PF-9 FR-6, V1).

A sweep puts a reading on its topic first and joins it here next, uncounted: its origin says that a record of it exists.
The consumer that reaches the record takes over the signal and counts it, so that conservation balances and nothing is
written twice, whichever is first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.codec import SignalEvent, TraceFacts
from agents.join.batches import place_verticals
from agents.join.change_turns import Writing, change_turns, placed_traces
from agents.join.join import merge_signal, merge_trace
from agents.join.late_writes import note_held
from agents.join.step import StepContext
from agents.join.step_data import Refused, Report
from agents.join.turn import Mark, Turn, decode_turn
from agents.keys import turn_keys
from agents.policy import Policy
from agents.ports import Ports
from schemas.dead_letters import Record
from schemas.signals import UserSignal
from schemas.topics import Topics

STAGE = "sweep.write"


@dataclass(frozen=True)
class Placed:
    """An item and its record in Kafka."""

    item: SignalEvent
    record: Record


@dataclass(frozen=True)
class Known:
    """What the state knows of an item. `news`: the item would change its turn. `waits`: the turn waits for its trace,
    or for writing to be switched on."""

    news: bool
    waits: bool


async def peek(items: Sequence[SignalEvent], signal: UserSignal, ports: Ports) -> list[Known]:
    """Return what the join would do with each item, and change nothing. "No thumb" is no news where none is known."""
    stored_turns = await ports.store.read(turn_keys(item.response_id for item in items))
    out = []
    for item, stored in zip(items, stored_turns, strict=True):
        turn = decode_turn(stored) if stored else Turn()
        waits = waiting(turn)
        nothing = not item.value and turn.signal(signal.kind) is None
        out.append(Known(not nothing and merge_signal(turn, signal, item, 0, 0, signal.swept_origin), waits))
    return out


async def bring(
    placed: Sequence[Placed], signal: UserSignal, ports: Ports, policy: Policy, topics: Topics
) -> tuple[Report, set[str]]:
    """Join the items and write scores; return the report, and the response ids of turns that still wait."""
    response_ids = list({one.item.response_id for one in placed})
    writing = Writing(topics, STAGE, [one.record for one in placed])

    async def merge(context: StepContext) -> list[Refused]:
        await place_verticals([one.item for one in placed], context, ports)
        for one in placed:
            snapshot = context.turns[one.item.response_id]
            place = (one.record.partition, one.record.offset)
            snapshot.touched |= merge_signal(snapshot.turn, signal, one.item, *place, signal.swept_origin)
        return []

    context = await change_turns(response_ids, ports, policy, merge, writing)
    waiting_ids = {response_id for response_id, snapshot in context.turns.items() if waiting(snapshot.turn)}
    return context.report, waiting_ids


async def notice(found: Sequence[TraceFacts], ports: Ports, policy: Policy, topics: Topics) -> Report:
    """Join traces that were read from Opik with their scores: parked signals get their trace, coverage counts it
    (FR-11), and a score that Opik holds otherwise than we know, for whatever reason, is written again."""
    facts = await placed_traces(found, ports, policy)

    async def merge(context: StepContext) -> list[Refused]:
        for response_id, snapshot in context.turns.items():
            turn = snapshot.turn
            for seen in facts[response_id]:
                if turn.trace == seen.trace:
                    snapshot.touched |= note_held(turn, seen.wrote, context.report)
                snapshot.touched |= merge_trace(turn, seen)
        return []

    return (await change_turns(list(facts), ports, policy, merge, Writing(topics, STAGE))).report


def waiting(turn: Turn) -> bool:
    return any(signal.mark in (Mark.PARKED, Mark.WITHHELD) for _, signal in turn.signals())


def still_waiting(stored_turns: Sequence[bytes]) -> int:
    """Return how many of these stored turns wait."""
    return sum(waiting(decode_turn(stored)) for stored in stored_turns if stored)
