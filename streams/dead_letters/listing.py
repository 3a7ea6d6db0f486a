"""Lists the dead-letter topic: one row for each dead letter, the latest ones kept, all counted."""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime

from schemas.dead_letter_answers import DeadLetterAnswer, DeadLetterList, DeadLetterState, StoredDeadLetter
from schemas.dead_letters import clean
from schemas.outcomes import EXPLANATIONS
from streams.dead_letters.reader import REMEMBERED, Duplicates
from streams.dead_letters.states import DeadLetterStates, Status

NOT_OURS = "Not written by a worker: the header rampgate.cause is missing or unknown."


class Listing:
    """Keeps the rows of the `limit` dead letters that failed last (0: all), without their values."""

    def __init__(self, states: DeadLetterStates, limit: int) -> None:
        self._states, self._limit = states, limit
        self._duplicates = Duplicates()
        self._rows: dict[str, DeadLetterAnswer] = {}
        self._oldest: list[tuple[int, str]] = []
        self._attempts: OrderedDict[str, int] = OrderedDict()
        self._by_cause: Counter[str] = Counter()

    async def read(self, chunks: AsyncGenerator[list[StoredDeadLetter], None]) -> None:
        """Take dead letters in. Raises Unavailable, from the chunks or the states."""
        async with aclosing(chunks):
            async for chunk in chunks:
                fresh = [letter for letter in chunk if not self._again(letter)]
                for letter, status in zip(fresh, await self._states.of(fresh), strict=True):
                    self._keep(letter, status)

    def answer(self, *, states_known: bool) -> DeadLetterList:
        """The list, oldest first. Where a record failed again, its earlier letter was replayed, whatever the ledger
        says."""
        rows = [self._rows[identity] for _, identity in sorted(self._oldest)]
        for row in rows:
            latest = self._attempts.get(row["replay_id"], 0)
            if row["state"] == DeadLetterState.OPEN and latest > row["attempts"]:
                row["state"], row["why"] = DeadLetterState.REPLAYED.value, f"it failed again, as attempt {latest}"
        by_cause = dict(self._by_cause.most_common())
        return DeadLetterList(letters=rows, total=sum(by_cause.values()), by_cause=by_cause, states_known=states_known)

    def _again(self, letter: StoredDeadLetter) -> bool:
        """True where this repeats a dead letter that was taken in; counts copies and attempts."""
        if letter.attempts > 1:
            self._attempts[letter.replay_id] = max(letter.attempts, self._attempts.get(letter.replay_id, 0))
            if len(self._attempts) > REMEMBERED:
                self._attempts.popitem(last=False)
        repeated = self._duplicates.seen(letter)
        if repeated and letter.identity in self._rows:
            self._rows[letter.identity]["copies"] += 1
        return repeated

    def _keep(self, letter: StoredDeadLetter, status: Status) -> None:
        self._by_cause[cause_of(letter)] += 1
        self._rows[letter.identity] = answer_of(letter, status)
        heapq.heappush(self._oldest, (letter.failed_at, letter.identity))
        if self._limit and len(self._oldest) > self._limit:
            del self._rows[heapq.heappop(self._oldest)[1]]


def cause_of(letter: StoredDeadLetter) -> str:
    """The cause as lists show it."""
    return letter.cause.value if letter.cause is not None else "unknown"


def answer_of(letter: StoredDeadLetter, status: Status) -> DeadLetterAnswer:
    """The row of one dead letter."""
    explanation = EXPLANATIONS.get(letter.cause) if letter.cause is not None else None
    value = letter.record.value
    return DeadLetterAnswer(
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
        state=status.state.value,
        why=clean(status.why),
        copies=1,
        means=explanation.means if explanation else NOT_OURS,
        do=explanation.do if explanation else "Find out who writes to the dead-letter topic.",
    )


def iso(ms: int) -> str | None:
    """A time (ms) in ISO 8601; None for what is no time, such as the -1 of a missing header."""
    if not 0 < ms < 253_000_000_000_000:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def printable(content: bytes) -> str:
    """Text in which control characters and what is no UTF-8 are escaped, so that a terminal takes none for a
    command."""
    text = content.decode("utf-8", errors="backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
