"""Questions about the state, as the command line and HTTP both ask them: checked, bounded in time, answered typed.

What can be wrong with a question, whoever is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from agents.ports import Unavailable
from rampgate.wiring import Parts
from schemas.answers import Conservation, CoverageAnswer, TurnView
from schemas.settings import parse_seconds
from streams.queries.audit import Audit
from streams.queries.conservation import conservation
from streams.queries.coverage import coverage
from streams.queries.turn_view import PURPOSES, TurnNotFound, view_turn


class BadQuestion(ValueError):
    """The question can't be asked like this; the message says how."""


T = TypeVar("T")
LONGEST_ID = 512
SEARCHES_AT_ONCE = 1
"""Readers share Opik's small search budget with the join, so they queue for it one by one."""


class Answers:
    """Raises BadQuestion, TurnNotFound, Unauthorized, and Unavailable for a part that is silent for `seconds`."""

    def __init__(self, parts: Parts, seconds: float = 10.0) -> None:
        self._parts, self._seconds = parts, seconds
        self._searching = asyncio.Semaphore(SEARCHES_AT_ONCE)
        self._audit = Audit(parts.producer, parts.topics.audit, parts.clock)

    def window(self, text: str | None) -> int:
        """Whole seconds; the lookback window where none is asked for, since nothing older is kept."""
        longest = int(self._parts.settings.lookback_seconds)
        if text is None or not text.strip():
            return longest
        try:
            seconds = parse_seconds(text)
        except ValueError as error:
            raise BadQuestion(f"window: {error}") from error
        if seconds > longest:
            raise BadQuestion(
                f"window: {seconds} s is longer than the lookback window of {longest} s, which is all we keep"
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
        """PS-5's `reconstruct`. A read for evaluation is audited, found or not, before its answer leaves."""
        purpose = purpose or "feedback"
        if purpose not in PURPOSES:
            raise BadQuestion(f"purpose: {purpose[:32]!r} is none of {', '.join(PURPOSES)}")
        if not 0 < len(response_id) <= LONGEST_ID:
            raise BadQuestion(f"response_id: give 1 to {LONGEST_ID} characters")
        try:
            view = await self._bounded("Opik or Redis", self._look(response_id))
        except TurnNotFound:
            if purpose == "eval":
                await self._audited(caller, response_id, None)
            raise
        if purpose == "eval":
            await self._audited(caller, response_id, view)
        return view

    async def _look(self, response_id: str) -> TurnView:
        async with self._searching:
            return await view_turn(response_id, self._parts.store, self._parts.opik.traces)

    async def _audited(self, caller: str, response_id: str, view: TurnView | None) -> None:
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
