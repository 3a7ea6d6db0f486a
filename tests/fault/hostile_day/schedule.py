"""Seeded faults: which, when, to whom, for how long. The same seed gives the same schedule."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

KINDS: dict[str, tuple[int, float, float]] = {
    # kind: (weight, shortest, longest seconds it lasts)
    "kill a worker": (8, 0.0, 0.0),
    "restart a worker in good order": (5, 0.0, 0.0),
    "stop a worker for a moment": (5, 0.1, 0.8),
    "stop a worker beyond its session": (4, 2.5, 4.0),
    "stop a worker beyond its session, then kill it": (3, 2.5, 3.5),
    "empty Redis": (3, 0.0, 0.0),
    "put an older copy of Redis back": (3, 0.0, 0.0),
    "kill Redis, which comes back empty": (1, 0.3, 1.0),
    "stop Redis": (2, 0.3, 2.0),
    "cut Redis": (3, 0.0, 0.0),
    "delay Redis": (2, 0.5, 2.0),
    "refuse Redis": (2, 0.3, 1.5),
    "cut Kafka": (3, 0.0, 0.0),
    "delay Kafka": (2, 0.5, 2.0),
    "refuse Kafka": (2, 0.3, 1.5),
    "change leaders": (3, 4.0, 5.0),
    "move leaders back": (2, 0.0, 0.0),
    "cut Opik": (3, 0.0, 0.0),
    "delay Opik": (2, 0.3, 1.5),
    "refuse Opik": (2, 0.3, 1.5),
    "Opik answers 503, applied or not": (3, 0.5, 2.0),
    "Opik applies late": (5, 1.0, 2.5),
}
"""`Opik applies late` lasts so long, and its writes are applied once `LATE` has passed since they came."""
LATE = (2.2, 5.0)
"""Above the workers' timeout of a call to Opik, which is two seconds."""
GAP = (0.3, 1.4)
LOSSES = frozenset(("empty Redis", "put an older copy of Redis back", "kill Redis, which comes back empty"))
"""What takes from Redis what it had."""
LEADERS = ("change leaders", "move leaders back")


@dataclass(frozen=True)
class Fault:
    """`after`: seconds since the one before began. `whom`: which of several, by remainder. `late`: seconds until a
    write is applied."""

    number: int
    kind: str
    after: float
    seconds: float
    whom: int
    late: float

    def __str__(self) -> str:
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind}{lasting}"


def schedule(seed: int, count: int, without: Sequence[str] = ()) -> Iterator[Fault]:
    """`count` faults of all kinds but `without`."""
    dice = random.Random(seed)
    kinds = [kind for kind in KINDS if kind not in without]
    weights = [KINDS[kind][0] for kind in kinds]
    for number in range(count):
        (kind,) = dice.choices(kinds, weights)
        _, shortest, longest = KINDS[kind]
        yield Fault(
            number, kind, dice.uniform(*GAP), dice.uniform(shortest, longest), dice.randrange(6), dice.uniform(*LATE)
        )
