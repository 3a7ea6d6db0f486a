"""A gate's sample: golden and adversarial items, and traces drawn once from the pools and frozen in Redis (PC5 §5.5).

Frozen means that a gate that is resumed looks at the same items: datasets at the manifest's version, the same traces,
and the candidate's answers as they came. Should Redis be emptied before the verdict, the traces are drawn anew from the
pools that are rebuilt from their topic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from agents.gates.ports import Item, Sample
from agents.keys import FROZEN_SAMPLE, Key
from agents.policy import Policy
from agents.ports import Change, Clock, Store, Unauthorized, Unavailable
from evalcore.gates.composition import (
    ADVERSARIAL,
    GOLDEN,
    Part,
    dataset_version,
    looked,
    of_part,
    parts,
    production_wanted,
    told,
    topped_up,
)
from evalcore.gates.golden import CandidateAnswer, GoldenSet, mismatches, unlike
from evalcore.gates.requests import RampRequest
from evalcore.registry.registry import Registry
from evalcore.scoring.sampling import PooledTrace, fingerprint, share
from schemas.judges import Milestone
from schemas.manifests import Dataset
from schemas.verdicts import Composition, SampleFacts
from streams.gates.candidate_answers import CandidateAnswers
from streams.gates.pooled_traces import Drawn, PooledTraces
from streams.gates.production_inputs import ProductionInputs

NO_ANSWER = "the agent gave no output"
Datasets = Callable[[Dataset], Awaitable[GoldenSet | None]]
"""The dataset at its version, None where Opik has none such. Raises Unavailable and Unauthorized."""


@dataclass
class _Answered:
    """Items that the candidate was run on, by the part they belong to."""

    items: dict[str, list[Item]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


class PooledSamples:
    """The gates' `Samples`. `datasets` and `answers` are used where the manifest names a candidate."""

    def __init__(
        self,
        store: Store,
        traces: PooledTraces,
        policy: Policy,
        clock: Clock,
        datasets: Datasets,
        answers: CandidateAnswers,
    ) -> None:
        self._store, self._traces, self._policy, self._clock = store, traces, policy, clock
        self._datasets, self._answers = datasets, answers
        self._inputs = ProductionInputs(store, traces, policy, clock)

    async def frozen(self, asked: RampRequest, milestone: Milestone, registry: Registry) -> Sample:
        key = FROZEN_SAMPLE.key(milestone, hashlib.sha256(asked.body.encode()).hexdigest()[:32])
        drawn, traces = await self._drawn(key, asked, milestone, registry)
        own = [_item(one) for one in traces]
        lost = drawn["lost"] + len(drawn["members"]) - len(own)
        taking_part = parts(registry, milestone)
        inputs = [bytes.fromhex(trace) for trace in drawn["inputs"]]
        answered = await self._run(asked, registry, taking_part, inputs)
        more = answered.items.pop("", [])
        golden, adversarial = (answered.items.get(name, []) for name in (GOLDEN, ADVERSARIAL))
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
        )
        return Sample(items, facts, tuple(answered.wrong), looked(asked.step, registry, facts, lost))

    async def _drawn(
        self, key: Key, asked: RampRequest, milestone: Milestone, registry: Registry
    ) -> tuple[Any, list[Drawn]]:
        """What is frozen, and its traces."""
        (held,) = await self._store.read([key])
        if not held:
            content, traces = await self._freeze(key, asked, milestone, registry)
            if traces is not None:
                return orjson.loads(content), traces
            held = content
        drawn = orjson.loads(held)
        return drawn, await self._traces.read([PooledTrace.unpack(bytes.fromhex(one)) for one in drawn["members"]])

    async def _freeze(
        self, key: Key, asked: RampRequest, milestone: Milestone, registry: Registry
    ) -> tuple[bytes, list[Drawn] | None]:
        """The traces are None where another one froze theirs first."""
        now, step, sample = self._clock.now_ms(), asked.step, registry.sample
        window, wanted = registry.gates.window_seconds[milestone], production_wanted(registry, milestone)
        version = step.agent_version if sample.scope == "version" else None
        drawn = await self._traces.drawn(step.vertical, step.agent_id, version, window, wanted)
        whole = await self._traces.read(drawn)
        inputs: list[bytes] = []
        if version is not None and sample.candidate is not None and len(whole) < wanted:
            had = {one.candidate.trace for one in whole}
            found = await self._inputs.drawn(step, milestone, registry, wanted)
            inputs = [trace for trace in found if trace not in had][: wanted - len(whole)]
        content = orjson.dumps(
            {
                "scope": sample.scope,
                "members": [one.candidate.pack().hex() for one in whole],
                "inputs": [trace.hex() for trace in inputs],
                "lost": len(drawn) - len(whole),
                "window_seconds": window,
                "frozen_at": datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="milliseconds"),
            }
        )
        change = Change(checks={key: b""}, sets={key: (content, now + self._policy.lookback)})
        if not await self._store.apply(change):
            return content, whole
        (held,) = await self._store.read([key])
        return (held, None) if held else (content, whole)

    async def _run(
        self, asked: RampRequest, registry: Registry, taking_part: Sequence[Part], inputs: Sequence[bytes]
    ) -> _Answered:
        """The candidate on all that it has to answer, at one go."""
        found, endpoint, step = _Answered(), registry.sample.candidate, asked.step
        if endpoint is None:
            return found
        made: list[tuple[str, Mapping[str, Any], Callable[[CandidateAnswer], Item]]] = []
        for part in taking_part:
            golden = await self._dataset(part)
            found.wrong += _wrong(part, golden, registry)
            for number, one in enumerate(golden.items if golden is not None else ()):
                made.append((part.name, one, _of_part(part, one, number, registry, step.vertical)))
        for trace, source in zip(inputs, await self._inputs.read(inputs), strict=True):
            if source is not None:
                made.append(("", told(source), _topped_up(trace, source, step.agent_version)))
        answers = await self._answers.to([asking for _, asking, _ in made], endpoint, step)
        for (name, _, item_of), answer in zip(made, answers, strict=True):
            found.items.setdefault(name, []).append(item_of(answer))
        return found

    async def _dataset(self, part: Part) -> GoldenSet | None:
        try:
            return await self._datasets(part.dataset)
        except Unauthorized as error:
            raise Unavailable(f"the dataset {part.dataset.name!r} can't be read: {error}") from error


def _item(one: Drawn) -> Item:
    known, missing = one.candidate.trace, "" if one.trace["output"] is not None else NO_ANSWER
    return Item(known.hex(), "online", one.trace, share=share(known), missing=missing, digest=one.digest)


def _of_part(
    part: Part, one: Mapping[str, Any], number: int, registry: Registry, vertical: str | None
) -> Callable[[CandidateAnswer], Item]:
    return lambda answer: of_part(part, one, number, answer, registry, vertical)


def _topped_up(trace: bytes, source: Mapping[str, Any], version: str) -> Callable[[CandidateAnswer], Item]:
    return lambda answer: topped_up(trace, source, answer, version)


def _wrong(part: Part, golden: GoldenSet | None, registry: Registry) -> list[str]:
    if golden is None:
        return [f"Opik has no dataset {part.dataset.name!r}, version {part.dataset.version} ({part.field})"]
    if part.name == GOLDEN:
        return list(mismatches(golden, part.dataset, registry))
    return list(unlike(golden, part.dataset, part.field))
