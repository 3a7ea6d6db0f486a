"""Pools the turns of each agent version, and each agent's turns from production, for gates to draw from (PC5 §5.5)."""

from __future__ import annotations

from functools import lru_cache

from agents.codec import TraceFacts
from agents.join.batches import Batch
from agents.join.counting import HOUR, expiry
from agents.join.step import StepContext
from agents.join.versions import Came, Standing
from agents.keys import AGENT_TEXT, POOL_EDGE, REFUSED, TURN_POOL, UNNAMED, Key, pool_place, spelled
from agents.ports import Places
from evalcore.scoring.sampling import POOL, PooledTurn, turn_hash

PRODUCTION = frozenset({"", "production", "prod"})
"""Environments whose traces count as production's; a trace that names none counts too."""


def pool(
    batch: Batch, facts: TraceFacts, before: Standing | None, after: Standing | None, context: StepContext
) -> None:
    """Give a turn its place in the pools of its agent version and, from production, of its agent; each by vertical and
    hour. `before` and `after`: the turn's standing as evidence about the version, without this record and with it.

    Every accepted record of an ended trace is pooled, whatever was known of its turn; the last one of the turn counts.
    A trace without an agent or a version belongs to no pool, nor does one of a version beyond the bound on new ones.
    """
    if facts.names in (UNNAMED, REFUSED):
        return
    had = _pools_of(before) if before is not None and before.came == Came.POOLED else ()
    has = _pools_of(after) if after is not None and after.came == Came.POOLED else ()
    if not had and not has:
        return
    counts = has and facts.came == Came.POOLED and after is not None and facts.ended >= after.time
    turn, member = turn_hash(facts.response_id, facts.names), b""
    if counts:
        record = batch.records[facts.index]
        member = PooledTurn(
            turn, facts.ended, facts.trace, batch.partition, record.offset, max(record.timestamp, 0)
        ).pack()
    for keys in had:
        if keys not in has:
            _put(context, keys, turn, True, b"")
    for keys in has if counts else ():
        _put(context, keys, turn, keys in had, member)


def _put(context: StepContext, keys: tuple[Key, Key, int], turn: bytes, had: bool, member: bytes) -> None:
    expires = expiry(keys[2], context.policy.lookback)
    if expires <= context.now:
        return
    found = context.change.places.get(keys[0])
    if found is None:
        found = context.change.places[keys[0]] = Places(keys[1], expires, POOL)
    known = found.turns.get(turn)
    if known is not None:
        had = known[0]  # before this step
        if member and known[1] and not PooledTurn.unpack(member).later(PooledTurn.unpack(known[1])):
            return
    found.turns[turn] = had, member


def _pools_of(standing: Standing) -> tuple[tuple[Key, Key, int], ...]:
    """Return the pools in which the turn has its place: each one's key, its edge's, and its hour."""
    return _pools(standing.names, standing.production, standing.vertical, standing.time // HOUR)


@lru_cache(maxsize=4_096)
def _pools(names: bytes, production: bool, vertical: str, hour: int) -> tuple[tuple[Key, Key, int], ...]:
    whole = spelled(names)
    whose = (whole, whole[:AGENT_TEXT]) if production else (whole,)
    places = [pool_place(named, one, hour) for one in whose for named in (vertical, None)]
    return tuple((TURN_POOL.key(*place), POOL_EDGE.key(*place), hour) for place in places)
