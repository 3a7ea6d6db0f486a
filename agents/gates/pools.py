"""Pools the traces of each agent version, and each agent's production traces, for gates to draw from (PC5 §5.5)."""

from __future__ import annotations

from agents.codec import TraceFacts
from agents.join.counting import HOUR, expiry
from agents.join.step import Batch, StepContext
from agents.keys import pool_key
from agents.newcomers import Newcomers
from agents.ports import Pool as Members
from evalcore.scoring.sampling import POOL, PooledTrace

PRODUCTION = frozenset({"", "production", "prod"})
"""Environments whose traces count as production's; a trace that names none counts too."""


def pool(batch: Batch, facts: TraceFacts, context: StepContext, newcomers: Newcomers) -> None:
    """Add a completed trace to the pools of its agent version and, from production, of its agent; each by vertical and
    hour. A trace without an agent or a version belongs to no pool, nor does one of an agent version beyond the bound on
    new ones."""
    if not facts.agent or not facts.agent_version:
        return
    hour = facts.ended // HOUR
    expires = expiry(hour, context.policy.lookback)
    if expires <= context.now:
        return
    if newcomers.pooled_since(facts.agent, facts.agent_version, context.now) is None:
        return
    one = PooledTrace(facts.trace, facts.ended, batch.partition, batch.records[facts.index].offset)
    member, number = one.pack(), one.number
    for version in (facts.agent_version, None) if facts.production else (facts.agent_version,):
        for vertical in (facts.vertical, None):
            key = pool_key(vertical, facts.agent, version, hour)
            found = context.change.pools.get(key)
            if found is None:
                found = context.change.pools[key] = Members(expires, POOL)
            found.members[member] = number
