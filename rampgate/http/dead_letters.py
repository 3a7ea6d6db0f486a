"""`/dead-letters`: what `rampgate dead-letters list --json` answers, with the same filters as query parameters."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agents.ports import Unavailable
from rampgate.cli.jobs.dead_letters import letter_filter, make_states
from rampgate.console import Failure
from rampgate.queries import BadQuestion
from rampgate.wiring import Parts
from streams.dead_letters.listing import Listing
from streams.dead_letters.reader import read_letters

KNOWN = ("cause", "since", "until", "topic", "key", "stage", "replay_id", "limit")
MOST = 1_000
SECONDS = 30.0


class Letters:
    """Reads the topic for each question, one question at a time, since each costs a pass over it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._lock = asyncio.Lock()

    async def list(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Raises BadQuestion, or Unavailable also where the pass takes longer than half a minute."""
        strange = sorted(set(asked) - set(KNOWN))
        if strange:
            raise BadQuestion(f"no such parameter: {', '.join(strange)[:100]}; there are {', '.join(KNOWN)}")
        limit = asked.get("limit", str(MOST))
        if not limit.isdecimal() or not 0 < int(limit) <= MOST:
            raise BadQuestion(f"limit: give 1 to {MOST}")
        try:
            wanted = letter_filter(
                self._parts.topics,
                several(asked, "cause"),
                asked.get("since"),
                asked.get("until"),
                several(asked, "topic"),
                asked.get("key"),
                asked.get("stage"),
                asked.get("replay_id"),
            )
        except Failure as error:
            raise BadQuestion(str(error)) from error
        listing = Listing(make_states(self._parts, True), int(limit))
        try:
            async with asyncio.timeout(SECONDS), self._lock:
                await listing.read(read_letters(self._parts.access, self._parts.topics["dead-letters"], wanted))
        except TimeoutError as error:
            raise Unavailable(f"reading the dead letters took longer than {SECONDS:g} s; ask for fewer") from error
        return dict(listing.answer(states_known=True))


def several(asked: Mapping[str, str], name: str) -> list[str] | None:
    """Values separated by commas."""
    return [part for part in asked.get(name, "").split(",") if part] or None
