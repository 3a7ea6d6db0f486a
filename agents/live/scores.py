"""Keeps what live judges said: a mark a judged trace, and scores by agent version and hour for the watch over floors
(PC5 §5.7).

Each judge version has scores of its own: those of a bad rubric no longer count against an agent once the rubric was
rolled back, and those of the good one count again. A pool is bounded: of an hour with more scores it keeps those of the
traces with the lowest numbers. What is read of a window is cut at the lowest of the full pools' highest numbers, so
that it is a uniform sample of the window.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from agents.join.change_turns import change_turns
from agents.join.counting import HOUR, expiry
from agents.join.step import StepContext
from agents.join.step_data import Refused
from agents.keys import LIVE_MARK, LIVE_SCORE_INDEX, LIVE_SCORE_POOL, Key
from agents.policy import Policy
from agents.ports import Change, Pool, Ports, Store
from evalcore.gates.regression import Watched, distinct, person
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answer, NotApplicable, Scored, Unscored, collect
from evalcore.scoring.applicability import kept_weight
from evalcore.scoring.sampling import POOL, number_of
from evalcore.yaml.suggestions import UnknownJudge

_MARK_LAYOUT = struct.Struct(">?Iq")


class Mark(NamedTuple):
    """Says that a trace was judged, and where its record is (offset -1 for a trace read from Opik). `voted_down`: by
    all its judges, whatever their rates."""

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
"""At most so many combinations of judge version, vertical and agent version are kept in an hour; those of the agent
versions that were heard of first, so that made-up ones displace none."""
_SCORE_LAYOUT = struct.Struct(">16sd")
_WHOSE = 4
"""Bytes of a user's and of a session's hash behind the score of a trace below a safety judge's floor, and behind no
other: enough to tell a few users from one, too few to find one by."""


class _Kept(NamedTuple):
    """A kept score, NaN where there is none; hashes of its user and session, where they are kept and known."""

    value: float
    user: bytes = b""
    session: bytes = b""


def keep(
    change: Change,
    now: int,
    lookback: int,
    trace: bytes,
    judge: Judge,
    metadata: Any,
    answer: Answer,
    since: int,
) -> None:
    """Add an answer to the pools of `change`. `metadata` is the trace's, which has an agent and a version. `since`: the
    hour in which the agent version was first heard of."""
    if isinstance(answer, NotApplicable):
        return
    agent, version, vertical = (metadata.get(name) for name in ("agent_id", "agent_version", "vertical"))
    hour = now // HOUR
    expires = expiry(hour, lookback)
    kind = orjson.dumps([judge.id, judge.version, vertical if isinstance(vertical, str) else None, agent, version])
    index = change.pools.setdefault(LIVE_SCORE_INDEX.key(hour), Pool(expires, KINDS))
    index.members[kind] = since
    pool = change.pools.setdefault(_pool_key(hour, kind), Pool(expires, POOL))
    value = answer.value if isinstance(answer, Scored) else math.nan
    member = _SCORE_LAYOUT.pack(trace, value)
    if judge.safety and value < judge.floor:
        member += _hash(metadata.get("user_id")) + _hash(metadata.get("session_id"))
    pool.members[member] = _number(trace)


def _hash(name: Any) -> bytes:
    """Return a hash of a user's or a session's name; zeros where there is none."""
    if not (known := person(name)):
        return bytes(_WHOSE)
    return hashlib.sha256(known.encode(errors="surrogatepass")).digest()[:_WHOSE]


async def watched(store: Store, registry: Registry, now: int, window: int) -> list[Watched]:
    """Return the window's scores of the judges at their present version, the running hour included. Raises
    Unavailable."""
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
            # Verticals that the registry does not know share the platform's judge, and so its scores.
            by_key.setdefault((judge.id, judge.vertical, agent, version), (judge, []))[1].append(pool)
    out = []
    for (_, _, agent, version), (judge, found) in by_key.items():
        values = _uniform(found)
        marks = await read_marks(store, list(values))
        answers: list[Answer] = []
        for trace, (value, _, _) in values.items():
            mark = marks.get(trace)
            weighs = kept_weight(judge, mark is not None and mark.voted_down)
            answers.append(Scored(value, weighs) if math.isfinite(value) else Unscored("unscored", weighs))
        low = [one for one in values.values() if one.value < judge.floor]
        users = distinct((one.user for one in low if one.user), bytes(_WHOSE))
        sessions = distinct((one.session for one in low if one.session), bytes(_WHOSE))
        out.append(Watched(judge, agent, version, collect(answers, judge.score_range), users, sessions))
    return out


def _uniform(pools: Sequence[Sequence[bytes]]) -> dict[bytes, _Kept]:
    limit = min((_number(pool[-1][:16]) for pool in pools if len(pool) >= POOL), default=None)
    found: dict[bytes, _Kept] = {}
    for pool in pools:
        for member in pool:
            trace, value = _SCORE_LAYOUT.unpack_from(member)
            whose = member[_SCORE_LAYOUT.size :]
            # A trace that was judged again after its model was away has both values.
            if (limit is None or _number(trace) <= limit) and not math.isfinite(found.get(trace, _NONE).value):
                found[trace] = _Kept(value, whose[:_WHOSE], whose[_WHOSE:])
    return found


_NONE = _Kept(math.nan)


def _pool_key(hour: int, kind: bytes) -> str:
    return LIVE_SCORE_POOL.key(hour, kind.decode())


def _number(trace: bytes) -> int:
    return number_of(blake2b(trace, digest_size=8, person=b"sample").digest())


async def note_judged(response_ids: Sequence[str], ports: Ports, policy: Policy) -> None:
    """Note that these turns' traces carry judge scores, since coverage counts only those (PF-9 FR-11, contracts §2).

    A turn without a known trace stays as it is: it asks Opik for judge scores once its trace is known. Raises
    Unavailable.
    """

    async def merge(context: StepContext) -> list[Refused]:
        for snapshot in context.turns.values():
            if snapshot.turn.trace and not snapshot.turn.judged:
                snapshot.turn.judged, snapshot.touched = 1, True
        return []

    await change_turns(list(dict.fromkeys(response_ids)), ports, policy, merge)
