"""The answer to "what lies in the dead-letter topic": one row a letter, newest kept, everything counted."""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime

from schemas.dead_letter_answers import Letter, LetterAnswer, LetterList, LetterState
from schemas.dead_letters import clean
from schemas.outcomes import EXPLANATIONS
from streams.dead_letters.reader import REMEMBERED, Doubles
from streams.dead_letters.states import LetterStates, Standing

NOT_OURS = "Not written by a worker: the header rampgate.cause is missing or unknown."


class Listing:
    """Keeps the rows of the `limit` letters that failed last (0: all), without their values."""

    def __init__(self, states: LetterStates, limit: int) -> None:
        self._states, self._limit = states, limit
        self._doubles = Doubles()
        self._rows: dict[str, LetterAnswer] = {}
        self._oldest: list[tuple[int, str]] = []
        self._attempts: OrderedDict[str, int] = OrderedDict()
        self._by_cause: Counter[str] = Counter()

    async def read(self, chunks: AsyncGenerator[list[Letter], None]) -> None:
        """Raises Unavailable, from the chunks or the states."""
        async with aclosing(chunks):
            async for chunk in chunks:
                fresh = [letter for letter in chunk if not self._again(letter)]
                for letter, standing in zip(fresh, await self._states.of(fresh), strict=True):
                    self._keep(letter, standing)

    def answer(self, *, states_known: bool) -> LetterList:
        """Oldest first. Where a record failed again, its earlier letter was replayed, whatever the ledger says."""
        rows = [self._rows[identity] for _, identity in sorted(self._oldest)]
        for row in rows:
            latest = self._attempts.get(row["replay_id"], 0)
            if row["state"] == LetterState.OPEN and latest > row["attempts"]:
                row["state"], row["why"] = LetterState.REPLAYED.value, f"it failed again, as attempt {latest}"
        by_cause = dict(self._by_cause.most_common())
        return LetterList(letters=rows, total=sum(by_cause.values()), by_cause=by_cause, states_known=states_known)

    def _again(self, letter: Letter) -> bool:
        if letter.attempts > 1:
            self._attempts[letter.replay_id] = max(letter.attempts, self._attempts.get(letter.replay_id, 0))
            if len(self._attempts) > REMEMBERED:
                self._attempts.popitem(last=False)
        doubled = self._doubles.doubled(letter)
        if doubled and letter.identity in self._rows:
            self._rows[letter.identity]["copies"] += 1
        return doubled

    def _keep(self, letter: Letter, standing: Standing) -> None:
        self._by_cause[cause_of(letter)] += 1
        self._rows[letter.identity] = answer_of(letter, standing)
        heapq.heappush(self._oldest, (letter.failed_at, letter.identity))
        if self._limit and len(self._oldest) > self._limit:
            del self._rows[heapq.heappop(self._oldest)[1]]


def cause_of(letter: Letter) -> str:
    return letter.cause.value if letter.cause is not None else "unknown"


def answer_of(letter: Letter, standing: Standing) -> LetterAnswer:
    said = EXPLANATIONS.get(letter.cause) if letter.cause is not None else None
    value = letter.record.value
    return LetterAnswer(
        replay_id=letter.replay_id,
        place=letter.place,
        topic=clean(letter.topic),
        partition=letter.partition,
        offset=letter.offset,
        key=printable(letter.record.key) if letter.record.key is not None else None,
        timestamp=iso(letter.timestamp),
        failed_at=iso(letter.failed_at) or "",
        attempts=letter.attempts,
        cause=cause_of(letter),
        detail=letter.detail,
        stage=letter.stage,
        size=len(value) if value is not None else None,
        state=standing.state.value,
        why=clean(standing.why),
        copies=1,
        means=said.means if said else NOT_OURS,
        do=said.do if said else "Find out who writes to the dead-letter topic.",
    )


def iso(ms: int) -> str | None:
    """None for what is no time, such as the -1 of a missing header."""
    if not 0 < ms < 253_000_000_000_000:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def printable(content: bytes) -> str:
    """Text with control characters and what is no UTF-8 escaped, so that nothing reaches a terminal as a command."""
    text = content.decode("utf-8", errors="backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
