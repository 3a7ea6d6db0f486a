"""Production inputs that versions of an agent are run on where they have too few traces of their own (PC5 §5.5).

Drawn once for a time (`sample.refresh_seconds`), so that versions that ask within it are run on the same ones. What
went into a trace is kept here, as long as somebody may come back to it: its record may leave the topic before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice
from typing import Any

import orjson

from agents.keys import PRODUCTION_DRAW, PRODUCTION_INPUT, Key
from agents.policy import Policy
from agents.ports import Change, Clock, Store
from evalcore.gates.composition import went_in
from evalcore.registry.registry import Registry
from schemas.judges import Milestone
from schemas.ramp_steps import RampStep
from streams.gates.pooled_traces import PooledTraces

LARGEST = 64 * 1024
"""Bytes of what went into a trace; a larger one is not drawn."""
SPARE = 2
"""Times as many are looked at as are needed: some may be gone from their topic, or be no inputs."""
AT_ONCE = 100
TRIES = 5


class ProductionInputs:
    """Raises Unavailable."""

    def __init__(self, store: Store, traces: PooledTraces, policy: Policy, clock: Clock) -> None:
        self._store, self._traces, self._policy, self._clock = store, traces, policy, clock

    async def drawn(self, step: RampStep, milestone: Milestone, registry: Registry, size: int) -> list[bytes]:
        """Ids of traces of any version, at most `size`, in the order in which they are taken. While there are fewer,
        later ones come behind; those that were drawn stay where they are."""
        now, sample = self._clock.now_ms(), registry.sample
        refresh = sample.refresh_seconds * 1000
        epoch = now // refresh
        whose = hashlib.sha256(orjson.dumps([step.agent_id, step.vertical, milestone, refresh, epoch])).hexdigest()
        key, until = PRODUCTION_DRAW.key(whose[:32]), (epoch + 1) * refresh + self._policy.lookback
        for _ in range(TRIES):
            (held,) = await self._store.read([key])
            known = [held[at : at + 16] for at in range(0, len(held), 16)]
            if len(known) >= size:
                break
            new = await self._new(step, milestone, registry, size, known)
            if not new:
                break
            change = Change(checks={key: held}, sets={key: (held + b"".join(new), until)})
            change.sets |= {_key(trace): (content, until) for trace, content in new.items()}
            if not await self._store.apply(change):
                return [*known, *new]
        return known[:size]

    async def read(self, traces: Sequence[bytes]) -> list[dict[str, Any] | None]:
        """What went in, in order; None for what is gone."""
        held = await self._store.read([_key(trace) for trace in traces])
        return [orjson.loads(content) if content else None for content in held]

    async def _new(
        self, step: RampStep, milestone: Milestone, registry: Registry, size: int, known: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        had, window = frozenset(known), registry.gates.window_seconds[milestone]
        drawn = await self._traces.drawn(step.vertical, step.agent_id, None, window, SPARE * size)
        new = [one for one in drawn if one.trace not in had]
        found: dict[bytes, bytes] = {}
        while new and len(found) < size - len(known):
            these, new = new[:AT_ONCE], new[AT_ONCE:]
            read = await self._traces.read(these)
            found |= {one.candidate.trace: content for one in read if (content := _kept(one.trace))}
        return dict(islice(found.items(), size - len(known)))


def _kept(trace: dict[str, Any]) -> bytes | None:
    """What went in; None where that is too large, or nested too deep to be sent to anybody."""
    try:
        content = orjson.dumps(went_in(trace))
    except orjson.JSONEncodeError:
        return None
    return content if len(content) <= LARGEST else None


def _key(trace: bytes) -> Key:
    return PRODUCTION_INPUT.key(trace.hex())
