"""Turns whose trace now carries our own judge scores: coverage counts only those (PF-9 FR-11, contracts §2).

That a live trace was judged, and where its record is; one small key a trace, for the lookback.

What live judges said of each agent version, by the hour and bounded, for who watches the floors (PC5 §5.7).

Each version of a judge has its own: what a bad rubric said is no longer held against an agent once the rubric was
rolled back, and what the good one had said before counts again.

Of an hour with more scores than a pool keeps, those with the lowest numbers of their traces are kept; what is read of a
window is then cut at the lowest of the full pools' highest numbers, so that it is uniform over the window.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from agents.join.counting import HOUR, expiry
from agents.join.step import StepContext, record
from agents.join.step_data import ATTEMPTS, exhausted
from agents.keys import LIVE_MARK, LIVE_SCORE_INDEX, LIVE_SCORE_POOL, Key, turn_keys
from agents.policy import Policy
from agents.ports import Change, Pool, Ports, Store
from evalcore.gates.regression import Watched
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answer, NotApplicable, Scored, Unscored, collect
from evalcore.scoring.applicability import weight
from evalcore.scoring.sampling import POOL, PooledTrace
from evalcore.yaml.suggestions import UnknownJudge

_MARK_LAYOUT = struct.Struct(">?Iq")


class Mark(NamedTuple):
    """`voted_down`: judged by all its judges, whatever their rates. No record for a trace that was read from Opik."""

    voted_down: bool
    partition: int = 0
    offset: int = -1

    def pack(self) -> bytes:
        return _MARK_LAYOUT.pack(*self)


def mark_key(trace: bytes) -> Key:
    return LIVE_MARK.key(trace.hex())


async def read_marks(store: Store, traces: Sequence[bytes]) -> dict[bytes, Mark]:
    found = await store.read([mark_key(trace) for trace in traces]) if traces else []
    return {trace: Mark(*_MARK_LAYOUT.unpack(mark)) for trace, mark in zip(traces, found, strict=True) if mark}


KINDS = 2_000
"""Of judge version, vertical and agent version together, in an hour."""
_SCORE_LAYOUT = struct.Struct(">16sd")


def keep(change: Change, now: int, lookback: int, trace: bytes, judge: Judge, said: Any, answer: Answer) -> None:
    """`said` are the trace's metadata. A trace without an agent is nobody's."""
    if isinstance(answer, NotApplicable) or not isinstance(said, Mapping):
        return
    agent, version, vertical = (said.get(name) for name in ("agent_id", "agent_version", "vertical"))
    if not (agent and version and isinstance(agent, str) and isinstance(version, str)):
        return
    hour = now // HOUR
    expires = expiry(hour, lookback)
    kind = orjson.dumps([judge.id, judge.version, vertical if isinstance(vertical, str) else None, agent, version])
    index = change.pools.setdefault(LIVE_SCORE_INDEX.key(hour), Pool(expires, KINDS))
    index.members[kind] = 0
    pool = change.pools.setdefault(_pool_key(hour, kind), Pool(expires, POOL))
    value = answer.value if isinstance(answer, Scored) else math.nan
    pool.members[_SCORE_LAYOUT.pack(trace, value)] = _number(trace)


async def watched(store: Store, registry: Registry, now: int, window: int) -> list[Watched]:
    """Of the window's hours, the running one included, what the judges said as they are now. Raises Unavailable."""
    hours = range((now - window) // HOUR + 1, now // HOUR + 1)
    kinds = await store.pools([LIVE_SCORE_INDEX.key(hour) for hour in hours])
    keys = [(kind, hour) for hour, found in zip(hours, kinds, strict=True) for kind in found]
    pools = await store.pools([_pool_key(hour, kind) for kind, hour in keys])
    by_key: dict[tuple[str, str | None, str, str], tuple[Judge, list[list[bytes]]]] = {}
    for (kind, _), pool in zip(keys, pools, strict=True):
        name, judge_version, vertical, agent, version = orjson.loads(kind)
        try:
            judge = registry.judge(name, vertical)
        except UnknownJudge:
            continue
        if judge.version == judge_version:
            # Verticals that the registry does not know see the platform's judge: theirs are one judge's scores.
            by_key.setdefault((judge.id, judge.vertical, agent, version), (judge, []))[1].append(pool)
    out = []
    for (_, _, agent, version), (judge, found) in by_key.items():
        values = _uniform(found)
        marks = await read_marks(store, list(values))
        answers: list[Answer] = []
        for trace, value in values.items():
            mark = marks.get(trace)
            weighs = _weight(judge, mark is not None and mark.voted_down)
            answers.append(Scored(value, weighs) if math.isfinite(value) else Unscored("unscored", weighs))
        out.append(Watched(judge, agent, version, collect(answers, judge.score_range)))
    return out


def _uniform(pools: Sequence[Sequence[bytes]]) -> dict[bytes, float]:
    limit = min((_number(pool[-1][:16]) for pool in pools if len(pool) >= POOL), default=None)
    found: dict[bytes, float] = {}
    for pool in pools:
        for member in pool:
            trace, value = _SCORE_LAYOUT.unpack(member)
            # One that was judged again after its model was away has both.
            if (limit is None or _number(trace) <= limit) and not math.isfinite(found.get(trace, math.nan)):
                found[trace] = value
    return found


def _weight(judge: Judge, voted_down: bool) -> float:
    """A judge whose rate has become 0 since still has its scores from before."""
    return weight(judge, voted_down) if voted_down or judge.safety or judge.rule.sampling_rate else 1.0


def _pool_key(hour: int, kind: bytes) -> str:
    return LIVE_SCORE_POOL.key(hour, kind.decode())


def _number(trace: bytes) -> int:
    return PooledTrace(trace, 0, 0, 0).number


async def note_judged(response_ids: Sequence[str], ports: Ports, policy: Policy) -> None:
    """Raises Unavailable. A turn that the join does not know, or whose trace it does not, is left alone: it asks Opik
    for judge scores when it learns of the trace."""
    ids = list(dict.fromkeys(response_ids))
    for _ in range(ATTEMPTS):
        context = StepContext(ports.clock.now_ms(), policy)
        context.load(ids, await ports.store.read(turn_keys(ids)))
        for snapshot in context.turns.values():
            if snapshot.turn.trace and not snapshot.turn.judged:
                snapshot.turn.judged, snapshot.touched = 1, True
        if await record(context, ports):
            return
    raise exhausted()
