"""Writing: what touched turns want goes to Opik in one call; what it refuses becomes dead letters, bytes and all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agents.join import LABELS, LEGACY_NAMES, Wanted, bury, note_written, rest, wanted
from agents.ports import Ports, Refusal, Write
from agents.turn import Mark, Origin, Signal
from agents.work import Loaded, Memory, Work
from schemas.dead_letters import DeadLetter, Record
from schemas.topics import Topics

AFTER_REPLAY_MS = 10_000
Refused = tuple[str, Signal, Refusal]


async def write_scores(work: Work, ports: Ports, memory: Memory) -> list[Refused]:
    """Write what touched turns want, note what Opik took, mark every signal; the refused ones are returned."""
    policy, now, report = work.policy, work.now, work.report
    legacy = policy.mirror_legacy_names
    wants: list[tuple[str, Loaded, list[Wanted]]] = []
    writes: list[Write] = []
    keys: list[tuple[str, str, float | None]] = []
    outcomes, forced = memory.outcomes, memory.forced
    for response_id, loaded in work.turns.items():
        if not loaded.touched:
            continue
        turn = loaded.turn
        pending = wanted(turn, response_id in forced)
        if not pending or not policy.write or work.replaying:
            if rest(turn, now, pending):
                work.change.due[response_id] = now + policy.trace_lookup
            elif pending and policy.write:
                work.change.due[response_id] = now + AFTER_REPLAY_MS
            continue
        wants.append((response_id, loaded, pending))
        trace_id = turn.trace_id
        for want in pending:
            key = (response_id, want.name, want.value)
            if key not in outcomes:
                keys.append(key)
                writes.append(Write(trace_id, turn.project, want.name, want.value, LABELS[want.name]))
                if legacy:
                    keys.append(key)
                    writes.append(Write(trace_id, turn.project, LEGACY_NAMES[want.name], want.value, LABELS[want.name]))
    if writes:
        for key, refusal in zip(keys, await ports.scores.write(writes), strict=True):
            outcomes[key] = outcomes.get(key) or refusal
    refused: list[Refused] = []
    if wants:
        stored = ports.clock.now_ms()
        for response_id, loaded, pending in wants:
            turn = loaded.turn
            worst: dict[int, tuple[Signal, Refusal]] = {}
            for want in pending:
                refusal = outcomes[response_id, want.name, want.value]
                if refusal is None:
                    note_written(turn, want)
                    dims = (turn.vertical, turn.sub_agent, turn.category, want.name)
                    report.written[dims] = report.written.get(dims, 0) + 1
                else:
                    worst.setdefault(id(want.owner), (want.owner, refusal))
            for signal, refusal in worst.values():
                if signal.mark != Mark.DEAD:
                    refused.append((response_id, signal, refusal))
                bury(signal, refusal.cause)
            owner = pending[0].owner
            if id(owner) not in worst:
                report.lags_ms.append(stored - max(owner.time, turn.time))
            rest(turn, now, [])
    return refused


async def send_letters(ports: Ports, memory: Memory, letters: list[DeadLetter]) -> None:
    """Send each letter once, also when the step is repeated."""
    fresh = [x for x in letters if place_of(x) not in memory.lettered]
    if fresh:
        await ports.dead_letters.put(fresh)
    memory.lettered.update(map(place_of, fresh))


def place_of(letter: DeadLetter) -> tuple[str, int, int, bytes | None]:
    record = letter.record
    return record.topic, record.partition, record.offset, record.key


async def letters_for(
    refused: list[Refused],
    ports: Ports,
    topics: Topics,
    at_hand: Callable[[str, int, int], Record | None],
    stage: str,
) -> list[DeadLetter]:
    """Dead letters of signals, each with the bytes of the record that carried it: at hand, or read back from Kafka."""
    names = {
        Origin.THUMBS: topics["thumbs"],
        Origin.REROLLS: topics["rerolls"],
        Origin.TRACES: topics["traces"],
    }
    places = [(names[Origin(s.origin)], s.partition, s.offset) if s.origin else None for _, s, _ in refused]
    records = [place and at_hand(*place) for place in places]
    missing = [place for place, record in zip(places, records, strict=True) if place and record is None]
    fetched = dict(zip(missing, await ports.records.fetch(missing), strict=True)) if missing else {}
    now = ports.clock.now_ms()
    out = []
    for (response_id, _, refusal), place, record in zip(refused, places, records, strict=True):
        found = record or (fetched.get(place) if place else None) or lost(place, response_id)
        out.append(DeadLetter(found, refusal.cause, refusal.detail, stage, now))
    return out


@dataclass(frozen=True)
class LostRecord:
    """Stands for a record that Kafka no longer holds; its key still says which turn it was about."""

    topic: str
    partition: int
    offset: int
    key: bytes
    timestamp: int = 0
    value: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


def lost(place: tuple[str, int, int] | None, response_id: str) -> Record:
    topic, partition, offset = place or ("", -1, -1)
    return LostRecord(topic, partition, offset, response_id.encode())
