"""What aiokafka can't read is read by hand: whole records go on, and a marker tells of all others where they lie."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.structs import ConsumerRecord
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.dead_letters import UnreadableRecord
from schemas.outcomes import Cause
from streams.kafka import inflation, transport
from streams.kafka.inflation import CODECS, Bound
from streams.kafka.record_batches import ReadByHand
from streams.kafka.transport import FetchedBytes, FetchedRecords, guard_consumers
from tests.raw_batches import HEAD, MISNAMED, PLACEHOLDER, batch, compressed, record, sealed
from tests.root import ROOT

PLACE = TopicPartition("rampgate.thumbs", 3)
COMPRESSIONS = ["", *(name for name, _ in CODECS.values())]
FIVE = [record(b'{"n": %d}' % number, b"k%d" % number, ("h", b"x"), ("empty", None)) for number in range(5)]


@pytest.fixture(autouse=True)
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    guard_consumers()
    monkeypatch.setattr(Bound, "limit", 1_000_000)


class Fetched:
    """What one fetch brought, drained as aiokafka's fetcher does."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data, self.position, self.paused = data, position, False
        self.assignment = SimpleNamespace(active=True, state_value=lambda tp: self)

    def consumed_to(self, position: int) -> None:
        self.position = position

    def result(self) -> FetchedRecords:
        """What one fetch brought. A broker sends from the batch on that holds the position."""
        begins = next((begin for begin, end in bounds(self.data) if end > self.position), 0)
        fetched = FetchedBytes(self.data[begins:])
        assert fetched.has_next()
        records = fetcher.PartitionRecords(
            PLACE, fetched, [], self.position, None, None, True, fetcher.READ_UNCOMMITTED
        )
        return FetchedRecords(PLACE, assignment=self.assignment, partition_records=records, backoff=0)

    def drained(self, most: int | None = None) -> list[Any]:
        """The records of one fetch, in drains of `most`."""
        result, found = self.result(), list[Any]()
        while result.has_more():
            part = result.getall(most)
            assert most is None or len(part) <= most
            found += part
        return found

    def everything(self, most: int | None = None) -> list[Any]:
        """All records, fetched again and again from where the position stands."""
        found = []
        _, end = bounds(self.data)[-1]
        for _ in range(100):
            if self.position >= end:
                return found
            found += self.drained(most)
        raise AssertionError(f"it does not get past {self.position}")


def bounds(data: bytes) -> list[tuple[int, int]]:
    """Of each batch: where it begins in the bytes, and the offset behind it."""
    found, at = [], 0
    while at + HEAD <= len(data):
        base, length = struct.unpack_from(">qi", data, at)
        found.append((at, base + struct.unpack_from(">i", data, at + 23)[0] + 1))
        at += 12 + max(length, HEAD)
    return found


def shown(records: Sequence[Any]) -> list[Any]:
    """Values of records, and of markers (cause, first offset, last offset)."""
    return [(one.cause, one.first, one.offset) if isinstance(one, UnreadableRecord) else one.value for one in records]


def values(*numbers: int) -> list[bytes]:
    return [b'{"n": %d}' % number for number in numbers]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_good_batch_comes_as_aiokafka_gives_it(compression: str) -> None:
    found = Fetched(batch(*FIVE, base=40, compression=compression), 42).everything()
    assert [one.offset for one in found] == [42, 43, 44]
    assert all(type(one) is ConsumerRecord for one in found)
    assert (found[0].key, found[0].value, found[0].headers) == (b"k2", b'{"n": 2}', (("h", b"x"), ("empty", None)))


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("most", [None, 1, 3])
def test_a_header_name_that_is_not_utf_8_costs_its_own_record_only(compression: str, most: int | None) -> None:
    misnamed = record(b'{"good": "json"}', b"key", ("fine", b"1"), (PLACEHOLDER, b"2"))
    data = batch(FIVE[0], misnamed, FIVE[2], base=7, compression=compression) + batch(FIVE[3], base=10)
    found = Fetched(data, 7).everything(most)
    assert shown(found) == [*values(0), (Cause.UNREADABLE, None, 8), *values(2, 3)]
    assert [one.offset for one in found] == [7, 8, 9, 10]
    bad = found[1]
    assert (bad.value, bad.raw, bad.key, bad.count) == (None, b'{"good": "json"}', b"key", 1)
    assert bad.headers == (("fine", b"1"), (MISNAMED.decode(errors="backslashreplace"), b"2"))
    assert bad.timestamp == found[0].timestamp
    assert "not UTF-8" in bad.reason


def test_aiokafka_makes_what_it_fetches_by_our_classes() -> None:
    """It finds them by name, in the one function that takes a fetch apart."""
    names = fetcher.Fetcher._proc_fetch_request.__code__.co_names
    ours = {"MemoryRecords": FetchedBytes, "FetchResult": FetchedRecords}
    assert ours.keys() <= set(names)
    assert {name: getattr(fetcher, name) for name in ours} == ours


def test_all_consumers_of_the_product_are_made_where_they_are_guarded() -> None:
    rooms = (path for room in ("agents", "streams", "rampgate") for path in (ROOT / room).rglob("*.py"))
    makers = [str(path.relative_to(ROOT)) for path in rooms if "AIOKafkaConsumer(" in path.read_text()]
    assert makers == ["streams/kafka/client.py", "rampgate/local/demo/gates.py"]


def test_what_is_read_by_hand_is_what_aiokafka_reads() -> None:
    plain = Fetched(batch(*FIVE, base=7), 7).everything()
    by_hand = Fetched(batch(*FIVE, record(b"", None, (PLACEHOLDER, b"")), base=7), 7).everything()
    assert by_hand[:5] == plain


@pytest.mark.parametrize("flip", [0, 30, HEAD, -1])
def test_a_corrupt_batch_is_one_marker_from_first_to_last_and_what_follows_goes_on(flip: int) -> None:
    """`flip`: the place of the changed byte, counted from the checksummed part."""
    data = bytearray(batch(*FIVE, base=100))
    data[21 + flip if flip >= 0 else flip] ^= 0x10
    found = Fetched(batch(*FIVE, base=95) + bytes(data) + batch(*FIVE, base=105), 95).everything()
    assert shown(found) == [*values(*range(5)), (Cause.UNREADABLE, 100, 104), *values(*range(5))]
    assert (found[5].raw, found[5].count) == (bytes(data), 5)
    assert "checksum" in found[5].reason


def test_a_corrupt_batch_is_told_from_the_position_on() -> None:
    data = bytearray(batch(*FIVE, base=100))
    data[-1] ^= 1
    assert shown(Fetched(bytes(data), 103).everything()) == [(Cause.UNREADABLE, 103, 104)]


def test_a_corrupt_batch_whose_last_offset_is_corrupt_ends_before_the_next() -> None:
    data = bytearray(batch(*FIVE, base=100))
    data[23:27] = struct.pack(">i", 1 << 30)
    found = Fetched(bytes(data) + batch(*FIVE, base=105), 100).drained()
    assert shown(found) == [(Cause.UNREADABLE, 100, 104)]


@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
def test_a_batch_that_can_not_be_inflated_is_stepped_past(compression: str) -> None:
    whole = batch(*FIVE, base=5, compression=compression)
    data = sealed(whole[: HEAD + 4] + b"\x00" * 7 + whole[HEAD + 11 :])
    found = Fetched(data + batch(FIVE[0], base=10), 5).everything()
    assert shown(found) == [(Cause.UNREADABLE, 5, 9), *values(0)]
    assert compression in found[0].reason


@pytest.mark.parametrize("number", [5, 6, 7])
def test_a_codec_that_nobody_knows_is_stepped_past(number: int) -> None:
    whole = batch(*FIVE)
    data = sealed(whole[:21] + struct.pack(">h", number) + whole[23:])
    (found,) = Fetched(data).everything()
    assert shown([found]) == [(Cause.UNREADABLE, 0, 4)]
    assert f"codec {number}" in found.reason


@pytest.mark.parametrize("compression", ["gzip", "lz4", "zstd"])
def test_a_batch_that_would_inflate_beyond_the_bound_is_too_large_and_what_follows_goes_on(compression: str) -> None:
    bomb = batch(record(b"\0" * 1_000_001), FIVE[1], base=5, compression=compression)
    found = Fetched(bomb + batch(FIVE[0], base=7, compression=compression), 5).everything()
    assert shown(found) == [(Cause.TOO_LARGE, 5, 6), *values(0)]
    assert found[0].raw == bomb


def test_batches_that_inflate_much_are_handed_on_a_few_at_a_time() -> None:
    """Each is within the bound: all of them at once are not in memory."""
    large = record(b"\0" * 900_000)
    data = b"".join(batch(large, base=base, compression="gzip") for base in range(60))
    fetched = Fetched(data)
    first = fetched.drained()
    assert sum(len(one.value) for one in first) < 20_000_000
    assert [one.offset for one in first + fetched.everything()] == list(range(60))


async def test_partitions_that_are_drained_at_once_share_what_a_drain_may_inflate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twelve partitions of bombs are in memory one after another, and each has its turn."""
    monkeypatch.setattr(inflation, "DRAIN_BYTES", 100_000)
    data = batch(record(b"x" * 100_000), compression="gzip")
    results = [Fetched(data).result() for _ in range(12)]
    turns = []
    while any(result.has_more() for result in results):
        turns.append([len(result.getall()) if result.has_more() else 0 for result in results])
        await asyncio.sleep(0)
    assert [sum(turn) for turn in turns] == [1] * 12
    assert [turn.index(1) for turn in turns] == list(range(12))


def test_a_batch_is_taken_apart_once_however_little_of_it_is_drained_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a million small records behind a bad one would take hours."""
    made = []

    class Counted(ReadByHand):
        def __init__(self, *args: Any) -> None:
            made.append(args)
            super().__init__(*args)

    monkeypatch.setattr(transport, "ReadByHand", Counted)
    misnamed = record(b"", None, (PLACEHOLDER, b""))
    found = Fetched(batch(misnamed, *[FIVE[0]] * 500, compression="lz4")).drained(3)
    assert [one.offset for one in found] == list(range(501))
    assert len(made) == 1


def test_a_record_out_of_form_takes_those_behind_it_along_and_those_before_go_on() -> None:
    body = bytearray(batch(*FIVE, base=5))
    at = body.index(b"k2") - 1
    body[at] = 0x7F  # the key's length
    found = Fetched(sealed(bytes(body)), 5).everything()
    assert shown(found) == [*values(0, 1), (Cause.UNREADABLE, 7, 9)]
    assert found[2].count == 3


@pytest.mark.parametrize("wild", [900, 0])
def test_an_offset_outside_of_its_batch_is_not_believed(wild: int) -> None:
    """No broker takes such a batch from a producer; a commit beyond the log would lose what is yet to come."""
    misnamed = record(b"", None, (PLACEHOLDER, b""))
    raw = batch(misnamed, FIVE[0], offsets=[0, wild])
    data = sealed(raw[:23] + struct.pack(">i", 1) + raw[27:])
    assert shown(Fetched(data).everything()) == [(Cause.UNREADABLE, None, 0), (Cause.UNREADABLE, 1, 1)]


def test_what_compaction_left_of_a_batch_keeps_its_offsets() -> None:
    misnamed = record(b"", None, (PLACEHOLDER, b""))
    found = Fetched(batch(misnamed, FIVE[1], FIVE[2], offsets=[2, 5, 9], base=100), 100).everything()
    assert [one.offset for one in found] == [102, 105, 109]


def test_fewer_records_than_the_batch_says_are_told() -> None:
    raw = batch(*FIVE)
    body = sealed(raw[:57] + struct.pack(">i", 7) + raw[61:])
    assert shown(Fetched(body).everything())[:5] == values(*range(5))
    more = sealed(raw[:23] + struct.pack(">i", 6) + raw[27:57] + struct.pack(">i", 7) + raw[61:])
    assert shown(Fetched(more).everything()) == [*values(*range(5)), (Cause.UNREADABLE, 5, 6)]


def test_a_batch_of_which_only_the_beginning_came_is_too_large() -> None:
    assert shown(Fetched(batch(*FIVE, base=5)[:-3], 5).drained()) == [(Cause.TOO_LARGE, 5, 5)]


def test_the_beginning_of_a_batch_behind_a_whole_one_comes_with_the_next_fetch() -> None:
    assert shown(Fetched(batch(FIVE[0]) + batch(*FIVE, base=1)[:-3]).drained()) == values(0)


def test_a_length_that_is_none_is_stepped_past() -> None:
    for length in (-100, -12, 0, 13, 40):
        raw = batch(*FIVE)
        data = raw[:8] + struct.pack(">i", length) + raw[12:]
        fetched = Fetched(data)
        assert [one.cause for one in fetched.drained()] == [Cause.TOO_LARGE]
        assert fetched.position == 1


def test_a_paused_or_lost_partition_gives_nothing() -> None:
    fetched = Fetched(batch(*FIVE))
    fetched.paused = True
    assert fetched.drained() == []


@settings(max_examples=400, deadline=None)
@given(
    compression=st.sampled_from(COMPRESSIONS),
    at=st.integers(0, 400),
    changed=st.binary(min_size=1, max_size=12),
    seal=st.booleans(),
    inside=st.booleans(),
    most=st.sampled_from([None, 1, 2]),
)
def test_whatever_bytes_a_batch_has_reading_never_raises_and_gets_past_it(
    compression: str, at: int, changed: bytes, seal: bool, inside: bool, most: int | None
) -> None:
    """`inside`: the records are changed before they are compressed; `seal`: the checksum is made to fit."""
    raw = batch(*FIVE, record(None, None, (PLACEHOLDER, None)), base=5)
    if inside:
        at = HEAD + at % (len(raw) - HEAD)
        raw = compressed(raw[:at] + changed + raw[at + len(changed) :], compression, 5)
    else:
        raw = compressed(raw, compression, 5)
        at = 21 + at % (len(raw) - 21) if seal else 12 + at % (len(raw) - 12)
        made = raw[:at] + changed + raw[at + len(changed) :]
        raw = sealed(made) if seal else made[: len(raw)]
    fetched = Fetched(raw + batch(FIVE[0], base=5_000_000_000), 5)
    for _ in range(20):
        found = fetched.drained(most)
        offsets = [one.offset for one in found]
        assert offsets == sorted(set(offsets))
        if fetched.position > 5_000_000_000:
            return
    raise AssertionError(f"it does not get past {fetched.position}")
