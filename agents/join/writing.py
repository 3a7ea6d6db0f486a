"""Writing: what touched turns want goes to Opik in one call; what it refuses becomes dead letters, bytes and all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agents.join.join import LABELS, LEGACY_NAMES, REROLL, THUMBS, bury, distrust, note_written, rest, wanted
from agents.join.turn import Mark, Origin, Signal
from agents.join.work import Memory, Plan, Work
from agents.ports import Ports, Refusal, Write
from schemas.dead_letters import DeadLetter, Record
from schemas.topics import Topics

AFTER_REPLAY_MS = 3_000
Refused = tuple[str, Signal, Refusal]


async def write_scores(work: Work, ports: Ports) -> list[Refused]:
    """Write what touched turns want, note what Opik took, mark every signal; the refused ones are returned."""
    policy, now, forced = work.policy, work.now, work.memory.forced
    plan: Plan = []
    for response_id, loaded in work.turns.items():
        if not loaded.touched:
            continue
        turn = loaded.turn
        pending = wanted(turn, response_id in forced)
        if pending and policy.write and not work.replaying:
            plan.append((response_id, loaded, pending))
            continue
        if response_id in forced:
            distrust(turn, pending)
        if rest(turn, now, pending):
            work.change.due[response_id] = now + policy.trace_lookup
        elif pending and policy.write:
            work.change.due[response_id] = now + AFTER_REPLAY_MS
    if not plan and work.prepared is None:
        return []
    outcomes = await send(work, ports, plan)
    work.plan, work.outcomes = plan, outcomes
    return settle_written(work, ports, plan, outcomes)


async def send(work: Work, ports: Ports, plan: Plan) -> list[Refusal | None]:
    """One outcome for each score of the plan, in order; what is prepared gets its own. What an earlier attempt at this
    step wrote is not sent again."""
    known, legacy, prepared = work.memory.outcomes, work.policy.mirror_legacy_names, work.prepared
    writes: list[Write] = list(prepared.writes) if prepared is not None else []
    if not known and not legacy:
        for _, loaded, pending in plan:
            turn = loaded.turn
            trace_id, project = turn.trace_id, turn.project
            for want in pending:
                writes.append(Write(trace_id, project, want.name, want.value, LABELS[want.name]))
        found = await ports.scores.write(writes)
        if prepared is None:
            return found
        prepared.outcomes = found[: len(prepared.writes)]
        return found[len(prepared.writes) :]
    places: list[int] = []
    outcomes: list[Refusal | None] = []
    for response_id, loaded, pending in plan:
        turn = loaded.turn
        for want in pending:
            name, value = want.name, want.value
            names = (name, LEGACY_NAMES[name]) if legacy else (name,)
            if (response_id, name, value) not in known:
                writes += [Write(turn.trace_id, turn.project, each, value, LABELS[name]) for each in names]
                places += [len(outcomes)] * len(names)
            outcomes.append(known.get((response_id, name, value)))
    for place, refusal in zip(places, await ports.scores.write(writes) if writes else (), strict=True):
        outcomes[place] = outcomes[place] or refusal
    return outcomes


def settle_written(work: Work, ports: Ports, plan: Plan, outcomes: list[Refusal | None]) -> list[Refused]:
    """Note in each turn what Opik took; bury the signals of what it refused."""
    report, stored, now = work.report, ports.clock.now_ms(), work.now
    lags = report.lags_ms
    tally: dict[tuple[str, str, str], list[int]] = {}
    refused: list[Refused] = []
    at = 0
    for response_id, loaded, pending in plan:
        turn = loaded.turn
        dims = (turn.vertical, turn.sub_agent, turn.category)
        counts = tally.get(dims) or tally.setdefault(dims, [0, 0])
        buried: list[Signal] = []
        for want in pending:
            refusal = outcomes[at]
            at += 1
            if refusal is None:
                note_written(turn, want)
                counts[want.name is REROLL] += 1
                continue
            signal = want.owner
            if not any(signal is other for other in buried):
                buried.append(signal)
                if signal.mark != Mark.DEAD:
                    refused.append((response_id, signal, refusal))
                bury(signal, refusal.cause)
        if not buried:
            lags.append(max(stored - max(pending[0].owner.time, turn.time), 0))
        rest(turn, now, [])
    if (prepared := work.prepared) is not None:
        lags += [max(stored - since, 0) for since in prepared.since]
        for dims, by in prepared.written.items():
            counts = tally.setdefault(dims, [0, 0])
            counts[0] += by
            counts[1] += by
    for dims, counts in tally.items():
        for name, by in zip((THUMBS, REROLL), counts, strict=True):
            if by:
                report.written[*dims, name] = report.written.get((*dims, name), 0) + by
    return refused


async def send_letters(ports: Ports, memory: Memory, letters: list[DeadLetter]) -> None:
    """Send each letter once, also when the step is repeated."""
    fresh = {place_of(x): x for x in reversed(letters) if place_of(x) not in memory.lettered}
    if fresh:
        await ports.dead_letters.put(list(reversed(fresh.values())))
    memory.lettered.update(fresh)


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
        Origin.SWEPT_THUMBS: topics["thumbs"],
        Origin.SWEPT_REROLLS: topics["rerolls"],
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
