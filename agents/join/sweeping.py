"""A sweep's readings, brought through the same join as the stream's records (PF-9 FR-6, V1).

A reading is put on its topic first, then brought through here, without a consumer and uncounted: its origin says that
a record is on its way. The consumer that comes to the record takes over from it and counts it, so that conservation
balances and nothing is written twice, whichever is first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.codec import SignalEvent, TraceFacts
from agents.join.dead_letters import letters_for, send_letters
from agents.join.join import merge_signal, merge_trace
from agents.join.step import StepContext, record, write_scores
from agents.join.step_data import ATTEMPTS, Report, RetryState, exhausted
from agents.join.turn import Mark, Turn, decode_turn
from agents.keys import turn_keys
from agents.policy import Policy
from agents.ports import Ports
from schemas.dead_letters import Record
from schemas.signals import UserSignal
from schemas.topics import Topics


@dataclass(frozen=True)
class Placed:
    """An item and the record that carries it, as it stands in Kafka."""

    item: SignalEvent
    record: Record


@dataclass(frozen=True)
class Known:
    """What the state says before anything is done: whether an item is `news`, whether its turn `waits` for something
    (its trace, or for writing to be switched on)."""

    news: bool
    waits: bool


async def peek(items: Sequence[SignalEvent], signal: UserSignal, ports: Ports) -> list[Known]:
    """Ask the join itself, and change nothing. A reading that no thumb stands is no news where none is known."""
    blobs = await ports.store.read(turn_keys(item.response_id for item in items))
    out = []
    for item, blob in zip(items, blobs, strict=True):
        turn = decode_turn(blob) if blob else Turn()
        waits = waiting(turn)
        nothing = not item.value and turn.signal(signal.kind) is None
        out.append(Known(not nothing and merge_signal(turn, signal, item, 0, 0, signal.swept_origin), waits))
    return out


async def bring(
    placed: Sequence[Placed], signal: UserSignal, ports: Ports, policy: Policy, topics: Topics
) -> tuple[Report, set[str]]:
    """Join and write. Returns what was done, and the response ids of turns that wait for something."""
    retry_state = RetryState()
    response_ids = list({one.item.response_id for one in placed})
    records = {(one.record.topic, one.record.partition, one.record.offset): one.record for one in placed}
    for _ in range(ATTEMPTS):
        context = StepContext(ports.clock.now_ms(), policy, retry_state)
        context.load(response_ids, await ports.store.read(turn_keys(response_ids)))
        for one in placed:
            snapshot = context.turns[one.item.response_id]
            place = (one.record.partition, one.record.offset)
            snapshot.touched |= merge_signal(snapshot.turn, signal, one.item, *place, signal.swept_origin)
        refused = await write_scores(context, ports)
        if refused:

            def in_batch(topic: str, partition: int, offset: int) -> Record | None:
                return records.get((topic, partition, offset))

            await send_letters(ports, retry_state, await letters_for(refused, ports, topics, in_batch, "sweep.write"))
        if await record(context, ports):
            return context.report, {
                response_id for response_id, snapshot in context.turns.items() if waiting(snapshot.turn)
            }
    raise exhausted()


async def notice(found: Sequence[TraceFacts], ports: Ports, policy: Policy, topics: Topics) -> Report:
    """Join traces read from Opik: they settle signals that wait for them, and count in coverage (FR-11)."""
    now, retry_state = ports.clock.now_ms(), RetryState()
    facts = {one.response_id: one for one in found if one.ended >= now - policy.lookback}
    for _ in range(ATTEMPTS):
        context = StepContext(now, policy, retry_state)
        context.load(list(facts), await ports.store.read(turn_keys(facts)))
        for response_id, snapshot in context.turns.items():
            snapshot.touched |= merge_trace(snapshot.turn, facts[response_id])
        refused = await write_scores(context, ports)
        if refused:
            letters = await letters_for(refused, ports, topics, lambda *_: None, "sweep.write")
            await send_letters(ports, retry_state, letters)
        if await record(context, ports):
            return context.report
    raise exhausted()


def waiting(turn: Turn) -> bool:
    return any(signal.mark in (Mark.PARKED, Mark.WITHHELD) for _, signal in turn.signals())


def still_waiting(blobs: Sequence[bytes]) -> int:
    """How many of these turns wait."""
    return sum(waiting(decode_turn(blob)) for blob in blobs if blob)
