"""Judges completed traces and writes the scores to Opik (PC5 §5.2, FR-11): a sample, and every trace voted down.

This file knows no Kafka: `streams.kafka.delayed_consumer` hands a record in when its time has come, and again until it
is done. A repetition is harmless: judged traces are marked, answers are cached, and a score written twice is one score
in Opik, as its event is one event by its id.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import orjson

from agents import thumbs, traces
from agents.codec import SignalEvent, TraceFacts
from agents.join.turn import Turn, decode_turn
from agents.judge_scores import ScoreEvents, live_events
from agents.keys import turn_keys
from agents.live.scores import Mark, keep, mark_key, note_judged, read_marks
from agents.own_calls import claimed, is_own
from agents.policy import Policy
from agents.ports import Change, Ports, Refusal, Unavailable, Write
from evalcore.judges.evaluator import Task
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answer, Judgement, NotApplicable, Scored
from evalcore.scoring.applicability import chosen, judges_of, weight
from evalcore.scoring.calls import PASSING, Failure
from evalcore.scoring.sampling import share
from schemas.dead_letters import DeadLetter, Record, clean
from schemas.outcomes import Cause

STAGE = "live.judging"
MENDABLE = PASSING | {Failure.DOWN, Failure.UNAUTHORIZED, Failure.REFUSED}
"""Failures that a replay may mend. An unreadable answer, or a trace without the fields a judge reads, would fail
again."""


@dataclass(frozen=True)
class Judged:
    """One trace's judges with their judgements."""

    said: Sequence[tuple[Judge, Judgement]]

    def outcomes(self) -> list[str]:
        """Return one label for each judge, for metrics."""
        return [_outcome(found.answer) for _, found in self.said]


def writes_of(turn: Turn, judged: Judged) -> list[Write]:
    """Return the scores to write: under the rule's score name, with the judge's reason, one more for each dimension. An
    answer that is not applicable or unscored gives none."""
    out = []
    for judge, found in judged.said:
        values = {judge.score_name: found.answer}
        values |= {f"{judge.score_name}.{name}": answer for name, answer in found.dimensions.items()}
        for name, answer in values.items():
            if isinstance(answer, Scored):
                out.append(Write(turn.trace_id, turn.project, name, answer.value, found.reason))
    return out


def letter_of(record: Record, judged: Judged, refusal: Refusal | None, now: int) -> DeadLetter | None:
    """Return the record's dead letter: for Opik's refusal, else for a judge's failure that a replay may mend, else
    None."""
    if refusal is not None:
        return DeadLetter(record, refusal.cause, refusal.detail, STAGE, now)
    failed = [(judge.id, found) for judge, found in judged.said if found.failure in MENDABLE]
    if not failed:
        return None
    first = getattr(failed[0][1].answer, "reason", "")
    detail = clean(f"{', '.join(name for name, _ in failed)}: {first}")
    return DeadLetter(record, Cause.JUDGE_UNAVAILABLE, detail, STAGE, now)


def _outcome(answer: Answer) -> str:
    if isinstance(answer, Scored):
        return "scored"
    return "not_applicable" if isinstance(answer, NotApplicable) else "unscored"


class Escape(StrEnum):
    """A claim of a trace by which live judging passes over it, or would."""

    NOT_UUID7 = "not_uuid7"
    """Opik holds only traces whose id is a UUID of version 7, so no other can get a score."""
    LEFT_TO_OPIK = "left_to_opik"
    """Its vertical is one that Opik's own judges judge."""
    UNSIGNED = "unsigned"
    """It says that it is of our own judges' calls, and our signature is missing: it is judged."""


NAME = "live"
"""The name of these calls, where gates share a model with them."""


class Scorer(Protocol):
    async def score(self, gate: str, tasks: Sequence[Task]) -> list[Judgement]:
        """Return judgements in the order of the tasks; no task makes it raise."""
        ...


@dataclass
class Todo:
    """A trace to judge. `record` asked for it, and becomes the dead letter if judging fails."""

    record: Record
    response_id: str
    turn: Turn
    source: Mapping[str, Any]
    mark: Mark
    judges: list[Judge] = field(default_factory=list)


class LiveJudging:
    """Judges batches of records. `whole` reads a trace from Opik by its id; `left`: verticals that Opik itself
    judges."""

    def __init__(
        self,
        ports: Ports,
        policy: Policy,
        scorer: Scorer,
        registry: Callable[[], Registry | None],
        whole: Callable[[str], Awaitable[dict[str, Any] | None]],
        left: frozenset[str],
        traces_topic: str,
        events: ScoreEvents,
        observe: Callable[[Judged], None] = lambda judged: None,
        escapes: Callable[[Escape], None] = lambda escape: None,
    ) -> None:
        self._ports, self._policy, self._scorer, self._registry = ports, policy, scorer, registry
        self._whole, self._left, self._topic, self._observe = whole, left, traces_topic, observe
        self._escapes, self._events = escapes, events

    async def traces(self, records: Sequence[Record]) -> list[Record]:
        """Judge the traces that sampling rates choose, and those voted down by now. Returns []; raises Unavailable."""
        registry = self._serving()
        decoded = traces.decode(records, self._ports.clock.now_ms(), self._policy)
        found: dict[bytes, tuple[TraceFacts, dict[str, Any]]] = {}
        for facts in decoded.items:
            source = orjson.loads(records[facts.index].value or b"{}")
            if source.get("ended_at") is None:
                continue
            if (escape := self._escape(facts.vertical, facts.trace)) is not None:
                self._escapes(escape)
                continue
            found[facts.trace] = facts, source
        marks = await read_marks(self._ports.store, list(found))
        turns = await self._turns([facts.response_id for facts, _ in found.values()])
        todo = []
        for trace, (facts, source) in found.items():
            if trace in marks:
                continue
            if claimed(source.get("metadata")):
                self._escapes(Escape.UNSIGNED)
            record, turn = records[facts.index], turns[facts.response_id]
            down = turn.trace == trace and turn.thumbs is not None and turn.thumbs.value < 0
            own = Turn(trace=trace, project=facts.project)
            one = Todo(record, facts.response_id, own, source, Mark(down, record.partition, record.offset))
            one.judges = chosen(judges_of(registry, source), source, share(trace), down)
            todo.append(one)
        await self._judge(todo)
        return []

    async def thumbs(self, records: Sequence[Record]) -> list[Record]:
        """Judge traces that are voted down, by the judges that have not judged them. Returns the records whose trace is
        not known yet; they must be handed in again. Raises Unavailable."""
        registry, now = self._serving(), self._ports.clock.now_ms()
        decoded = thumbs.decode(records, now, self._policy)
        down: dict[str, SignalEvent] = {item.response_id: item for item in decoded.items if item.value < 0}
        turns = await self._turns(list(down))
        marks = await read_marks(self._ports.store, [turn.trace for turn in turns.values() if turn.trace])
        todo, waiting = [], []
        for response_id, item in down.items():
            record, turn = records[item.index], turns[response_id]
            if turn.thumbs is not None and turn.thumbs.value >= 0:
                continue  # taken back, or changed
            known = turn.thumbs is not None and turn.trace
            mark = marks.get(turn.trace)
            if known and (self._escape(turn.vertical, turn.trace) or (mark is not None and mark.voted_down)):
                continue
            source = await self._source(turn, mark) if known else None
            if source is None:
                # The join has not reached it, or the trace is not in Opik yet: it may still arrive.
                if now - record.timestamp < self._policy.missing_trace:
                    waiting.append(record)
                continue
            if is_own(source.get("metadata"), turn.trace, self._policy.own_key):
                continue
            one = Todo(record, response_id, turn, source, (mark or Mark(True))._replace(voted_down=True))
            all_, part = judges_of(registry, source), share(turn.trace)
            had = {judge.id for judge in chosen(all_, source, part, False)} if mark is not None else set()
            given = {str(score.get("name")) for score in source.get("feedback_scores") or ()}
            one.judges = [
                judge
                for judge in chosen(all_, source, part, True)
                if judge.id not in had and judge.score_name not in given
            ]
            todo.append(one)
        await self._judge(todo)
        return waiting

    async def _judge(self, todo: Sequence[Todo]) -> None:
        """Ask judges, send and write their scores, send dead letters, mark what is done; in this order, so that nothing
        marked is lost."""
        for one in todo:
            if one.judges and not _whole(one.source):
                read = await self._whole(one.turn.trace_id) or {}
                one.source = {**one.source, "input": read.get("input"), "output": read.get("output")}
                if not _whole(one.source):
                    one.judges = []
        tasks = [
            Task(judge, one.turn.trace.hex(), "online", one.source, weight(judge, one.mark.voted_down))
            for one in todo
            for judge in one.judges
        ]
        answers = iter(await self._scorer.score(NAME, tasks) if tasks else [])
        judged = [Judged([(judge, next(answers)) for judge in one.judges]) for one in todo]
        at = self._ports.clock.now_ms()
        await self._events.put(
            event
            for one, said in zip(todo, judged, strict=True)
            for event in live_events(one.turn.trace_id, one.response_id, one.source.get("metadata"), said.said, at)
        )
        writes: list[Write] = []
        owners: list[int] = []
        for place, (one, said) in enumerate(zip(todo, judged, strict=True)):
            own = writes_of(one.turn, said)
            writes += own
            owners += [place] * len(own)
        refusals: dict[int, Refusal] = {}
        outcomes = await self._ports.scores.write(writes) if writes else []
        for place, outcome in zip(owners, outcomes, strict=True):
            if isinstance(outcome, Refusal):
                refusals.setdefault(place, outcome)
        now = self._ports.clock.now_ms()
        change, letters, written = Change(), [], []
        for place, (one, said) in enumerate(zip(todo, judged, strict=True)):
            letter = letter_of(one.record, said, refusals.get(place), now)
            if letter is not None:
                letters.append(letter)
            else:
                change.sets[mark_key(one.turn.trace)] = one.mark.pack(), now + self._policy.lookback
            metadata = one.source.get("metadata")
            since = self._pooled_since(metadata, now)
            for judge, found in said.said if since is not None else ():
                keep(change, now, self._policy.lookback, one.turn.trace, judge, metadata, found.answer, since or 0)
            if place in owners and place not in refusals:
                written.append(one.response_id)
            self._observe(said)
        if letters:
            await self._ports.dead_letters.put(letters)
        if written:
            await note_judged(written, self._ports, self._policy)
        if change.sets or change.pools:
            await self._ports.store.apply(change)

    def _serving(self) -> Registry:
        found = self._registry()
        if found is None:
            raise Unavailable("the registry is not loaded")
        return found

    def _pooled_since(self, metadata: Any, now: int) -> int | None:
        """Return the hour since which scores of this agent version are kept; None where they are not."""
        if not isinstance(metadata, Mapping):
            return None
        agent, version = metadata.get("agent_id"), metadata.get("agent_version")
        if not (agent and version and isinstance(agent, str) and isinstance(version, str)):
            return None
        return self._ports.newcomers.pooled_since(agent, version, now)

    def _escape(self, vertical: str, trace: bytes) -> Escape | None:
        """Return why we don't judge this trace, None where we do."""
        if trace[6] >> 4 != 7:
            return Escape.NOT_UUID7
        return Escape.LEFT_TO_OPIK if vertical in self._left else None

    async def _turns(self, response_ids: Sequence[str]) -> dict[str, Turn]:
        stored_turns = await self._ports.store.read(turn_keys(response_ids)) if response_ids else []
        pairs = zip(response_ids, stored_turns, strict=True)
        return {response_id: decode_turn(stored) if stored else Turn() for response_id, stored in pairs}

    async def _source(self, turn: Turn, mark: Mark | None) -> dict[str, Any] | None:
        """Return the trace's event from its topic where that is still there, else the trace from Opik."""
        if mark is not None and mark.offset >= 0:
            (record,) = await self._ports.records.fetch([(self._topic, mark.partition, mark.offset)])
            if record is not None and record.value is not None:
                found: dict[str, Any] = orjson.loads(record.value)
                return found
        return await self._whole(turn.trace_id)


def _whole(source: Mapping[str, Any]) -> bool:
    return source.get("input") is not None and source.get("output") is not None
