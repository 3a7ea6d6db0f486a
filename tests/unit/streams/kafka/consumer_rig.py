"""Our consumer as Faust runs it, over a log in memory: no broker and no thread of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import IllegalStateError, NotCoordinatorForGroupError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata
from faust.types import TP

from streams.app import RampgateApp
from streams.kafka.transport import BatchConsumer
from tests.unit.agents.builders import Rec

TOPIC = "rampgate.thumbs"
PLACE = TP(TOPIC, 0)


class Broker:
    """One group's view of Kafka: logs, positions, committed offsets. Takes the place of the consumer's thread."""

    beacon = None  # of a service that is never started

    def __init__(self, held: Iterable[TP] = (PLACE,)) -> None:
        self.held = set(held)
        self.logs: dict[TP, list[Rec]] = {}
        self.position: dict[TP, int] = dict.fromkeys(self.held, 0)
        self.first: dict[TP, int] = dict.fromkeys(self.held, 0)
        """The first offset that the log still has; a fetch of an earlier one is out of range."""
        self.committed: dict[TP, int] = {}
        self.commits: list[dict[TP, int]] = []
        self.noted: dict[TP, str] = {}
        """The metadata of committed offsets."""
        self.refuses = 0
        """How many commits of notes fail."""
        self.accepts = True
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        """Runs once while the next fetch or the next look at committed offsets is under way."""
        self._coordinator = SimpleNamespace(
            member_id="member", _performed_join_prepare=False, fetch_committed_offsets=self._fetch_committed
        )

    @property
    def _subscription(self) -> Any:
        places = {tp: SimpleNamespace(has_valid_position=True, position=at) for tp, at in self.position.items()}
        assignment = SimpleNamespace(tps=self.held, state_value=places.get)
        return SimpleNamespace(subscription=SimpleNamespace(assignment=assignment))

    def append(self, *offsets: int, tp: TP = PLACE) -> None:
        self.logs.setdefault(tp, []).extend(Rec(b"{}", tp.topic, tp.partition, offset) for offset in offsets)

    # What the consumer's thread does.

    def _ensure_consumer(self) -> Broker:
        return self

    async def call_thread(self, call: Callable[[], Awaitable[Any]]) -> Any:
        return await call()

    def seek(self, tp: TP, offset: int) -> None:
        if tp not in self.held:
            raise IllegalStateError(f"No current assignment for partition {tp}")  # as aiokafka has it
        self.position[tp] = offset

    def assignment(self) -> set[TP]:
        return set(self.held)

    async def seek_to_committed(self) -> dict[TP, int]:
        assert self.held, "No partitions are currently assigned"  # as aiokafka has it
        asked = set(self.held)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        for tp in asked - self.held:
            raise IllegalStateError(f"No current assignment for partition {tp}")
        found = {tp: self.committed.get(tp, 0) for tp in self.held}
        self.position.update(found)
        return found

    async def getmany(self, active: set[TP] | None, timeout: float) -> dict[TP, list[Any]]:
        found: dict[TP, list[Any]] = {}
        for tp in sorted(self.held):
            if active and tp not in active:  # aiokafka takes an empty set for all
                continue
            if self.position[tp] < self.first[tp]:
                raise OffsetOutOfRangeError({TopicPartition(*tp): self.position[tp]})
            records = [record for record in self.logs.get(tp, []) if record.offset >= self.position[tp]]
            if records:
                self.position[tp] = records[-1].offset + 1
                found[tp] = [Fetched(record) for record in records]
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return found

    async def _fetch_committed(self, asked: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        held = [tp for tp in asked if TP(*tp) in self.committed]
        return {tp: OffsetAndMetadata(self.committed[TP(*tp)], self.noted.get(TP(*tp), "")) for tp in held}

    async def commit(self, offsets: Mapping[Any, Any]) -> bool:
        """With notes as our own calls of aiokafka's client have them, without as Faust's."""
        notes = {TP(*tp): one.metadata for tp, one in offsets.items() if isinstance(one, OffsetAndMetadata)}
        offsets = {TP(*tp): one.offset if isinstance(one, OffsetAndMetadata) else one for tp, one in offsets.items()}
        if notes and self.refuses:
            self.refuses -= 1
            raise NotCoordinatorForGroupError
        if self.accepts:
            self.noted.update(dict.fromkeys(offsets, "") | notes)
        self.commits.append(dict(offsets))
        if self.accepts:
            self.committed.update(offsets)
        return self.accepts


class Fetched:
    """A record as aiokafka hands it over."""

    def __init__(self, record: Rec) -> None:
        self.topic, self.partition, self.offset = record.topic, record.partition, record.offset
        self.timestamp, self.timestamp_type = record.timestamp, 0
        self.key, self.value, self.headers = record.key, record.value, record.headers
        self.checksum = None
        self.serialized_key_size = self.serialized_value_size = 0


class Consumer(BatchConsumer):
    def _new_consumer_thread(self) -> Any:
        return self.app.broker_in_memory


class Rig:
    """A consumer that holds `broker`'s partitions. `start` says where a partition is read from."""

    def __init__(self, broker: Broker | None = None, batch_records: int = 2) -> None:
        self.broker = broker or Broker()
        self.starts: dict[TP, int] = {}
        self.asked: list[tuple[TP, int | None, int | None]] = []
        self._folder = tempfile.TemporaryDirectory(prefix="rampgate-test-")
        app: Any = RampgateApp("group", broker="kafka://127.0.0.1:1", autodiscover=False, datadir=self._folder.name)
        app.start_of_partition, app.start_offsets = (
            self._start,
            SimpleNamespace(doubts={}, clean={}, new_logs=set(), quarantine=SimpleNamespace(release=lambda tp: None)),
        )
        app.batch_records, app.broker_in_memory = batch_records, self.broker
        self.begun: dict[TP, int] = {}
        self.clean_at_start: dict[TP, int] = {}
        app.begun_to = lambda tp: self.begun.get(tp, 0)
        app.topics._acking_topics.add(TOPIC)
        self.app = app
        self.consumer = Consumer(app.transport, self._ignore, self._ignore, self._ignore)
        self.consumer._set_active_tps(self.broker.held)

    async def start(self) -> None:
        await self.consumer.perform_seek()

    async def fetch(self) -> list[Any]:
        """The messages of one fetch, tracked as Faust tracks them until they are acknowledged."""
        out = []
        async for _, message in self.consumer.getmany(0.0):
            self.consumer.track_message(message)
            out.append(message)
        return out

    async def commit(self) -> dict[TP, int]:
        """Commits what may be committed; returns what the group has committed then."""
        await self.consumer.commit()
        return dict(self.broker.committed)

    async def _start(self, tp: TP, committed: int | None, settled: int | None) -> int:
        self.asked.append((tp, committed, settled))
        self.clean_at_start.update(self.app.start_offsets.clean)
        return self.starts.get(tp, committed or 0)

    async def _ignore(self, *args: Any) -> None:
        pass
