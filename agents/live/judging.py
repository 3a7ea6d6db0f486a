"""Judges completed traces and writes the scores to Opik (PC5 §5.2, FR-11): a sample, and every trace voted down.

This file knows no Kafka: `streams.kafka.delayed_consumer` hands a record in when its time has come, and again until it
is done. A repetition is harmless: judged traces are marked, answers are cached, and a score written twice is one score
in Opik, as its event is one event by its id. A trace that has not ended, or whose texts are nowhere yet, waits for
`missing_trace` and then becomes a dead letter: it is never marked unjudged.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents import thumbs, traces
from agents.codec import SignalEvent, loads
from agents.join.turn import Mark as SignalMark
from agents.join.turn import Turn, decode_turn
from agents.join.versions import Came, standings
from agents.judge_scores import ScoreEvents, live_events
from agents.keys import turn_keys
from agents.live.balance import Balance, Due, End
from agents.live.scores import Mark, keep, mark_key, note_judged, read_marks
from agents.own_calls import claimed, is_own
from agents.policy import Policy
from agents.ports import Change, Ports, Refusal, Unauthorized, Unavailable, Write
from evalcore.judges.evaluator import Task
from evalcore.registry.registry import Judge, Registry
from evalcore.remediation.sealing import Form
from evalcore.scoring.answers import Answer, Judgement, NotApplicable, Scored
from evalcore.scoring.applicability import chosen, judges_of, weight
from evalcore.scoring.calls import PASSING, Failure
from evalcore.scoring.runner import Scorer
from evalcore.scoring.sampling import share
from schemas.dead_letters import DeadLetter, Record, clean
from schemas.outcomes import Cause

log = logging.getLogger(__name__)
STAGE = "live.judging"
MENDABLE = PASSING | {Failure.DOWN, Failure.UNAUTHORIZED, Failure.REFUSED}
"""Failures that a replay may mend. An unreadable answer, or a trace without the fields a judge reads, would fail
again."""


Said = Sequence[tuple[Judge, Judgement]]
"""A trace's judges with their judgements."""


def outcomes_of(said: Said) -> list[str]:
    """Return one label for each judge, for metrics."""
    return [_outcome(found.answer) for _, found in said]


def writes_of(turn: Turn, said: Said) -> list[Write]:
    """Return the scores to write: under the rule's score name, with the judge's reason, one more for each dimension. An
    answer that is not applicable or unscored gives none."""
    out = []
    for judge, found in said:
        values = {judge.score_name: found.answer}
        values |= {f"{judge.score_name}.{name}": answer for name, answer in found.dimensions.items()}
        for name, answer in values.items():
            if isinstance(answer, Scored):
                out.append(Write(turn.trace_id, turn.project, name, answer.value, found.reason))
    return out


def letter_of(record: Record, said: Said, refusal: Refusal | None, now: int) -> DeadLetter | None:
    """Return the record's dead letter: for Opik's refusal, else for a judge's failure that a replay may mend, else
    None."""
    if refusal is not None:
        return DeadLetter(record, refusal.cause, refusal.detail, STAGE, now)
    failed = [(judge.id, found) for judge, found in said if found.failure in MENDABLE]
    if not failed:
        return None
    first = getattr(failed[0][1].answer, "reason", "")
    detail = clean(f"{', '.join(name for name, _ in failed)}: {first}")
    return DeadLetter(record, Cause.JUDGE_UNAVAILABLE, detail, STAGE, now)


def _outcome(answer: Answer) -> str:
    if isinstance(answer, Scored):
        return "scored"
    return "not_applicable" if isinstance(answer, NotApplicable) else "unscored"


UNSIGNED = "unsigned"
"""The escape of a trace that says that it is of our own judges' calls, without our signature: it is judged."""
NAME = "live"
"""The name of these calls, where gates share a model with them."""


@dataclass
class Todo:
    """A trace to judge. `record` asked for it, and becomes the dead letter if judging fails. `before` is the trace's
    mark as it was read, `lacks` why it can't be judged yet."""

    record: Record
    due: Due
    turn: Turn
    source: Mapping[str, Any]
    mark: Mark
    judges: list[Judge] = field(default_factory=list)
    before: Mark | None = None
    lacks: str = ""


@dataclass(eq=False, repr=False)
class LiveJudging:
    """Judges batches of records. `whole` reads a trace from Opik by its id; `left`: verticals that Opik itself
    judges."""

    ports: Ports
    policy: Policy
    scorer: Scorer
    registry: Callable[[], Registry | None]
    whole: Callable[[str], Awaitable[dict[str, Any] | None]]
    left: frozenset[str]
    traces_topic: str
    events: ScoreEvents
    balance: Balance
    observe: Callable[[Said], None] = lambda said: None
    escapes: Callable[[str], None] = lambda reason: None
    _busy: set[bytes] = field(default_factory=set)

    async def traces(self, records: Sequence[Record]) -> list[Record]:
        """Judge the traces that sampling rates choose, and those voted down by now. Returns the records that must be
        handed in again; raises Unavailable."""
        return await self._brought(records, self._traces)

    async def thumbs(self, records: Sequence[Record]) -> list[Record]:
        """Judge traces that are voted down, by the judges that have not judged them. Returns the records that must be
        handed in again; raises Unavailable."""
        return await self._brought(records, self._thumbs)

    async def _brought(
        self, records: Sequence[Record], handle: Callable[[Sequence[Record]], Awaitable[list[Record]]]
    ) -> list[Record]:
        try:
            waiting = await handle(records)
        except Exception as error:
            if len(records) > 1 or isinstance(error, Unavailable | Unauthorized):
                raise  # they come again, after a defect of ours one by one
            log.exception("live_judging_failed: %s", type(error).__name__)
            now = self.ports.clock.now_ms()
            letter = DeadLetter(records[0], Cause.INTERNAL_ERROR, type(error).__name__, STAGE, now)
            await self.ports.dead_letters.put([letter])
            self.balance.all_end(End.DEAD_LETTERED, records)
            waiting = []
        self.balance.left(records, waiting)
        return waiting

    async def _traces(self, records: Sequence[Record]) -> list[Record]:
        registry = self._serving()
        decoded = traces.decode(records, self.ports.clock.now_ms(), self.policy)
        for dropped in decoded.dropped:
            self.balance.ended(self.balance.came(records[dropped.index], "", "", "", False), End(dropped.reason))
        turns = await self._turns([facts.response_id for facts in decoded.items])
        found: dict[bytes, tuple[tuple[bool, int, int], Todo]] = {}
        for facts in decoded.items:
            record, turn = records[facts.index], turns[facts.response_id]
            opened, trace = self.policy.forms.open(loads(record.value or b"{}")), facts.trace
            source = opened.record
            vote = turn.thumbs.value if turn.thumbs is not None else 0
            due = self.balance.came(record, facts.response_id, facts.agent, facts.agent_version, bool(vote))
            if not _ended(source) or opened.form is Form.BARE:
                self.balance.ended(due, End.NOT_ENDED)
            elif (escape := self._escape(facts.vertical, trace)) is not None:
                self.escapes(escape)
                self.balance.ended(due, escape)
            else:
                mark = Mark(turn.trace == trace and vote < 0, record.partition, record.offset)
                one = Todo(record, due, Turn(trace=trace, project=facts.project), source, mark)
                # The last record counts, unless it leaves the texts to an earlier one.
                rank = _whole(source), facts.ended, facts.index
                if trace in found:
                    (rank, one), (_, passed) = max((rank, one), found[trace]), min((rank, one), found[trace])
                    self.balance.ended(passed.due, End.SUPERSEDED)
                found[trace] = rank, one
        marks = await read_marks(self.ports.store, list(found))
        todo = []
        for trace, (_, one) in found.items():
            if trace in marks:
                self.balance.ended(one.due, End.JUDGED_BEFORE)
                continue
            if one.due.first and claimed(one.source.get("metadata")):
                self.escapes(UNSIGNED)
            one.judges = chosen(judges_of(registry, one.source), one.source, share(trace), one.mark.voted_down)
            todo.append(one)
        return await self._judge(todo)

    async def _thumbs(self, records: Sequence[Record]) -> list[Record]:
        registry, now = self._serving(), self.ports.clock.now_ms()
        decoded = thumbs.decode(records, now, self.policy)
        down: dict[str, SignalEvent] = {}
        for item in (item for item in decoded.items if item.value < 0):
            if (passed := down.get(item.response_id)) is not None:
                due = self.balance.came(records[passed.index], item.response_id, "", "", True)
                self.balance.ended(due, End.SUPERSEDED)
            down[item.response_id] = item
        turns = await self._turns(list(down))
        marks = await read_marks(self.ports.store, [turn.trace for turn in turns.values() if turn.trace])
        todo = []
        for response_id, item in down.items():
            record, turn = records[item.index], turns[response_id]
            mark = marks.get(turn.trace)
            end = self._passed_over(turn, mark)
            known = end is None and turn.thumbs is not None and turn.trace
            source = await self._source(turn, mark) if known else None
            metadata = (source or {}).get("metadata")
            whose = metadata if isinstance(metadata, Mapping) else {}
            due = self.balance.came(record, response_id, whose.get("agent_id"), whose.get("agent_version"), True)
            if known and is_own(metadata, turn.trace, self.policy.own_key):
                end = End.OWN_TRAFFIC
            if end is not None:
                self.balance.ended(due, end)
                continue
            one = Todo(record, due, turn, source or {}, (mark or Mark(True))._replace(voted_down=True), before=mark)
            todo.append(one)
            if source is None or not _ended(source):
                one.lacks = "the trace has not ended" if source else "the turn's trace is not known, or not in Opik"
                continue
            all_, part = judges_of(registry, source), share(turn.trace)
            had = {judge.id for judge in chosen(all_, source, part, False)} if mark is not None else set()
            given = {str(score.get("name")) for score in source.get("feedback_scores") or ()}
            one.judges = [
                judge
                for judge in chosen(all_, source, part, True)
                if judge.id not in had and judge.score_name not in given
            ]
        return await self._judge(todo)

    def _passed_over(self, turn: Turn, mark: Mark | None) -> End | None:
        """Return why a thumbs-down on this turn has nothing judged; None where it has."""
        if turn.thumbs is None:
            return None
        if turn.thumbs.value >= 0:
            return End.TAKEN_BACK
        if not turn.trace:
            return End.NO_TRACE if turn.thumbs.mark == SignalMark.DEAD else None
        if (escape := self._escape(turn.vertical, turn.trace)) is not None:
            return escape
        return End.JUDGED_BEFORE if mark is not None and mark.voted_down else None

    async def _judge(self, todo: Sequence[Todo]) -> list[Record]:
        """Judge each trace that can be judged; return the records that wait. No trace is in work twice at a time."""
        free = [one for one in todo if one.turn.trace not in self._busy]
        taken = {one.turn.trace for one in free}
        self._busy |= taken
        try:
            marks = await read_marks(self.ports.store, [trace for trace in taken if trace])
            ready = [one for one in free if marks.get(one.turn.trace) == one.before]
            for one in ready:
                if not one.lacks and one.judges and not _whole(one.source):
                    read = await self.whole(one.turn.trace_id) or {}
                    if _ended(read):
                        lacks = [name for name in ("input", "output") if one.source.get(name) is None]
                        one.source = {**one.source, **{name: read.get(name) for name in lacks}}
                    if not _whole(one.source):
                        one.lacks = "neither the record nor an ended trace in Opik has both texts"
            # Where the join waits for a turn's trace, so do we: it writes the dead letter.
            ours = [one for one in ready if one.lacks and (one.turn.trace or one.turn.thumbs is None)]
            now = self.ports.clock.now_ms()
            late = [one for one in ours if one.record.timestamp <= now - self._patience(one.turn)]
            settled = [one for one in ready if not one.lacks]
            await self._settle(settled, late)
        finally:
            self._busy -= taken
        done = {id(one) for one in (*settled, *late)}
        return [one.record for one in todo if id(one) not in done]

    async def _settle(self, todo: Sequence[Todo], late: Sequence[Todo]) -> None:
        """Ask judges, send and write their scores, send dead letters, mark what is done; in this order, so that nothing
        marked is lost."""
        tasks = [
            Task(judge, one.turn.trace.hex(), "online", one.source, weight(judge, one.mark.voted_down))
            for one in todo
            for judge in one.judges
        ]
        answers = iter(await self.scorer.score(NAME, tasks) if tasks else [])
        judged = [[(judge, next(answers)) for judge in one.judges] for one in todo]
        at = self.ports.clock.now_ms()
        await self.events.put(
            event
            for one, said in zip(todo, judged, strict=True)
            for event in live_events(one.turn.trace_id, one.due.response_id, one.source.get("metadata"), said, at)
        )
        writes: list[Write] = []
        owners: list[int] = []
        for place, (one, said) in enumerate(zip(todo, judged, strict=True)):
            own = writes_of(one.turn, said)
            writes += own
            owners += [place] * len(own)
        refusals: dict[int, Refusal] = {}
        outcomes = await self.ports.scores.write(writes) if writes else []
        for place, outcome in zip(owners, outcomes, strict=True):
            if isinstance(outcome, Refusal):
                refusals.setdefault(place, outcome)
        now = self.ports.clock.now_ms()
        change, written = Change(), []
        letters = [DeadLetter(one.record, Cause.MISSING_TRACE, one.lacks, STAGE, now) for one in late]
        ends = [(one, End.DEAD_LETTERED) for one in late]
        for place, (one, said) in enumerate(zip(todo, judged, strict=True)):
            letter = letter_of(one.record, said, refusals.get(place), now)
            if letter is not None:
                letters.append(letter)
                ends.append((one, End.DEAD_LETTERED))
            else:
                change.sets[mark_key(one.turn.trace)] = one.mark.pack(), now + self.policy.lookback
                ends.append((one, End.JUDGED if one.judges else End.NO_JUDGE))
            metadata = one.source.get("metadata")
            since = self._pooled_since(metadata, now)
            for judge, found in said if since is not None else ():
                keep(change, now, self.policy.lookback, one.turn.trace, judge, metadata, found.answer, since or 0)
            if place in owners and place not in refusals:
                written.append(one.due.response_id)
            self.observe(said)
        if letters:
            await self.ports.dead_letters.put(letters)
        if written:
            await note_judged(written, self.ports, self.policy)
        if change.sets or change.pools:
            await self.ports.store.apply(change)
        for one, end in ends:
            self.balance.ended(one.due, end)

    def _serving(self) -> Registry:
        found = self.registry()
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
        return self.ports.newcomers.pooled_since(agent, version, now)

    def _escape(self, vertical: str, trace: bytes) -> End | None:
        """Return why we don't judge this trace, None where we do. Opik holds only ids that are UUIDs of version 7."""
        if trace[6] >> 4 != 7:
            return End.NOT_UUID7
        return End.LEFT_TO_OPIK if vertical in self.left else None

    async def _turns(self, response_ids: Sequence[str]) -> dict[str, Turn]:
        stored_turns = await self.ports.store.read(turn_keys(response_ids)) if response_ids else []
        pairs = zip(response_ids, stored_turns, strict=True)
        return {response_id: decode_turn(stored) if stored else Turn() for response_id, stored in pairs}

    async def _source(self, turn: Turn, mark: Mark | None) -> Mapping[str, Any] | None:
        """Return the trace's event from its topic where that is still there, else the trace from Opik. None for one
        that waits to be completed, and for one that is judged by its record, since Opik's lacks what we add to it."""
        if mark is not None and mark.offset >= 0:
            (record,) = await self.ports.records.fetch([(self.traces_topic, mark.partition, mark.offset)])
            if record is not None and record.value is not None:
                opened = self.policy.forms.open(loads(record.value))
                return None if opened.form is Form.BARE else opened.record
        came = any(one.came in (Came.RUNNING, Came.POOLED) for one in standings(turn))
        if mark is None and came and turn.vertical in self.policy.forms.namespaces:
            return None
        return await self.whole(turn.trace_id)

    def _patience(self, turn: Turn) -> int:
        """Return how long a trace, or a thumbs-down, waits for what it lacks (ms)."""
        completed = turn.vertical in self.policy.forms.namespaces
        return self.policy.missing_trace + (self.policy.enrichment_wait if completed else 0)


def _ended(source: Mapping[str, Any]) -> bool:
    """Return whether the trace has ended, as its event or Opik says."""
    return source.get("ended_at") is not None or source.get("end_time") is not None


def _whole(source: Mapping[str, Any]) -> bool:
    return source.get("input") is not None and source.get("output") is not None
