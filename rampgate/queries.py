"""Answers queries of the state, for the command line and HTTP alike: checks them, bounds their time, types the answers.

A query's parameters are text. A wrong one is a BadQuery, which the command line and HTTP each word in their own way.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from agents.ports import Unavailable
from rampgate.console import BadQuery
from rampgate.wiring import AGENTS, Parts
from schemas.answers import Conservation, CoverageAnswer, TurnView
from schemas.dead_letter_answers import DeadLetterList
from schemas.outcomes import Cause
from schemas.settings import parse_moment, parse_seconds
from schemas.topics import PRODUCED, Topics, consumed
from streams.dead_letters.listing import Listing
from streams.dead_letters.reader import DeadLetterFilter, read_dead_letters
from streams.dead_letters.replay_ledger import ReplayLedger
from streams.dead_letters.states import DeadLetterStates
from streams.queries.audit import Audit
from streams.queries.conservation import conservation
from streams.queries.coverage import coverage
from streams.queries.turn_view import PURPOSES, TurnNotFound, view_turn, without_text

T = TypeVar("T")
LONGEST_ID = 512
SEARCHES_AT_ONCE = 1
"""Readers queue for Opik one by one, because they share its small search budget with the join."""
DEAD_LETTER_SECONDS = 30.0
DAY_MS = 86_400_000


class DeadLetterQuery(NamedTuple):
    """The parameters that select dead letters, as given; None selects nothing."""

    cause: Sequence[str] | None = None
    since: str | None = None
    until: str | None = None
    topic: Sequence[str] | None = None
    key: str | None = None
    stage: str | None = None
    replay_id: str | None = None


class Queries:
    """Raises BadQuery, TurnNotFound, Unauthorized, and Unavailable for a part that is silent for `seconds`."""

    def __init__(self, parts: Parts, seconds: float = 10.0) -> None:
        self._parts, self._seconds = parts, seconds
        self._searching = asyncio.Semaphore(SEARCHES_AT_ONCE)
        self._reading_dead_letters = asyncio.Lock()
        self._audit = Audit(parts.producer, parts.topics.audit, parts.clock)

    def window(self, text: str | None) -> int:
        """A window in whole seconds; by default the lookback window, because nothing older is kept."""
        longest = int(self._parts.settings.lookback_seconds)
        if text is None or not text.strip():
            return longest
        try:
            seconds = parse_seconds(text)
        except ValueError as error:
            raise BadQuery(str(error), "window") from error
        if seconds > longest:
            raise BadQuery(
                f"{seconds} s is longer than the lookback window of {longest} s, which is all we keep", "window"
            )
        return seconds

    async def coverage(self, vertical: str | None = None, window: str | None = None) -> CoverageAnswer:
        parts = self._parts
        seconds = self.window(window)
        now = parts.clock.now_ms()
        return await self._bounded("Redis", coverage(parts.store, now, seconds, parts.verticals, vertical or None))

    async def conservation(self, window: str | None = None) -> Conservation:
        parts = self._parts
        seconds = self.window(window)
        job = conservation(parts.store, parts.clock.now_ms(), seconds, parts.policy.future)
        return await self._bounded("Redis", job)

    async def turn(self, response_id: str, purpose: str | None, caller: str) -> TurnView:
        """PS-5's `reconstruct`. A read for evaluation is audited, found or not, before its answer leaves; any other is
        answered without the user's and the agent's words."""
        purpose = purpose or "feedback"
        if purpose not in PURPOSES:
            raise BadQuery(f"{purpose[:32]!r} is none of {', '.join(PURPOSES)}", "purpose")
        if not 0 < len(response_id) <= LONGEST_ID:
            raise BadQuery(f"response_id: give 1 to {LONGEST_ID} characters")
        try:
            view = await self._bounded("Opik or Redis", self._view(response_id))
        except TurnNotFound:
            if purpose == "eval":
                await self._record_read(caller, response_id, None)
            raise
        if purpose != "eval":
            return without_text(view)
        await self._record_read(caller, response_id, view)
        return view

    async def dead_letters(self, query: DeadLetterQuery, limit: int) -> DeadLetterList:
        """The last `limit` dead letters that match. One query at a time, since each reads the topic from end to end.

        Raises Unavailable also where that takes longer than half a minute.
        """
        parts = self._parts
        wanted = dead_letter_filter(parts.topics, query)
        listing = Listing(dead_letter_states(parts, with_redis=True), limit)
        try:
            async with asyncio.timeout(DEAD_LETTER_SECONDS), self._reading_dead_letters:
                topic, seal = parts.topics["dead-letters"], await parts.sealing()
                await listing.read(read_dead_letters(parts.access, topic, wanted, seal=seal))
        except TimeoutError as error:
            raise Unavailable(
                f"reading the dead letters took longer than {DEAD_LETTER_SECONDS:g} s; ask for fewer"
            ) from error
        return listing.answer(states_known=True)

    async def _view(self, response_id: str) -> TurnView:
        async with self._searching:
            parts = self._parts
            return await view_turn(response_id, parts.store, parts.opik.traces, parts.policy.layouts)

    async def _record_read(self, caller: str, response_id: str, view: TurnView | None) -> None:
        found = [response_id] if view is not None else []
        query = {"response_id": response_id}
        record = self._audit.read(caller, "eval", query, view.vertical if view is not None else None, found)
        try:
            await self._bounded("the audit topic", record)
        except Unavailable as error:
            raise Unavailable(f"the read can't be audited, so there is no answer: {error}") from error

    async def _bounded(self, part: str, job: Coroutine[Any, Any, T]) -> T:
        try:
            return await asyncio.wait_for(job, self._seconds)
        except TimeoutError as error:
            raise Unavailable(f"{part} gave no answer within {self._seconds:g} s") from error


def dead_letter_filter(topics: Topics, query: DeadLetterQuery) -> DeadLetterFilter:
    """The filter that the parameters mean. Raises BadQuery naming the parameter that is wrong."""
    known = {cause.value: cause for cause in Cause}
    for cause in query.cause or ():
        if cause not in known:
            raise BadQuery(f"{cause[:64]!r} is no cause; there are {', '.join(known)}", "cause")
    return DeadLetterFilter(
        causes=frozenset(known[cause] for cause in query.cause or ()),
        topics=frozenset(full_topic_name(topics, name) for name in query.topic or ()),
        key=query.key,
        stage=query.stage,
        replay_id=parse_replay_id(query.replay_id) if query.replay_id is not None else None,
        since=_moment(query.since, "since"),
        until=_moment(query.until, "until"),
    )


def _moment(text: str | None, parameter: str) -> int | None:
    try:
        return parse_moment(text) if text is not None else None
    except ValueError as error:
        raise BadQuery(str(error), parameter) from None


def full_topic_name(topics: Topics, name: str) -> str:
    """The name with the prefix where it is the short name of one of our topics; any other name unchanged."""
    return topics[name] if name in consumed() + PRODUCED else name


def parse_replay_id(text: str) -> str:
    """The id in its canonical spelling. Raises BadQuery for a text that is no UUID."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        reason = f"{text[:64]!r} is no replay id (a UUID); `rampgate dead-letters list` has them"
        raise BadQuery(reason, "replay_id") from None


def dead_letter_ledger(parts: Parts) -> ReplayLedger:
    return ReplayLedger(parts.store, 2 * parts.policy.lookback + DAY_MS)


def dead_letter_states(parts: Parts, *, with_redis: bool) -> DeadLetterStates:
    """The states of dead letters, from Redis and the letters, or from the letters alone."""
    store, ledger = (parts.store, dead_letter_ledger(parts)) if with_redis else (None, None)
    agents: Any = AGENTS
    return DeadLetterStates(parts.topics, agents, parts.policy, parts.clock, store, ledger)
