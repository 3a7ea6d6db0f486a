"""A DynamoDB stream, a ledger and a Kafka that live in memory, with the faults that the real ones have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.policy import Attributes
from agents.ports import Unavailable
from schemas.dead_letters import Headers
from streams.dynamodb.client import Described, Expired, Gone, Trimmed
from streams.dynamodb.feed import Feed, Pace
from streams.dynamodb.ledger import Ledger
from streams.dynamodb.shards import Place, Shard, decode_place
from streams.metrics import Metrics
from tests.memory_ports import ManualClock

ARN = "arn:aws:dynamodb:x:0:table/thumbs/stream/one"
NOW = 1_800_000_000_000


def change(sequence: int, response_id: str = "r", at_ms: int = NOW) -> dict[str, Any]:
    image = {"MessageId": {"S": f"m-{response_id}"}, "ResponseId": {"S": response_id}, "Thumbs": {"S": "up"}}
    return {
        "eventID": f"e{sequence}",
        "eventName": "INSERT",
        "dynamodb": {
            "Keys": {"MessageId": image["MessageId"]},
            "NewImage": image,
            "SequenceNumber": str(sequence),
            "ApproximateCreationDateTime": at_ms / 1000,
        },
    }


@dataclass
class FakeStream:
    """Shards of records. An iterator is `<shard>|<position>`; `errors` are raised by the next calls, in order."""

    shards: dict[str, Shard] = field(default_factory=dict)
    log: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    trimmed: dict[str, int] = field(default_factory=dict)
    page: int = 2
    ended: bool = False
    arn: str = ARN
    errors: list[Exception] = field(default_factory=list)
    expired: set[str] = field(default_factory=set)
    opened: list[tuple[str, str | None]] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)

    def shard(self, name: str, sequences: Sequence[int], *, parent: str | None = None, closed: bool = False) -> None:
        self.shards[name] = Shard(name, parent, str(min(sequences, default=0)), closed)
        self.log[name] = [change(number) for number in sequences]

    async def latest_stream(self) -> str:
        self._fail()
        return self.arn

    async def describe(self, arn: str) -> Described:
        self._fail()
        if arn != self.arn:
            raise Gone(arn)
        return Described(list(self.shards.values()), self.ended)

    async def iterator(self, arn: str, shard_id: str, after: str | None) -> str:
        self._fail()
        self.opened.append((shard_id, after))
        first = self.trimmed.get(shard_id, 0)
        if after is None:
            return f"{shard_id}|{first}"
        numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in self.log[shard_id]]
        at = sum(number <= int(after) for number in numbers)
        if at < first or (first and at == 0):
            raise Trimmed(shard_id)
        return f"{shard_id}|{at}"

    async def records(self, iterator: str) -> tuple[list[Any], str | None]:
        self._fail()
        if iterator in self.expired:
            self.expired.discard(iterator)
            raise Expired(iterator)
        shard_id, _, at = iterator.partition("|")
        if shard_id not in self.shards:
            raise Gone(shard_id)
        if int(at) < self.trimmed.get(shard_id, 0):
            raise Trimmed(shard_id)
        self.reads.append(shard_id)
        records = self.log[shard_id][int(at) : int(at) + self.page]
        following = int(at) + len(records)
        if self.shards[shard_id].closed and following >= len(self.log[shard_id]):
            return records, None
        return records, f"{shard_id}|{following}"

    def _fail(self) -> None:
        if self.errors:
            raise self.errors.pop(0)


class FakeLedger(Ledger):
    """One Redis for several feeds: give them the same `shared`."""

    def __init__(self, owner: str = "a", shared: FakeLedger | None = None, lease_ms: int = 300) -> None:
        self.owner, self.lease_ms = owner, lease_ms
        self.held: dict[str, str] = shared.held if shared else {}
        self.raw: dict[str, bytes] = shared.raw if shared else {}
        self.found: list[dict[str, Any]] = shared.found if shared else []
        self.known: list[str] = shared.known if shared else []

    async def stream(self) -> str | None:
        return self.known[-1] if self.known else None

    async def set_stream(self, arn: str) -> None:
        self.known.append(arn)

    async def places(self, arn: str) -> dict[str, Place]:
        return {shard: decode_place(raw) for shard, raw in self.raw.items() if raw}

    async def hold(self, arn: str, shard_id: str, known: bytes, new: bytes) -> bytes | None:
        place = self.raw.get(shard_id, b"")
        if self.held.get(shard_id, self.owner) != self.owner:
            return None
        if known != b"*" and place not in (b"", known):
            return None
        self.held[shard_id] = self.owner
        if new:
            self.raw[shard_id] = new
        return self.raw.get(shard_id, b"")

    async def release(self, arn: str, shard_id: str) -> None:
        if self.held.get(shard_id) == self.owner:
            del self.held[shard_id]

    async def forget(self, arn: str, shards: list[str]) -> None:
        for shard in shards:
            self.raw.pop(shard, None)

    async def add_gap(self, gap: dict[str, Any]) -> None:
        self.found.insert(0, gap)

    async def gaps(self) -> list[dict[str, Any]]:
        return self.found


@dataclass
class FakeKafka:
    """`down` makes that many sends fail; `watch` is called before each."""

    sent: list[tuple[str, bytes | None, bytes | None, Headers]] = field(default_factory=list)
    down: int = 0
    ledgers_seen: list[bytes] = field(default_factory=list)
    ledger: FakeLedger | None = None

    async def send(self, messages: Sequence[Any]) -> None:
        if self.down:
            self.down -= 1
            raise Unavailable("no broker")
        if self.ledger is not None:
            self.ledgers_seen.append(next(iter(self.ledger.raw.values()), b""))
        self.sent.extend(messages)

    @property
    def sequences(self) -> list[int]:
        import json

        return [int(json.loads(message[2] or b"")["dynamodb"]["SequenceNumber"]) for message in self.sent]


def feed(stream: FakeStream, kafka: FakeKafka, ledger: FakeLedger, *, once: bool = True, polls: int = 16) -> Feed:
    pace = Pace(idle=0.001, look=0.002, describe=0.0, polls=polls, once=once)
    return Feed(stream, ledger, kafka, "thumbs", Attributes(), ManualClock(NOW), Metrics(), pace)
