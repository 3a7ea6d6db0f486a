"""Makes a gate's sample: golden and adversarial items, pooled traces, and production inputs that the candidate is run
on where it has too few traces of its own (PC5 §5.5).

A sample is drawn once and frozen in Redis, so a gate that is resumed looks at the same items: datasets at the
manifest's version, the same traces, and the candidate's answers as they came. When Redis is emptied before the verdict,
the traces are drawn again from the pools, which are rebuilt from their topic.

In reading order: `PooledTraces` draws traces and reads them back, `ProductionInputs` keeps what went into traces of
production, `FrozenSamples` puts both together with the datasets.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any
from uuid import UUID

import orjson
from pydantic import TypeAdapter

from agents.codec import loads
from agents.gates.ports import Sample
from agents.join.step import until_recorded
from agents.join.turn import decode_turn
from agents.keys import FROZEN_SAMPLE, KEPT_FORM, PRODUCTION_DRAW, PRODUCTION_INPUT, Key, names_of, turn_keys
from agents.policy import Policy
from agents.ports import Change, Clock, Records, Store, Unauthorized, Unavailable
from evalcore.gates.composition import (
    ADVERSARIAL,
    GOLDEN,
    Drawn,
    Part,
    dataset_version,
    facts_of,
    looked,
    of_part,
    parts,
    production_wanted,
    told,
    topped_up,
    went_in,
)
from evalcore.gates.golden import CandidateAnswer, GoldenSet, mismatches, unlike, with_answer
from evalcore.gates.requests import RampRequest
from evalcore.registry.registry import Registry
from evalcore.remediation.sealing import Form, TraceForms
from evalcore.scoring.items import NO_INPUT, Item, served
from evalcore.scoring.sampling import PooledTurn, draw, fingerprint, share, turn_hash
from schemas.dead_letters import Record
from schemas.judges import Milestone
from schemas.manifests import Dataset, GateDefaults
from schemas.ramp_steps import RampStep
from schemas.verdicts import Composition, SampleFacts, TrafficFacts
from streams.gates.candidate import CandidateAnswers
from streams.gates.traffic import Scope, Window, read_window
from streams.opik.traces import TEXTS

OPIK_LOOKUPS_AT_ONCE = 16
LARGEST_INPUT = 64 * 1024
"""Bytes of what went into a trace; a larger one is not drawn."""
SPARE = 2
"""Times as many traces are looked at as inputs are needed: some are gone from their topic, or have no input."""
INPUTS_AT_ONCE = 100

TraceInOpik = Callable[[str], Awaitable[Mapping[str, Any] | None]]
"""Returns a trace by its id, None where Opik has none. Raises Unavailable."""
StateIsComplete = Callable[[], AbstractAsyncContextManager[None]]
"""Guards a read: the state read inside is complete, or it raises Unavailable (`streams.gates.traffic`)."""
Datasets = Callable[[Dataset], Awaitable[GoldenSet | None]]
"""Returns the dataset at its version, None where Opik has none such. Raises Unavailable and Unauthorized."""


@dataclass
class SampledTrace:
    """A pooled trace and its content, as judges read it. `digest` is the hash of its record, empty where Opik added to
    it, or forged fields were dropped."""

    pooled: PooledTurn
    content: dict[str, Any]
    digest: bytes


@dataclass(eq=False, repr=False)
class PooledTraces:
    """Draws traces from the pools of an agent, and reads them back from their topic and Opik. Raises Unavailable."""

    store: Store
    records: Records
    topic: str
    clock: Clock
    in_opik: TraceInOpik
    forms: TraceForms
    state_is_complete: StateIsComplete = nullcontext
    _opik_lookups: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(OPIK_LOOKUPS_AT_ONCE))

    async def window(self, scope: Scope, window_seconds: int) -> Window:
        """The account of the turns that ended in the last `window_seconds`, and those that may be drawn."""
        # A sample out of half the pools, while they are rebuilt, would be biased: the request waits.
        async with self.state_is_complete():
            return await self._window(scope, self.clock.now_ms(), window_seconds)

    async def with_turns(self, scope: Scope, there: Window, turns: Sequence[Key]) -> Window:
        """The same window as it stands now, and these turns at the same moment."""
        return await self._window(scope, there.until_ms, there.seconds, turns)

    async def _window(self, scope: Scope, now_ms: int, seconds: int, turns: Sequence[Key] = ()) -> Window:
        # A workflow that fails takes longer than one that succeeds: those that have ended by now flatter the agent, so
        # the others are left out, and too many of them are no sample.
        return await read_window(self.store, scope, now_ms, seconds, turns, self.forms.namespaces)

    async def read(self, drawn: Sequence[PooledTurn], scope: Scope) -> list[SampledTrace]:
        """The turns with the content of their last trace. Leaves out those whose record is gone, is another one in its
        place by now, as on a topic that was made again, or whose seal is of no key that is known. What neither the
        record nor Opik has stays missing: a sample without such turns would flatter the agent."""
        records = await self.records.fetch([(self.topic, one.partition, one.offset) for one in drawn])
        pairs = zip(drawn, records, strict=True)
        read = (_of_record(pooled, record, scope, self.forms) for pooled, record in pairs)
        found = [one for one in read if one is not None]
        await asyncio.gather(*(self._complete(one) for one in found if not one.content.keys() >= {*TEXTS}))
        return found

    async def _complete(self, one: SampledTrace) -> None:
        async with self._opik_lookups:
            found = await self.in_opik(str(one.content.get("trace_id"))) or {}
        one.content |= {name: found[name] for name in TEXTS if name in found and name not in one.content}
        one.digest = b""


def _of_record(pooled: PooledTurn, record: Record | None, scope: Scope, forms: TraceForms) -> SampledTrace | None:
    if record is None or record.value is None:
        return None
    try:
        try:
            content = orjson.loads(record.value)
        except orjson.JSONDecodeError:
            content = loads(record.value)  # half a surrogate pair is in it
        metadata, trace = content["metadata"], UUID(content["trace_id"]).bytes
        whose = metadata["agent_id"], scope.version and metadata["agent_version"]
        turn = turn_hash(content["response_id"], names_of(metadata["agent_id"], metadata["agent_version"]))
    except (ValueError, LookupError, TypeError, AttributeError):
        return None  # another topic's record
    if (trace, turn, *whose) != (pooled.trace, pooled.turn, scope.agent, scope.version):
        return None
    form, kept, forged = forms.open(content)
    if form is Form.BARE:
        return None
    digest = b"" if forged else hashlib.blake2b(record.value, digest_size=16).digest()
    return SampledTrace(pooled, {**kept}, digest)


_TRAFFIC = TypeAdapter(TrafficFacts)


class ProductionInputs:
    """Inputs of production that versions of an agent are run on where they have too few traces of their own.

    They are drawn once for `sample.refresh_seconds`, so that versions that ask within that time are run on the same
    inputs. What went into a trace is kept here, since its record may leave the topic before a gate comes back to it.
    Raises Unavailable.
    """

    def __init__(self, store: Store, traces: PooledTraces, policy: Policy, clock: Clock) -> None:
        self._store, self._traces, self._policy, self._clock = store, traces, policy, clock

    async def drawn(self, step: RampStep, milestone: Milestone, registry: Registry, size: int) -> list[bytes]:
        """At most `size` ids of traces of any version, in the order in which they are used. While there are fewer,
        later draws append theirs; earlier ones keep their place."""
        now, refresh = self._clock.now_ms(), registry.sample.refresh_seconds * 1000
        epoch = now // refresh
        drawn_for = [step.agent_id, step.vertical, milestone, refresh, epoch, KEPT_FORM]
        key = PRODUCTION_DRAW.key(hashlib.sha256(orjson.dumps(drawn_for)).hexdigest()[:32])
        expires = (epoch + 1) * refresh + self._policy.lookback

        async def attempt() -> list[bytes] | None:
            (held,) = await self._store.read([key])
            known = [held[at : at + 16] for at in range(0, len(held), 16)]
            new = await self._new(step, milestone, registry, size, known) if len(known) < size else {}
            if not new:
                return known[:size]
            change = Change(checks={key: held}, sets={key: (held + b"".join(new), expires)})
            for trace, content in new.items():
                change.sets[_input_key(trace)] = (content, expires)
            return None if await self._store.apply(change) else [*known, *new]

        return await until_recorded(attempt)

    async def read(self, traces: Sequence[bytes]) -> dict[bytes, dict[str, Any]]:
        """What went into each trace, without those that are gone."""
        held = await self._store.read([_input_key(trace) for trace in traces])
        return {trace: orjson.loads(raw) for trace, raw in zip(traces, held, strict=True) if raw}

    async def _new(
        self, step: RampStep, milestone: Milestone, registry: Registry, size: int, known: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        window = registry.gates.window_seconds[milestone]
        scope = Scope(step.agent_id, None, step.vertical)
        there = await self._traces.window(scope, window)
        new = [one for one in draw(there.drawable, SPARE * size) if one.trace not in frozenset(known)]
        found: dict[bytes, bytes] = {}
        while new and len(found) < size - len(known):
            chunk, new = new[:INPUTS_AT_ONCE], new[INPUTS_AT_ONCE:]
            read = await self._traces.read(chunk, scope)
            found |= {one.pooled.trace: content for one in read if (content := _input_of(one.content))}
        return dict(islice(found.items(), size - len(known)))


def _input_of(trace: dict[str, Any]) -> bytes | None:
    """What went into the trace; None where that is too large, or nested too deep to be sent."""
    try:
        content = orjson.dumps(went_in(trace))
    except orjson.JSONEncodeError:
        return None
    return content if len(content) <= LARGEST_INPUT else None


def _input_key(trace: bytes) -> Key:
    return PRODUCTION_INPUT.key(trace.hex())


@dataclass(eq=False, repr=False)
class FrozenSamples:
    """The gates' `Samples`. `datasets` and `answers` are used where the manifest names a candidate."""

    store: Store
    traces: PooledTraces
    policy: Policy
    clock: Clock
    datasets: Datasets
    answers: CandidateAnswers

    def __post_init__(self) -> None:
        self._inputs = ProductionInputs(self.store, self.traces, self.policy, self.clock)

    async def frozen(self, request: RampRequest, milestone: Milestone, registry: Registry) -> Sample:
        asked = hashlib.sha256(b"%d " % KEPT_FORM + request.body.encode())
        key = FROZEN_SAMPLE.key(milestone, asked.hexdigest()[:32])
        drawn, traces = await self._drawn(key, request.step, milestone, registry)
        own = [_item(one) for one in traces]
        inputs = await self._inputs.read([bytes.fromhex(trace) for trace in drawn["inputs"]])
        traced = [*own, *(Item("", "online", source) for source in inputs.values())]
        # The vertical whose limits hold, also where the request does not name it: so does its golden set.
        vertical = request.step.vertical or served(traced, registry.verticals)
        taking_part = parts(registry, milestone, vertical)
        by_part, wrong = await self._run_candidate(request.step, registry, taking_part, inputs, vertical)
        more, golden, adversarial = (by_part.get(name, []) for name in ("", GOLDEN, ADVERSARIAL))
        items = [*own, *more, *golden, *adversarial]
        facts = SampleFacts(
            scope=drawn["scope"],
            fingerprint=fingerprint(item.id for item in items),
            size=len(items),
            window_seconds=drawn["window_seconds"],
            composition=Composition(len(golden), len(own) + len(more), len(adversarial)),
            frozen_at=drawn["frozen_at"],
            topped_up=len(more),
            dataset_version=dataset_version(taking_part),
            **vars(_TRAFFIC.validate_python(drawn["traffic"])),
        )
        lost = drawn["lost"] + len(drawn["members"]) - len(own)
        shortage = looked(request.step, registry, facts, lost)
        return Sample(items, facts, tuple(wrong), shortage)

    async def _drawn(
        self, key: Key, step: RampStep, milestone: Milestone, registry: Registry
    ) -> tuple[Any, list[SampledTrace]]:
        """What is frozen, and its traces."""
        (content,) = await self.store.read([key])
        if not content:
            content, traces = await self._freeze(key, step, milestone, registry)
            if traces is not None:
                return orjson.loads(content), traces
        drawn = orjson.loads(content)
        members = [PooledTurn.unpack(bytes.fromhex(one)) for one in drawn["members"]]
        return drawn, await self.traces.read(members, _scope(step, drawn["scope"]))

    async def _freeze(
        self, key: Key, step: RampStep, milestone: Milestone, registry: Registry
    ) -> tuple[bytes, list[SampledTrace] | None]:
        """Draw, and keep. The traces are None where another worker froze its sample first: that one holds."""
        now, sample = self.clock.now_ms(), registry.sample
        window, wanted = registry.gates.window_seconds[milestone], production_wanted(registry, milestone, step.vertical)
        scope = _scope(step, sample.scope)
        there = await self.traces.window(scope, window)
        drawn = draw(there.drawable, wanted)
        traces = await self.traces.read(drawn, scope)
        inputs: list[bytes] = []
        if scope.version is not None and sample.candidate is not None and len(traces) < wanted:
            own = {one.pooled.trace for one in traces}
            found = await self._inputs.drawn(step, milestone, registry, wanted)
            inputs = [trace for trace in found if trace not in own][: wanted - len(traces)]
        content = orjson.dumps(
            {
                "scope": sample.scope,
                "members": [one.pooled.pack().hex() for one in traces],
                "inputs": [trace.hex() for trace in inputs],
                "lost": len(drawn) - len(traces),
                "traffic": await self._account(scope, there, len(drawn), traces, registry.gates),
                "window_seconds": window,
                "frozen_at": datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="milliseconds"),
            }
        )
        expires = now + self.policy.lookback
        change = Change(checks={key: b""}, sets={key: (content, expires)})
        if not await self.store.apply(change):
            return content, traces
        (theirs,) = await self.store.read([key])
        return (theirs, None) if theirs else (content, traces)

    async def _account(
        self, scope: Scope, there: Window, drawn: int, traces: Sequence[SampledTrace], gates: GateDefaults
    ) -> TrafficFacts:
        """The window's account. The sample's signals are read in one step with the counts that they are compared with:
        a thumb between two reads would look like a loss."""
        keys = turn_keys(str(one.content["response_id"]) for one in traces)
        then = await self.traces.with_turns(scope, there, keys)
        turns = [decode_turn(stored) for stored in then.turns if stored]
        sampled = {
            "rated": sum(turn.thumbs is not None and turn.thumbs.value != 0 for turn in turns),
            "rerolled": sum(turn.reroll is not None and turn.reroll.value != 0 for turn in turns),
        }
        return facts_of(there.traffic, Drawn(drawn, len(traces), then.population, then.carry, sampled), gates)

    async def _run_candidate(
        self,
        step: RampStep,
        registry: Registry,
        taking_part: Sequence[Part],
        inputs: Mapping[bytes, Mapping[str, Any]],
        vertical: str | None,
    ) -> tuple[dict[str, list[Item]], list[str]]:
        """All that the candidate has to answer, by the part it belongs to ("" for production inputs), and what of the
        datasets is not what the manifest says. Who scores waits for the answers. `inputs`: production's, by their
        traces."""
        by_part: defaultdict[str, list[Item]] = defaultdict(list)
        wrong: list[str] = []
        endpoint = registry.sample.candidate
        if endpoint is None:
            return by_part, wrong
        questions: list[tuple[str, Mapping[str, Any], Callable[[CandidateAnswer], Item]]] = []
        item_of: Callable[[CandidateAnswer], Item]
        for part in taking_part:
            golden = await self._dataset(part)
            wrong += _mismatches(part, golden, registry, vertical)
            for number, one in enumerate(golden.items if golden is not None else ()):
                item_of = partial(of_part, part, one, number, registry=registry, vertical=vertical)
                questions.append((part.name, one, item_of))
        for trace, source in inputs.items():
            item_of = partial(topped_up, trace, source, agent_version=step.agent_version)
            questions.append(("", told(source), item_of))
        answers = await self.answers.to([question for _, question, _ in questions], endpoint, step)
        for (name, _, item_of), answer in zip(questions, answers, strict=True):
            by_part[name].append(with_answer(item_of, answer))
        return by_part, wrong

    async def _dataset(self, part: Part) -> GoldenSet | None:
        try:
            return await self.datasets(part.dataset)
        except Unauthorized as error:
            # One request waits for a key that is mended; `Unauthorized` would stop the worker for all.
            raise Unavailable(f"the dataset {part.dataset.name!r} can't be read: {error}") from error


def _scope(step: RampStep, scope: str) -> Scope:
    return Scope(step.agent_id, step.agent_version if scope == "version" else None, step.vertical)


def _item(one: SampledTrace) -> Item:
    trace, missing = one.pooled.trace, NO_INPUT if one.content.get("input") is None else ""
    return Item(trace.hex(), "online", one.content, share=share(trace), missing=missing, digest=one.digest)


def _mismatches(part: Part, golden: GoldenSet | None, registry: Registry, vertical: str | None) -> list[str]:
    if golden is None:
        return [f"Opik has no dataset {part.dataset.name!r}, version {part.dataset.version} ({part.field})"]
    if part.name == GOLDEN:
        return list(mismatches(golden, registry, vertical))
    return list(unlike(golden, part.dataset, part.field))
