"""Dead letters back to the topics they came from, as they came, at a bounded rate (contracts §5, promise 2)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from aiolimiter import AsyncLimiter

from agents.ports import Unavailable
from schemas.dead_letter_answers import MAX_ATTEMPTS, Letter, LetterState
from streams.dead_letters.reader import Doubles
from streams.dead_letters.replay_ledger import ReplayLedger
from streams.dead_letters.states import LetterStates, Standing
from streams.kafka.client import Producer

GROUP = 100
WAIT_SECONDS = 0.5
SHOWN = 1_000
"""So many refused letters are kept for the answer; the rest are counted."""


@dataclass
class Outcome:
    """What became of the letters that matched; doubled ones count once. Refused ones come with the reason."""

    matched: int = 0
    replayed: int = 0
    already: int = 0
    resolved: int = 0
    refused: int = 0
    by_cause: Counter[str] = field(default_factory=Counter)
    by_topic: Counter[str] = field(default_factory=Counter)
    refusals: list[tuple[Letter, Standing]] = field(default_factory=list)


class Replay:
    """One run. `partitions`: partitions of each topic that exists. `rate` in records a second, 0 for no limit.

    May be repeated, and may run beside another one: the ledger lets each letter through once. Raises Unavailable when
    Kafka or Redis goes away; what was confirmed until then stays done, and a repetition takes up the rest.
    """

    def __init__(
        self,
        producer: Producer,
        ledger: ReplayLedger,
        states: LetterStates,
        partitions: Mapping[str, int],
        *,
        rate: float = 200.0,
        max_attempts: int = MAX_ATTEMPTS,
        dry_run: bool = False,
        limit: int = 0,
        observe: Callable[[Outcome], None] = lambda outcome: None,
    ) -> None:
        self._producer, self._ledger, self._states, self._partitions = producer, ledger, states, partitions
        self._max_attempts, self._dry_run, self._limit, self._observe = max_attempts, dry_run, limit, observe
        self._group = max(1, min(GROUP, int(rate / 4))) if rate else GROUP
        self._limiter = AsyncLimiter(self._group, self._group / rate) if rate else None
        self.outcome = Outcome()

    async def run(self, chunks: AsyncGenerator[list[Letter], None]) -> Outcome:
        doubles = Doubles()
        async with aclosing(chunks):
            async for chunk in chunks:
                await self._take([letter for letter in chunk if not doubles.doubled(letter)])
                self._observe(self.outcome)
                if self._full():
                    break
        return self.outcome

    def _full(self) -> bool:
        return bool(self._limit) and self.outcome.replayed >= self._limit

    async def _take(self, letters: Sequence[Letter]) -> None:
        """Sort a chunk by what becomes of each, then send what is open, in order."""
        outcome = self.outcome
        ready: list[Letter] = []
        for letter, standing in zip(letters, await self._states.of(letters), strict=True):
            if self._limit and outcome.replayed + len(ready) >= self._limit:
                break
            outcome.matched += 1
            standing = self._refused(letter, standing)
            if standing.state is LetterState.NOT_REPLAYABLE:
                outcome.refused += 1
                if len(outcome.refusals) < SHOWN:
                    outcome.refusals.append((letter, standing))
            elif standing.state is LetterState.RESOLVED:
                outcome.resolved += 1
            elif standing.state is LetterState.REPLAYED:
                outcome.already += 1
            else:
                ready.append(letter)
        for start in range(0, len(ready), self._group):
            group = ready[start : start + self._group]
            if self._dry_run:
                self._count(group)
            else:
                await self._send(group)
                self._observe(outcome)

    def _refused(self, letter: Letter, standing: Standing) -> Standing:
        if standing.state is not LetterState.OPEN:
            return standing
        if letter.topic not in self._partitions:
            return Standing(LetterState.NOT_REPLAYABLE, f"there is no topic {letter.topic} on these brokers")
        if letter.attempts >= self._max_attempts:
            why = f"it has failed {letter.attempts} times; --max-attempts {letter.attempts + 1} lets it through"
            return Standing(LetterState.NOT_REPLAYABLE, why)
        return standing

    def _count(self, letters: Sequence[Letter]) -> None:
        outcome = self.outcome
        outcome.replayed += len(letters)
        outcome.by_cause.update(str(letter.cause) for letter in letters)
        outcome.by_topic.update(letter.topic for letter in letters)

    async def _send(self, letters: Sequence[Letter]) -> None:
        """Claim, publish, confirm. What another run holds is waited for: it confirms it, or its claim lapses."""
        waiting = list(letters)
        while waiting:
            claims = await self._ledger.claim([letter.identity for letter in waiting])
            ours = [letter for letter, claim in zip(waiting, claims, strict=True) if claim]
            self.outcome.already += claims.count(False)
            if ours:
                await self._publish(ours)
            waiting = [letter for letter, claim in zip(waiting, claims, strict=True) if claim is None]
            if waiting:
                await asyncio.sleep(WAIT_SECONDS)

    async def _publish(self, letters: Sequence[Letter]) -> None:
        messages = [(one.topic, one.record.key, one.record.value, one.replay_headers) for one in letters]
        try:
            if self._limiter is not None:
                await self._limiter.acquire(len(letters))
            places = await self._producer.send(messages, [self._partition(letter) for letter in letters])
        except BaseException:
            # Whether it arrived is unknown; a repetition is harmless, a letter that seems replayed is not.
            with suppress(Unavailable):
                await self._ledger.release([letter.identity for letter in letters])
            raise
        done = {one.identity: "/".join(map(str, at)) for one, at in zip(letters, places, strict=True)}
        await self._ledger.confirm(done)
        self._count(letters)

    def _partition(self, letter: Letter) -> int | None:
        """The one it came from, whatever the producer's partitioner was; by key where that one is gone."""
        return letter.partition if 0 <= letter.partition < self._partitions[letter.topic] else None
