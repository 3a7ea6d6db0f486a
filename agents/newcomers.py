"""Bounds the names that traces and signals make up, first heard of in one hour: verticals no one registered, and agent
versions.

Each vertical has counters of its own and each agent version pools of its own, hour by hour. A producer that makes up a
name for each trace would fill Redis with them, so beyond a bound a new vertical counts as `unregistered`, and a new
agent version has no pool. Registered verticals and names that are known already are never turned away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agents.codec import SignalEvent, TraceFacts
from agents.keys import KNOWN_NAME, REFUSED, UNNAMED, Key, names_of, spelled
from schemas.verticals import UNREGISTERED

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
KNOWN_HOURS = 24
"""A name that no trace brought for so long is forgotten here."""
Notes = dict[Key, tuple[bytes, int]]
"""Key -> its value, and when it expires (ms since 1970)."""


class Store(Protocol):
    """The part of `agents.ports.Store` that tells which versions are known."""

    async def read(self, keys: Sequence[Key]) -> list[bytes]: ...


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

    def remember(self, name: str, first: int, now: int) -> None:
        """Know a name that was first heard in that hour; it is no new one."""
        known = self.heard.get(name, (first, first))
        self.heard[name] = min(first, known[0]), max(now // HOUR_MS, known[1])

    async def recall(self, names: Mapping[Key, str], store: Store, now: int) -> None:
        """Know those names that the state knows; `names` by their keys."""
        for name, held in zip(names.values(), await store.read([*names]) if names else (), strict=True):
            if held:
                self.remember(name, int(held), now)


def _vertical_key(vertical: str) -> Key:
    return KNOWN_NAME.key(f"vertical {vertical}")


def _whole(agent: str, version: str) -> str:
    return f"{len(agent)}:{agent}:{version}"


@dataclass
class Newcomers:
    """One worker's memory of names. `registered`: the verticals with a file. `refused` is told `vertical` or `agent`
    for each trace or signal whose name was beyond the bound."""

    registered: Collection[str] = ()
    most: int = 1_000
    refused: Callable[[str], None] = lambda sort: None

    def __post_init__(self) -> None:
        self._verticals, self._agents = Names(self.most), Names(self.most)

    async def place(self, found: Collection[TraceFacts], store: Store, now: int, lookback: int) -> Notes:
        """Place traces: each under the vertical and the agent version that its turn is counted under; placed again they
        stay as they are. Return what to store so that their names stay known. Raises Unavailable.

        A name that the state knows is known to this worker too, however many new ones it has heard of this hour.
        """
        versions = {(one.agent, one.agent_version) for one in found if not one.names}
        unheard = {
            KNOWN_NAME.key(spelled(names_of(*one))): _whole(*one)
            for one in versions
            if names_of(*one) != UNNAMED and _whole(*one) not in self._agents.heard
        }
        await self._agents.recall(unheard, store, now)
        notes = await self.place_verticals(found, store, now, lookback)
        for facts in found:
            if not facts.names:
                facts.names = names_of(facts.agent, facts.agent_version)
                if facts.names != UNNAMED and self.pooled_since(facts.agent, facts.agent_version, now) is None:
                    facts.names = REFUSED
            heard = self._agents.heard.get(_whole(facts.agent, facts.agent_version))
            if heard is not None and facts.names not in (UNNAMED, REFUSED):
                notes[KNOWN_NAME.key(spelled(facts.names))] = b"%d" % heard[0], now + lookback + DAY_MS
        return notes

    async def place_verticals(
        self, found: Collection[TraceFacts | SignalEvent], store: Store, now: int, lookback: int
    ) -> Notes:
        """Place traces or signals under the vertical that their turn is counted under; as `place`."""
        strange = [one for one in found if not self._is_ours(one.vertical)]
        known = self._verticals
        unheard = {_vertical_key(one.vertical): one.vertical for one in strange if one.vertical not in known.heard}
        await known.recall(unheard, store, now)
        notes: Notes = {}
        for one in strange:
            if known.since(one.vertical, now) is None:
                one.vertical = UNREGISTERED
                self.refused("vertical")
            else:
                since = known.heard[one.vertical][0]
                notes[_vertical_key(one.vertical)] = b"%d" % since, now + lookback + DAY_MS
        return notes

    def _is_ours(self, vertical: str) -> bool:
        return not vertical or vertical in self.registered or vertical == UNREGISTERED

    def pooled_since(self, agent: str, version: str, now: int) -> int | None:
        """Return the hour since which traces and scores of this agent version are pooled; None where they are not."""
        since = self._agents.since(_whole(agent, version), now)
        if since is None:
            self.refused("agent")
        return since
