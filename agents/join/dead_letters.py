"""Makes and sends dead letters of records and of signals that Opik refused: original bytes, once a step."""

from __future__ import annotations

from collections.abc import Sequence

from agents.join.step_data import Refused, RetryState
from agents.join.turn import Origin
from agents.ports import Ports
from schemas.dead_letters import DeadLetter, MadeRecord, Record
from schemas.signals import DECLARED
from schemas.topics import Topics


async def send_letters(ports: Ports, retry_state: RetryState, letters: list[DeadLetter]) -> None:
    """Send each dead letter once, also when the step is repeated."""
    fresh = {place_of(x): x for x in reversed(letters) if place_of(x) not in retry_state.lettered}
    if fresh:
        await ports.dead_letters.put(list(reversed(fresh.values())))
    retry_state.lettered.update(fresh)


def place_of(letter: DeadLetter) -> tuple[str, int, int, bytes | None]:
    record = letter.record
    return record.topic, record.partition, record.offset, record.key


async def letters_for(
    refused: list[Refused],
    ports: Ports,
    topics: Topics,
    held: Sequence[Record],
    stage: str,
) -> list[DeadLetter]:
    """Make dead letters of refused signals, each with the bytes of its record: one of those that the caller holds, or
    read back."""
    names = {Origin.TRACES: topics["traces"]}
    for declared in DECLARED.values():
        names[declared.origin] = topics[declared.topic]
        if declared.swept_origin is not None:
            names[declared.swept_origin] = topics[declared.topic]
    places = [(names[s.origin], s.partition, s.offset) if s.origin else None for _, s, _ in refused]
    found: dict[tuple[str, int, int], Record | None] = {(one.topic, one.partition, one.offset): one for one in held}
    missing = [place for place in places if place and place not in found]
    found |= zip(missing, await ports.records.fetch(missing) if missing else (), strict=True)
    now = ports.clock.now_ms()
    out = []
    for (response_id, _, refusal), place in zip(refused, places, strict=True):
        record = found[place] if place else None
        if record is None:
            topic, partition, offset = place or ("", -1, -1)
            record = MadeRecord(topic, response_id.encode(), partition=partition, offset=offset)
        out.append(DeadLetter(record, refusal.cause, refusal.detail, stage, now))
    return out
