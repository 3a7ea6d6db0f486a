"""Bounds the names that traces make up: verticals nobody registered, and agent versions, first heard of in one hour.

Each vertical has counters of its own and each agent version pools of its own, hour by hour. A producer that makes up a
name for each trace would fill Redis with them, so beyond a bound a new vertical counts as `unregistered`, and a new
agent version has no pool. Registered verticals and names that are known already are never turned away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from agents.codec import TraceFacts
from schemas.verticals import UNREGISTERED

HOUR_MS = 3_600_000
KNOWN_HOURS = 24
"""A name that no trace brought for so long is new again."""


@dataclass
class Names:
    """Names of one sort, each with the hours in which it was first and last heard. Takes at most `most` new ones an
    hour."""

    most: int
    hour: int = -1
    new: int = 0
    heard: dict[str, tuple[int, int]] = field(default_factory=dict)

    def since(self, name: str, now: int) -> int | None:
        """Return the hour in which a name was first heard; None for a new one beyond the bound, which stays unknown."""
        hour = now // HOUR_MS
        if hour > self.hour:
            self.hour, self.new = hour, 0
            self.heard = {known: hours for known, hours in self.heard.items() if hours[1] > hour - KNOWN_HOURS}
        known = self.heard.get(name)
        if known is None:
            if self.new >= self.most:
                return None
            self.new += 1
        first = known[0] if known is not None else hour
        self.heard[name] = first, hour
        return first


@dataclass
class Newcomers:
    """One worker's memory of names. `registered`: the verticals with a file. `refused` is told `vertical` or `agent`
    for each trace whose name was beyond the bound."""

    registered: Collection[str] = ()
    most: int = 1_000
    refused: Callable[[str], None] = lambda sort: None

    def __post_init__(self) -> None:
        self._verticals, self._agents = Names(self.most), Names(self.most)

    def placed(self, facts: TraceFacts, now: int) -> TraceFacts:
        """Return the trace, under the vertical that its turn is counted under. Placed again it stays as it is."""
        vertical = facts.vertical
        ours = not vertical or vertical in self.registered or vertical == UNREGISTERED
        if not ours and self._verticals.since(vertical, now) is None:
            facts.vertical = UNREGISTERED
            self.refused("vertical")
        return facts

    def pooled_since(self, agent: str, version: str, now: int) -> int | None:
        """Return the hour since which traces and scores of this agent version are pooled; None where they are not."""
        since = self._agents.since(f"{len(agent)}:{agent}:{version}", now)
        if since is None:
            self.refused("agent")
        return since
