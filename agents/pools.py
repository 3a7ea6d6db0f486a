"""Where the traces of an agent version wait to be drawn for a gate (PC5 §5.5)."""

from __future__ import annotations

from agents.counting import HOUR, expiry
from agents.items import TraceFacts
from agents.ports import Cell
from agents.ports import Pool as Members
from agents.steps import Batch
from agents.work import Work
from evalcore.gates.sampling import POOL, Candidate


def pool_cell(vertical: str | None, agent: str, version: str, hour: int) -> Cell:
    """Of one vertical, or of all (None). Lengths come first, so that no two of three free texts read the same."""
    whose = "*:" if vertical is None else f"{len(vertical)}:{vertical}:"
    return f"p:{hour}:{whose}{len(agent)}:{agent}:{version}"


def pool(batch: Batch, facts: TraceFacts, work: Work) -> None:
    """Add a completed trace to the pool of its agent version, vertical and hour. One without an agent is nobody's."""
    if not facts.agent or not facts.agent_version:
        return
    hour = facts.ended // HOUR
    expires = expiry(hour, work.policy.lookback)
    if expires <= work.now:
        return
    one = Candidate(facts.trace, facts.ended, batch.partition, batch.records[facts.index].offset)
    for vertical in (facts.vertical, None):
        cell = pool_cell(vertical, facts.agent, facts.agent_version, hour)
        work.change.pools.setdefault(cell, Members(expires, POOL)).members[one.pack()] = one.number
