"""Sends dead letters back to the topics they came from, as they came, at a bounded rate (contracts §5, promise 2)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import KW_ONLY, dataclass, field

from aiolimiter import AsyncLimiter

from agents.ports import Unavailable
from schemas.dead_letter_answers import MAX_ATTEMPTS, DeadLetterState, StoredDeadLetter
from streams.dead_letters.reader import Duplicates
from streams.dead_letters.replay_ledger import ReplayLedger
from streams.dead_letters.states import DeadLetterStates, Status
from streams.kafka.client import Producer

GROUP = 100
WAIT_SECONDS = 0.5
SHOWN = 1_000
"""Refused dead letters that are kept for the answer; the rest are counted."""


@dataclass
class ReplayResult:
    """How many dead letters matched, and what became of them; repeated ones count once."""

    matched: int = 0
    replayed: int = 0
    already: int = 0
    resolved: int = 0
    refused: int = 0
    by_cause: Counter[str] = field(default_factory=Counter)
    by_topic: Counter[str] = field(default_factory=Counter)
    refusals: list[tuple[StoredDeadLetter, Status]] = field(default_factory=list)


@dataclass
class Replay:
    """One run. `partitions`: number of partitions of each topic that exists. `rate`: records a second, 0 for no limit.

    A run may be repeated and may run beside another: the ledger lets each dead letter through once. Raises Unavailable
    where Kafka or Redis fails; what was confirmed until then remains done, and a repeated run sends the rest.
    """

    producer: Producer
    ledger: ReplayLedger
    states: DeadLetterStates
    partitions: Mapping[str, int]
    _: KW_ONLY
    rate: float = 200.0
    max_attempts: int = MAX_ATTEMPTS
    dry_run: bool = False
    limit: int = 0
    observe: Callable[[ReplayResult], None] = lambda result: None
    result: ReplayResult = field(default_factory=ReplayResult)

    def __post_init__(self) -> None:
        self._group = max(1, min(GROUP, int(self.rate / 4))) if self.rate else GROUP
        self._limiter = AsyncLimiter(self._group, self._group / self.rate) if self.rate else None

    async def run(self, chunks: AsyncGenerator[list[StoredDeadLetter], None]) -> ReplayResult:
        duplicates = Duplicates()
        async with aclosing(chunks):
            async for chunk in chunks:
                await self._take([letter for letter in chunk if not duplicates.seen(letter)])
                self.observe(self.result)
                if self._full():
                    break
        return self.result

    def _full(self) -> bool:
        return bool(self.limit) and self.result.replayed >= self.limit

    async def _take(self, letters: Sequence[StoredDeadLetter]) -> None:
        """Sort a chunk by state, then send the open ones, in order."""
        result = self.result
        ready: list[StoredDeadLetter] = []
        for letter, status in zip(letters, await self.states.of(letters), strict=True):
            if self.limit and result.replayed + len(ready) >= self.limit:
                break
            result.matched += 1
            status = self._refused(letter, status)
            if status.state is DeadLetterState.NOT_REPLAYABLE:
                result.refused += 1
                if len(result.refusals) < SHOWN:
                    result.refusals.append((letter, status))
            elif status.state is DeadLetterState.RESOLVED:
                result.resolved += 1
            elif status.state is DeadLetterState.REPLAYED:
                result.already += 1
            else:
                ready.append(letter)
        for start in range(0, len(ready), self._group):
            group = ready[start : start + self._group]
            if self.dry_run:
                self._count(group)
            else:
                await self._send(group)
                self.observe(result)

    def _refused(self, letter: StoredDeadLetter, status: Status) -> Status:
        """The status, or not replayable where an open dead letter has no topic to go to or failed too often."""
        if status.state is not DeadLetterState.OPEN:
            return status
        if letter.topic not in self.partitions:
            return Status(DeadLetterState.NOT_REPLAYABLE, f"there is no topic {letter.topic} on these brokers")
        if letter.attempts >= self.max_attempts:
            why = f"it has failed {letter.attempts} times; --max-attempts {letter.attempts + 1} lets it through"
            return Status(DeadLetterState.NOT_REPLAYABLE, why)
        return status

    def _count(self, letters: Sequence[StoredDeadLetter]) -> None:
        result = self.result
        result.replayed += len(letters)
        result.by_cause.update(str(letter.cause) for letter in letters)
        result.by_topic.update(letter.topic for letter in letters)

    async def _send(self, letters: Sequence[StoredDeadLetter]) -> None:
        """Claim, publish and confirm. Waits for what another run has claimed: that run confirms it, or its claim
        expires."""
        waiting = list(letters)
        while waiting:
            claims = await self.ledger.claim([letter.identity for letter in waiting])
            ours = [letter for letter, claim in zip(waiting, claims, strict=True) if claim]
            self.result.already += claims.count(False)
            if ours:
                await self._publish(ours)
            waiting = [letter for letter, claim in zip(waiting, claims, strict=True) if claim is None]
            if waiting:
                await asyncio.sleep(WAIT_SECONDS)

    async def _publish(self, letters: Sequence[StoredDeadLetter]) -> None:
        messages = [(one.topic, one.record.key, one.record.value, one.replay_headers) for one in letters]
        try:
            if self._limiter is not None:
                await self._limiter.acquire(len(letters))
            places = await self.producer.send(messages, [self._partition(letter) for letter in letters])
        except BaseException:
            # It is unknown whether these arrived; a repetition does no harm, a dead letter that seems replayed does.
            with suppress(Unavailable):
                await self.ledger.release([letter.identity for letter in letters])
            raise
        done = {one.identity: "/".join(map(str, at)) for one, at in zip(letters, places, strict=True)}
        await self.ledger.confirm(done)
        self._count(letters)

    def _partition(self, letter: StoredDeadLetter) -> int | None:
        """The partition it came from, whatever the producer's partitioner was; None, by key, where that is gone."""
        return letter.partition if 0 <= letter.partition < self.partitions[letter.topic] else None
