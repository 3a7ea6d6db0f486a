"""Completes traces that name a remediation workflow: once it has ended, a trace is published once more with what the
cluster says of it, under our seal.

This file knows neither Kafka nor a cluster: `streams.kafka.delayed_consumer` hands a record in, and again until it is
done. A record that waits costs a look at what is known, no request. A repetition is harmless: that a trace is completed
stands in its turn, and of two records of a trace the one with the later end counts. A cluster never raises here.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Protocol

import orjson

from agents import traces
from agents.codec import TraceFacts, loads, time_ms
from agents.join.turn import Turn, decode_turn, trace_text
from agents.join.versions import Came, standings
from agents.keys import REFUSED, UNNAMED, names_of, turn_keys
from agents.live.balance import Balance, Due
from agents.policy import Policy
from agents.ports import Ports, Unauthorized, Unavailable
from evalcore.judges.bindings import PLAIN, Unbound, as_text, place, resolve
from evalcore.remediation.objects import Kinds, Why, is_name, is_namespace, part
from evalcore.remediation.phase import Phase
from evalcore.remediation.sealing import FIELDS, SEAL, Form
from evalcore.remediation.summary import line, with_own_answer
from evalcore.remediation.workflow import Workflow, workflow_of
from schemas.dead_letters import DeadLetter, Record, clean
from schemas.outcomes import Cause
from schemas.verticals import TraceLayout

log = logging.getLogger(__name__)
NAME: Final = "completing"
STAGE: Final = "traces.completing"
LARGEST: Final = 1_000_000
"""Bytes of a completed trace's record."""
LEAST_TEXT: Final = 2_000
"""Bytes of the summary for which there must be room."""
READ_AT_ONCE: Final = 2
"""Workflows that are read at a time, each with up to four requests: the watches share the connections."""
REMEMBERED: Final = 10_000
"""Traces completed last that are remembered until their turns say so, too."""
CUT: Final = "… [cut]"


class End(StrEnum):
    """How the record of a trace that names a workflow leaves this reader. `completed_before`: its turn says that it is
    done. `superseded`: a later record of the trace stands. `handed_over`: who has the partition now reads it again."""

    COMPLETED = "completed"
    DEAD_LETTERED = "dead_lettered"
    COMPLETED_BEFORE = "completed_before"
    SUPERSEDED = "superseded"
    HANDED_OVER = "handed_over"


class Workflows(Protocol):
    """The workflows of the namespaces that verticals name. Never raises for a cluster."""

    def known(self, namespace: str, name: str) -> Phase | Why | None:
        """Return what is known of a workflow, without a request: its phase, why it can't be told, or None where it was
        not seen yet."""
        ...

    async def read(self, namespace: str, name: str, began_ms: int, ended_ms: int) -> Workflow:
        """Return it with its results, if it is that of a trace which began and ended then."""
        ...


class InOpik(Protocol):
    async def get(self, trace_id: str) -> Mapping[str, Any] | None:
        """Return a trace, whole; None where Opik has none. Raises Unavailable."""
        ...

    async def update(self, trace_id: str, project: str, changes: Mapping[str, Any]) -> None:
        """Change fields of a trace. Raises Unavailable and Unauthorized; what Opik refuses is only counted."""
        ...


class Unfit(Exception):
    """A trace that can't be completed, with the cause of its dead letter."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause


@dataclass
class Todo:
    """A trace that names a workflow: its record, and that as it counts."""

    record: Record
    due: Due
    facts: TraceFacts
    event: Mapping[str, Any]


@dataclass(eq=False, repr=False)
class Completing:
    """Completes batches of records. `publish` returns once a record (key, value) of the traces' topic is durable.
    `observe` gets each workflow that completes a trace."""

    ports: Ports
    policy: Policy
    kinds: Kinds
    workflows: Workflows
    opik: InOpik
    publish: Callable[[bytes | None, bytes], Awaitable[None]]
    balance: Balance
    observe: Callable[[Workflow], None] = lambda workflow: None
    _done: OrderedDict[bytes, int] = field(default_factory=OrderedDict)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(READ_AT_ONCE))

    async def traces(self, records: Sequence[Record]) -> list[Record]:
        """Complete the traces whose workflows have ended. Returns the records that must be handed in again; raises
        Unavailable and Unauthorized, once the others are done."""
        todo = self._named(records)
        keys = turn_keys([one.facts.response_id for one in todo])
        turns = map(decode_or_new, await self.ports.store.read(keys) if keys else [])
        ends = await asyncio.gather(*map(self._brought, todo, turns), return_exceptions=True)
        for error in ends:
            if isinstance(error, BaseException):
                raise error
        for one, end in zip(todo, ends, strict=True):
            if isinstance(end, End):
                self.balance.ended(one.due, end)
        waiting = [one.record for one, end in zip(todo, ends, strict=True) if end is None]
        self.balance.left(records, waiting)
        return waiting

    def _named(self, records: Sequence[Record]) -> list[Todo]:
        """Return the traces that wait to be completed, of each its last record. The join has all others, and what can't
        be read."""
        found: dict[bytes, Todo] = {}
        for facts in traces.decode(records, self.ports.clock.now_ms(), self.policy).items:
            record = records[facts.index]
            value = record.value or b"{}"
            if facts.came != Came.RUNNING and SEAL.encode() not in value:
                continue
            form, event, _ = self.policy.forms.open(loads(value))
            if form is Form.COMPLETED:
                self._note_done(facts.trace, facts.ended)
            if form is not Form.BARE or event.get("ended_at") is None:
                continue
            due = self.balance.came(record, facts.response_id, facts.agent, facts.agent_version, False)
            one, before = Todo(record, due, facts, event), found.get(facts.trace)
            if before is not None:
                one, before = (before, one) if before.facts.ended > facts.ended else (one, before)
                self.balance.ended(before.due, End.SUPERSEDED)
            found[facts.trace] = one
        return [*found.values()]

    async def _brought(self, one: Todo, turn: Turn) -> End | None:
        """Bring a trace to its end; None where it waits."""
        try:
            if self._completed(one.facts, turn):
                return End.COMPLETED_BEFORE
            workflow = await self._ended(one)
            if workflow is None:
                return None
            if workflow.unread:
                lacks = ", ".join(f"{missing.what}: {missing.why}" for missing in workflow.unread)
                raise Unfit(Cause.CLUSTER_UNAVAILABLE, lacks)
            await self._complete(one, workflow)
            return End.COMPLETED
        except (Unavailable, Unauthorized):
            raise
        except Exception as error:
            cause, detail = Cause.INTERNAL_ERROR, type(error).__name__
            if isinstance(error, Unfit):
                cause, detail = error.cause, str(error)
            else:
                log.exception("completing_failed: %s", detail)
            letter = DeadLetter(one.record, cause, clean(detail), STAGE, self.ports.clock.now_ms())
            await self.ports.dead_letters.put([letter])
            return End.DEAD_LETTERED

    def _completed(self, facts: TraceFacts, turn: Turn) -> bool:
        """Return whether the trace is completed: its record with the later end came, or has just gone out."""
        names = {UNNAMED, REFUSED, names_of(facts.agent, facts.agent_version)}
        return self._done.get(facts.trace, 0) > facts.ended or any(
            one.came == Came.POOLED and one.time > facts.ended and one.names in names for one in standings(turn)
        )

    async def _ended(self, one: Todo) -> Workflow | None:
        """Return the workflow as it completes the trace; None where that waits: while it runs, or can't be read, for
        `enrichment_wait`. Then it is asked for itself, whatever the watch knows."""
        facts, named, now = one.facts, part(one.event, "proposal"), self.ports.clock.now_ms()
        if facts.ended >= now:
            return None  # by the agent's clock: the end that we give it must not lie ahead
        namespace, name = str(named.get("namespace")), str(named.get("name"))
        if not (is_namespace(namespace) and is_name(name)):
            return workflow_of(Why.BAD_NAME, {}, self._what(one))
        if namespace not in self.policy.forms.namespaces[facts.vertical]:
            return workflow_of(Why.NOT_ALLOWED, {}, self._what(one))
        since = max(one.record.timestamp, facts.ended)
        overdue = now - since >= self.policy.enrichment_wait
        known = self.workflows.known(namespace, name)
        if not overdue and known is not Why.NOT_FOUND and not (isinstance(known, Phase) and known.terminal):
            return None
        async with self._room:
            found = await self.workflows.read(namespace, name, facts.started, facts.ended)
        runs = any(missing.why is Why.NOT_ENDED for missing in found.missing)
        return None if (runs or found.unread) and not overdue else found

    def _what(self, one: Todo) -> str:
        """Return what the trace names, as `proposal_missing` has it."""
        return f"{self.kinds.proposal}/{line(part(one.event, 'proposal').get('name'))}"

    async def _complete(self, one: Todo, workflow: Workflow) -> None:
        """Change the trace in Opik, then publish it: what is published counts as done."""
        facts, trace_id = one.facts, trace_text(one.facts.trace)
        there = None
        if self.policy.write or any(one.event.get(text) is None for text in ("input", "output")):
            there = await self.opik.get(trace_id)
        made = self._made(one, workflow, there or {})
        if there is not None and self.policy.write:
            metadata = there.get("metadata")
            told = {name: made[name] for name in FIELDS if name != "proposal_results"}
            changes = {"output": made["output"], "metadata": {**(metadata or {}), **told}}
            await self.opik.update(trace_id, facts.project, changes)
        await self.publish(one.record.key, orjson.dumps(made))
        self._note_done(facts.trace, time_ms(made["ended_at"], "ended_at", facts.ended + 1, self.policy))
        self.observe(workflow)

    def _note_done(self, trace: bytes, ended: int) -> None:
        """Note that the trace is completed, which its turn says once the join has come so far."""
        self._done[trace] = max(ended, self._done.pop(trace, 0))
        while len(self._done) > REMEMBERED:
            self._done.popitem(last=False)

    def _made(self, one: Todo, workflow: Workflow, there: Mapping[str, Any]) -> dict[str, Any]:
        """Return the completed record, sealed. Raises Unfit where it can't be cut to what a record may have."""
        facts, event = one.facts, one.event
        layout = self.policy.layouts.get(facts.vertical, PLAIN)
        answered = event if event.get("output") is not None else {**event, "output": there.get("output")}
        # An unknown end comes right after the bare record's, so that a completion with a known one counts before it.
        end = max(min(workflow.ended_ms or 0, self.ports.clock.now_ms()), facts.ended + 1)
        asked = event.get("input") if event.get("input") is not None else there.get("input")
        if asked is None and workflow.request:
            asked = said(workflow.request, "user", layout.question)
        made = {**event, "ended_at": datetime.fromtimestamp(end / 1000, UTC).isoformat(timespec="milliseconds")}
        if asked is not None:
            made["input"] = asked
        made |= workflow.fields()
        text = with_own_answer(workflow.summary, own_answer(answered, layout))
        most = min(LARGEST, self.policy.max_record_bytes)
        try:
            return self._fitted(made, text, layout, one, most)
        except orjson.JSONEncodeError as error:
            raise Unfit(Cause.MALFORMED, f"can't be written as JSON: {error}") from error

    def _fitted(self, made: dict[str, Any], text: str, layout: TraceLayout, one: Todo, most: int) -> dict[str, Any]:
        """Return the record with its summary, sealed, in at most so many bytes: without results where it is too large,
        then with the end of the text cut off."""
        whole = self._sealed(made, text, layout)
        if len(orjson.dumps(whole)) <= most:
            return whole
        lacks = [*made["proposal_missing"], {"what": self._what(one), "why": str(Why.TOO_LARGE)}]
        made = {**made, "proposal_results": {}, "proposal_missing": lacks}
        room = most - len(orjson.dumps(self._sealed(made, "", layout)))
        if room < LEAST_TEXT:
            raise Unfit(Cause.TOO_LARGE, f"no room for its workflow in a record of {most} bytes")
        while (size := len(orjson.dumps(text))) > room:
            text = text[: len(text) * room // size - len(CUT) - 1].removesuffix(CUT) + CUT
        return self._sealed(made, text, layout)

    def _sealed(self, made: Mapping[str, Any], text: str, layout: TraceLayout) -> dict[str, Any]:
        return self.policy.forms.seals.sealed({**made, "output": said(text, "assistant", layout.answer)})


def decode_or_new(stored: bytes) -> Turn:
    return decode_turn(stored) if stored else Turn()


def said(text: str, role: str, stated: str | None) -> Any:
    """Return a text as inherited judges read an input or output: as messages; plain where the vertical states a path,
    since names of paths find plain text, too."""
    if stated is not None:
        return text
    content: Any = text if role == "user" else [{"type": "text", "text": text}]
    return {"messages": [{"role": role, "content": content}]}


def own_answer(event: Mapping[str, Any], layout: TraceLayout) -> str:
    """Return what the agent itself answered, as judges would have read it; all of its output where there is none."""
    output = event.get("output")
    if output is None:
        return ""
    with suppress(Unbound):
        return as_text(resolve(place("answer", event, layout), event))
    return as_text(output)
