"""A replay with twins of its parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agents.ports import Unavailable
from schemas.dead_letter_answers import StoredDeadLetter, parse_dead_letter
from schemas.dead_letters import DeadLetter
from schemas.outcomes import Cause, Kind
from streams.dead_letters.replay import Replay
from streams.dead_letters.states import DeadLetterStates
from tests.unit.agents.builders import NOW, Rec, encode
from tests.unit.agents.join.world import AGENTS, World

NAMES = {"thumbs": Kind.THUMBS, "rerolls": Kind.REROLL, "traces": Kind.TRACE}


PARTITIONS = {"rampgate.thumbs": 4, "rampgate.rerolls": 4, "rampgate.traces": 4}


@dataclass
class Log:
    """A producer that remembers, or fails."""

    sent: list[tuple[str, int | None, bytes | None, bytes | None, list[tuple[str, bytes]]]] = field(
        default_factory=list
    )
    broken: bool = False

    async def send(self, messages: Sequence[Any], partitions: Sequence[int | None]) -> list[tuple[str, int, int]]:
        if self.broken:
            raise Unavailable("Kafka producer: gone")
        base = len(self.sent)
        for (topic, key, value, headers), partition in zip(messages, partitions, strict=True):
            self.sent.append((topic, partition, key, value, list(headers)))
        return [(one[0], one[1] or 0, base + n) for n, one in enumerate(self.sent[base:])]


@dataclass
class MemoryLedger:
    done: dict[str, str] = field(default_factory=dict)
    claimed: dict[str, int] = field(default_factory=dict)
    """Identity -> how often it still has to be asked for until the claim lapses."""

    async def replayed(self, identities: Sequence[str]) -> list[str]:
        return [self.done.get(identity, "") for identity in identities]

    async def claim(self, identities: Sequence[str]) -> list[bool | None]:
        out: list[bool | None] = []
        for identity in identities:
            left = self.claimed.get(identity, 0)
            if identity in self.done:
                out.append(False)
            elif left > 0:
                self.claimed[identity] = left - 1
                out.append(None)
            else:
                self.claimed[identity] = 1_000
                out.append(True)
        return out

    async def confirm(self, places: Mapping[str, str]) -> None:
        self.done |= places

    async def release(self, identities: Sequence[str]) -> None:
        for identity in identities:
            del self.claimed[identity]


@dataclass
class Bench:
    world: World = field(default_factory=World)
    log: Log = field(default_factory=Log)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)

    @property
    def states(self) -> DeadLetterStates:
        agents = {name: AGENTS[kind] for name, kind in NAMES.items()}
        world, ledger = self.world, cast(Any, self.ledger)
        return DeadLetterStates(world.topics, agents, world.policy, world.clock, world.store, ledger)

    def replay(self, **options: Any) -> Replay:
        log: Any = self.log
        ledger: Any = self.ledger
        return Replay(log, ledger, self.states, PARTITIONS, **{"rate": 0, **options})

    async def state(self, one: StoredDeadLetter) -> str:
        (status,) = await self.states.of([one])
        return status.state.value


async def chunks(*letters: StoredDeadLetter) -> AsyncGenerator[list[StoredDeadLetter], None]:
    yield list(letters)


def letter(value: Any = b"{bad", topic: str = "rampgate.thumbs", offset: int = 0, **more: Any) -> StoredDeadLetter:
    cause = more.pop("cause", Cause.MALFORMED)
    record = Rec(encode(value), topic, more.pop("partition", 1), offset, key=b"k", **more)
    key, body, headers = DeadLetter(record, cause, "d", "s", NOW).encode(1_000_000)
    return parse_dead_letter(Rec(body, "rampgate.dead-letters", 0, offset, NOW, key, tuple(headers)))
