"""Where a partition is read from, and which of its records may have been written without being recorded."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pytest
from faust.types import TP

from agents.join.batches import Batch, watermark
from agents.keys import LET_THROUGH, TAKEOVER
from agents.ports import Change, Unavailable
from schemas.answers import Balance
from schemas.outcomes import Kind
from schemas.topics import Topics
from streams.kafka.start_offsets import Gaps, StartOffsets
from streams.kafka.transport import in_doubt
from streams.metrics import Metrics
from streams.queries.conservation import conservation
from tests.memory_ports import ManualClock, MemoryStore

PLACE = TP("rampgate.thumbs", 0)
KEY = "w2:rampgate.thumbs:0"
IN_FLIGHT = 100
FOREVER = 1 << 46


class Log:
    """A partition with records from `first` up to `end`, those from `recent` on within the lookback window."""

    def __init__(self, end: int) -> None:
        self.first, self.recent, self.end = 0, 0, end
        self.topic_id = ""

    async def first_after(self, moments: dict[TP, int]) -> dict[TP, int | None]:
        found = {tp: self.recent if moment else self.first for tp, moment in moments.items()}
        return {tp: offset if offset < self.end else None for tp, offset in found.items()}

    async def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return dict.fromkeys(topics, self.topic_id) if self.topic_id else {}

    async def bounds(self, tps: list[TP]) -> dict[TP, tuple[int, int]]:
        return dict.fromkeys(tps, (self.first, self.end))


class Place:
    """StartOffsets over a store that may hold a watermark."""

    def __init__(self, mark: int | None, end: int = 1_000) -> None:
        self.store, self.log, self.losses = MemoryStore(ManualClock()), Log(end), 0
        self.again: list[tuple[bytes, int]] = []
        self.metrics = Metrics()
        self.gaps = Gaps(Topics(), self.metrics, 60_000)
        self.start_offsets = StartOffsets(self.store, ManualClock(), 60_000, IN_FLIGHT, self, self.gaps)
        self.stand(mark)

    def stand(self, mark: int | None) -> None:
        self.store.flush()
        if mark is not None:
            self.store.values[KEY] = (str(mark).encode(), FOREVER)

    async def join(self) -> bool:
        return False

    async def read_again(self, tp: TP, until: int) -> None:
        (mark,) = await self.store.read([KEY])
        self.again.append((mark, until))

    async def lost(self, tp: TP) -> None:
        self.losses += 1

    async def start(self, committed: int | None, settled: int | None = None) -> int:
        return await self.start_offsets.start(PLACE, committed, settled, self.log)

    async def balance(self) -> Balance:
        answer = await conservation(self.store, ManualClock().now_ms(), 60, 0)
        assert answer.balanced is not bool(answer.signals[Kind.THUMBS].gaps)
        return answer.signals[Kind.THUMBS]

    def told(self, reason: str) -> tuple[float, float]:
        """Gaps, and offsets in them, as the metrics have it."""
        gaps, records = self.metrics.gaps, self.metrics.gap_records
        return gaps.labels(PLACE.topic, reason)._value.get(), records.labels(PLACE.topic)._value.get()

    def doubted(self) -> tuple[int, int] | None:
        """First and last of the records in doubt, asked one by one."""
        found = [n for n in range(self.log.end + 200) if in_doubt(self.start_offsets.doubts, PLACE, n, n)]
        assert not found or found == list(range(found[0], found[-1] + 1))
        return (found[0], found[-1]) if found else None


@pytest.mark.parametrize(("mark", "committed"), [(500, 500), (500, 480), (500, None)])
async def test_behind_a_watermark_as_many_records_are_in_doubt_as_a_worker_handles_at_once(
    mark: int, committed: int | None
) -> None:
    place = Place(mark)
    assert await place.start(committed) == (committed or mark)
    assert place.doubted() == (500, 599)
    assert place.losses == 0


async def test_a_record_that_came_after_the_start_is_in_no_doubt() -> None:
    place = Place(990)
    await place.start(990)
    assert place.doubted() == (990, 999)


async def test_a_lost_state_puts_in_doubt_what_was_under_way_and_nothing_that_was_settled() -> None:
    place = Place(None)
    assert await place.start(480, settled=500) == 0
    assert place.doubted() == (500, 599)
    assert place.losses == 1


async def test_a_lost_state_on_a_quiet_stream_puts_nothing_in_doubt() -> None:
    place = Place(None)
    assert await place.start(1_000, settled=1_000) == 0
    assert place.doubted() is None


async def test_what_others_settled_beyond_their_commit_is_unknown_once_the_state_is_lost() -> None:
    place = Place(None)
    assert await place.start(480) == 0
    assert place.doubted() == (480, 999)


async def test_lost_before_the_first_commit_only_the_worker_itself_can_tell() -> None:
    place = Place(None)
    assert await place.start(None, settled=30) == 0
    assert place.doubted() == (30, 129)
    assert place.losses == 1
    other = Place(None)
    assert await other.start(None) == 0
    assert other.doubted() is None, "a first start writes nothing by force"


@pytest.mark.parametrize(("settled", "last"), [(None, 999), (500, 599)])
async def test_an_older_copy_of_the_state_knows_of_no_write_since_its_watermark(settled: int | None, last: int) -> None:
    place = Place(200)
    assert await place.start(480, settled) == 200
    assert place.doubted() == (200, last)


async def test_lost_again_while_it_is_read_again_the_first_doubt_stands() -> None:
    """A rebalance in the midst of a rebuild, too: the state of the rebuild knows nothing of what was under way."""
    place = Place(None)
    await place.start(480)
    place.stand(490)
    place.log.end = 5_000
    assert await place.start(490) == 490
    assert place.doubted() == (490, 999)
    place.stand(None)
    await place.start(490, settled=520)
    assert place.doubted() == (520, 999)


async def test_a_batch_is_in_doubt_if_one_of_its_records_is() -> None:
    place = Place(500)
    await place.start(500)
    found = [in_doubt(place.start_offsets.doubts, PLACE, base, base + 199) for base in (300, 301, 500, 599, 600)]
    assert found == [False, True, True, True, False]


async def test_a_topic_made_anew_has_its_own_doubts() -> None:
    place = Place(500)
    await place.start(500)
    place.log.end = 10
    assert await place.start(None) == 0
    assert place.doubted() == (0, 9)


@pytest.mark.parametrize(("recent", "start"), [(600, 480), (1_000, 480), (300, 300)])
async def test_what_nobody_has_settled_is_read_however_old_it_is(recent: int, start: int) -> None:
    """The state is lost while a worker was away for longer than the lookback window."""
    place = Place(None)
    place.log.recent = recent
    assert await place.start(480) == start


async def test_what_kafka_no_longer_has_does_not_hold_up_what_comes_after() -> None:
    """A worker was away for longer than the topic is kept: its watermark is of records that are gone."""
    place = Place(100)
    place.log.first = 500
    assert await place.start(100) == 500
    (mark,) = await place.store.read([KEY])
    assert watermark(Batch(PLACE.topic, PLACE.partition, 500, []), mark) == 500


async def test_what_retention_took_before_it_was_read_is_a_gap_that_counts_once() -> None:
    """No one has settled offsets 100 to 499, and Kafka has none of them: a loss, which the balance must show."""
    place = Place(100)
    place.log.first = 500
    for _ in range(3):
        assert await place.start(100) == 500
    balance = await place.balance()
    assert (balance.consumed, balance.gap, balance.gaps, balance.difference) == (400, 400, 1, 400)
    assert place.told("retention") == (1, 400)


async def test_of_two_workers_that_find_the_same_gap_one_counts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    place, bounds = Place(100), Log.bounds
    place.log.first = 500
    other = StartOffsets(place.store, ManualClock(), 60_000, IN_FLIGHT, place, place.gaps)

    async def meanwhile(log: Log, tps: list[TP]) -> dict[TP, tuple[int, int]]:
        monkeypatch.undo()
        assert await other.start(PLACE, 100, None, place.log) == 500
        return await bounds(log, tps)

    monkeypatch.setattr(place.log, "bounds", partial(meanwhile, place.log))
    assert await place.start(100) == 500
    assert (await place.balance()).gap == 400
    assert place.told("retention") == (1, 400)


@pytest.mark.parametrize(
    ("mark", "committed", "lost"),
    [(100, 300, 200), (100, 500, 0), (100, 700, 0), (500, 100, 0), (None, 300, 200), (None, None, 0), (None, 600, 0)],
    ids=[
        "an older state, and records after the commit",
        "all was settled",
        "all was settled, and more",
        "a commit that lags behind the state",
        "no state, and records after the commit",
        "a first start",
        "no state, and all was settled",
    ],
)
async def test_only_what_no_worker_had_settled_is_lost(mark: int | None, committed: int | None, lost: int) -> None:
    place = Place(mark)
    place.log.first = place.log.recent = 500
    assert await place.start(committed) == 500
    balance = await place.balance()
    assert (balance.gap, balance.gaps) == (lost, bool(lost))
    (held,) = await place.store.read([KEY])
    assert int(held) == 500, "a watermark below the log's first record is waited for without end"


# A topic that was deleted and made again.

OLD, NEW = "a-first-topic", "one-of-the-same-name"


async def remade(mark: int, end: int) -> Place:
    """A partition that was read up to `mark`, and whose topic was made again since and holds `end` records."""
    place = Place(mark, end=max(mark, end))
    place.log.topic_id = OLD
    await place.start(mark)
    assert place.start_offsets.new_logs == set()
    place.log.topic_id, place.log.end = NEW, end
    return place


async def test_what_an_operator_let_through_of_the_old_log_does_not_count_in_the_new_one() -> None:
    place = await remade(300, 600)
    await place.store.apply(Change(sets={LET_THROUGH.key(*PLACE): (b"300", FOREVER)}))
    assert await place.start(300) == 0
    assert await place.store.read([LET_THROUGH.key(*PLACE)]) == [b"0"]


async def test_a_record_of_the_old_log_that_ended_workers_is_none_of_the_new_one() -> None:
    """Else a sound record at the same offset would be dead-lettered without being handled."""
    place = await remade(300, 600)
    await place.store.apply(Change(sets={TAKEOVER.key(*PLACE): (b'{"start":5,"deadly":[5]}', FOREVER)}))
    assert await place.start(300) == 0
    assert not place.start_offsets.quarantine.suspects


@pytest.mark.parametrize("end", [600, 300, 10, 0], ids=["grown past the mark", "up to it", "below it", "empty"])
@pytest.mark.parametrize("settled", [None, 300])
async def test_a_topic_made_again_is_read_from_its_first_record(end: int, settled: int | None) -> None:
    """Its offsets begin again: what was committed and settled was of another log."""
    place = await remade(300, end)
    assert await place.start(300, settled) == 0
    assert place.start_offsets.new_logs == {PLACE}
    assert place.losses == 0, "the state is whole; only the topic is another one"
    (mark,) = await place.store.read([KEY])
    assert mark == b"0"
    balance = await place.balance()
    assert (balance.gap, balance.gaps, balance.difference) == (0, 1, 0), "no one can know what the old log still had"
    assert place.told("new_log") == (1, 0)


async def test_a_topic_made_again_is_told_once_and_then_read_on() -> None:
    place = await remade(300, 600)
    await place.start(300)
    place.start_offsets.new_logs.clear()
    place.store.values[KEY] = (b"450", FOREVER)
    assert await place.start(450) == 450
    assert place.start_offsets.new_logs == set()
    assert (await place.balance()).gaps == 1


async def test_a_state_that_knows_no_id_yet_learns_it_and_loses_nothing() -> None:
    """After an upgrade, or where brokers told no ids before."""
    place = Place(300)
    place.log.topic_id = OLD
    assert await place.start(300) == 300
    assert (await place.balance()).gaps == 0
    place.log.topic_id = NEW
    assert await place.start(300) == 0


async def test_brokers_that_disagree_are_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them has not heard of the topic that was made again, or of the one before."""
    place = await remade(300, 600)
    answers = iter([NEW, OLD, NEW, NEW])

    async def topic_ids(topics: Iterable[str]) -> dict[str, str]:
        return dict.fromkeys(topics, next(answers))

    monkeypatch.setattr(place.log, "topic_ids", topic_ids)
    with pytest.raises(Unavailable):
        await place.start(300)
    assert await place.start(300) == 0


async def test_a_broker_that_tells_no_ids_is_no_new_log() -> None:
    place = await remade(300, 600)
    place.log.topic_id = ""
    assert await place.start(300) == 300


async def test_a_topic_made_again_while_it_is_read_is_noticed_at_the_second_look() -> None:
    """A single broker may be late to know of the topic."""
    place = await remade(300, 600)
    look = place.start_offsets.remade
    place.log.topic_id = OLD
    assert await look([PLACE], place.log) == []
    place.log.topic_id = NEW
    assert await look([PLACE], place.log) == []
    place.log.topic_id = OLD
    assert await look([PLACE], place.log) == []
    place.log.topic_id = NEW
    assert await look([PLACE], place.log) == []
    assert await look([PLACE], place.log) == [PLACE]
    await place.start(300, settled=300)
    for _ in range(3):
        assert await look([PLACE], place.log) == []


@pytest.mark.parametrize(
    ("mark", "committed", "settled", "again"),
    [
        (None, 700, None, [(b"", 700)]),
        (None, 700, 800, [(b"", 800)]),
        (400, 700, None, [(b"400", 700)]),
        (400, 350, 500, [(b"400", 500)]),
        (700, 700, None, []),
        (800, 700, 750, []),
        (None, None, None, []),
        (None, 1_500, None, [(b"", 1_000)]),
    ],
    ids=[
        "lost",
        "lost to its own worker",
        "older copy",
        "older copy, uncommitted",
        "whole",
        "ahead",
        "first",
        "shrunk",
    ],
)
async def test_what_is_read_again_stands_in_the_state_before_its_watermark_moves(
    mark: int | None, committed: int | None, settled: int | None, again: list[tuple[bytes, int]]
) -> None:
    """So that no worker writes a score meanwhile that one of these records overrules."""
    place = Place(mark)
    await place.start(committed, settled)
    assert place.again == again


async def test_a_topic_made_again_is_no_longer_read_again() -> None:
    place = Place(1_200)
    await place.start(1_200)
    assert place.again == [(b"1200", 0)]


async def test_behind_a_watermark_where_the_last_holder_stopped_with_nothing_begun_nothing_is_in_doubt() -> None:
    place = Place(500)
    place.start_offsets.clean[PLACE] = 500
    assert await place.start(500) == 500
    assert place.doubted() is None
    assert await place.start(500, settled=500) == 500
    assert place.doubted() is None, "also where its start is looked for again"


@pytest.mark.parametrize(("mark", "committed", "clean"), [(510, 500, 500), (200, 500, 500), (200, 500, 200)])
async def test_where_watermark_and_clean_stop_disagree_the_doubt_stands(mark: int, committed: int, clean: int) -> None:
    """Another worker was there since, or the state is an older copy."""
    place = Place(mark)
    place.start_offsets.clean[PLACE] = clean
    await place.start(committed)
    first, _ = place.doubted() or (0, 0)
    assert first == mark
