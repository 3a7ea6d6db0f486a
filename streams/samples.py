"""A gate's sample: drawn once from the pools, frozen in Redis, its traces read from the topic they came on (PC5 §5.5).

Frozen means that a gate that is resumed looks at the same traces. Should Redis be emptied before the verdict, the
sample is drawn anew from the pools that are rebuilt from the topic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from agents.counting import HOUR
from agents.gate_ports import Item, Sample
from agents.policy import Policy
from agents.pools import pool_cell
from agents.ports import Cell, Change, Clock, Records, Store, Unavailable
from evalcore.gates.requests import Asked
from evalcore.gates.sampling import Candidate, draw, fingerprint, share
from evalcore.registry import Registry
from schemas.judges import Milestone
from schemas.verdicts import Composition, SampleFacts

NO_ANSWER = "the agent gave no output"
SCOPE = "version"
"""Traces of the very agent version that asks to ramp, from any environment."""
PRODUCTION = {Milestone.PRE_RAMP: 200, Milestone.PRE_FULL: 600}
"""Traces drawn, unless the manifest's minimum is larger."""


class PooledSamples:
    """The gates' `Samples`."""

    def __init__(
        self,
        store: Store,
        records: Records,
        topic: str,
        policy: Policy,
        clock: Clock,
        rebuilding: Callable[[], bool] = lambda: False,
    ) -> None:
        """`rebuilding`: are the pools being made anew? Nothing is drawn from half of them; the request waits."""
        self._store, self._records, self._topic = store, records, topic
        self._policy, self._clock, self._rebuilding = policy, clock, rebuilding

    async def frozen(self, asked: Asked, milestone: Milestone, registry: Registry) -> Sample:
        cell = f"f:{milestone}:{hashlib.sha256(asked.body.encode()).hexdigest()[:32]}"
        (held,) = await self._store.read([cell])
        if not held:
            held = await self._freeze(cell, asked, milestone, registry)
        content = orjson.loads(held)
        candidates = [Candidate.unpack(bytes.fromhex(member)) for member in content["members"]]
        items = await self._items(candidates)
        lost = len(candidates) - len(items)
        step = asked.step
        facts = SampleFacts(
            scope=SCOPE,
            fingerprint=fingerprint(item.id for item in items),
            size=len(items),
            window_seconds=content["window_seconds"],
            composition=Composition(production=len(items)),
            frozen_at=content["frozen_at"],
        )
        shortage = (
            f"traces of {step.agent_id} {step.agent_version} that ended in the last {content['window_seconds']} s"
            f"{f' under {step.vertical}' if step.vertical else ''}"
            + (f"; {lost} of those drawn are no longer on their topic, or carry no input and output" if lost else "")
        )
        return Sample(items, facts, shortage=shortage)

    async def _freeze(self, cell: Cell, asked: Asked, milestone: Milestone, registry: Registry) -> bytes:
        if self._rebuilding():
            raise Unavailable("the pools of traces are being made anew from their topic")
        now = self._clock.now_ms()
        window = registry.gates.window_seconds[milestone]
        size = max(PRODUCTION[milestone], registry.gates.minimum_sample[milestone])
        step = asked.step
        since = now - window * 1000
        hours = range(since // HOUR, now // HOUR + 1)
        cells = [pool_cell(step.vertical, step.agent_id, step.agent_version, hour) for hour in hours]
        drawn = draw(await self._store.pools(cells), since, now, size)
        content = orjson.dumps(
            {
                "members": [one.pack().hex() for one in drawn],
                "window_seconds": window,
                "frozen_at": datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="milliseconds"),
            }
        )
        change = Change(checks={cell: b""}, sets={cell: (content, now + self._policy.lookback)})
        if await self._store.apply(change):
            (held,) = await self._store.read([cell])
            return held or content
        return content

    async def _items(self, candidates: Sequence[Candidate]) -> list[Item]:
        places = [(self._topic, one.partition, one.offset) for one in candidates]
        out = []
        for one, record in zip(candidates, await self._records.fetch(places), strict=True):
            source = _source(record.value) if record is not None and record.value is not None else None
            if source is not None:
                missing = "" if source["output"] is not None else NO_ANSWER
                out.append(Item(one.trace.hex(), "online", source, share=share(one.trace), missing=missing))
        return out


def _source(value: bytes) -> dict[str, Any] | None:
    """The trace, if its record carries what was said. An output of null is carried: the agent gave none, and a sample
    without such turns would be one of the good ones."""
    found = orjson.loads(value)
    return found if isinstance(found, dict) and found.get("input") is not None and "output" in found else None
