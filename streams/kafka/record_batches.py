"""Reads by hand the batch that aiokafka can't read, and tells what of it no one can (promise 6).

aiokafka unpacks what was fetched, as fast as it goes. Where it raises, the batch at fault is taken apart here, record
by record: those that are whole go on, an `UnreadableRecord` takes the place of the rest. The bytes are a producer's, or
a broken disk's: nothing in them is trusted that was not checked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from aiokafka.record.util import calc_crc32c, decode_varint_py
from aiokafka.structs import ConsumerRecord

from schemas.dead_letters import Header, Record, UnreadableRecord, clean
from schemas.outcomes import Cause
from streams.kafka.inflation import CODECS, Bytes, TooLarge, inflate

HEAD = struct.Struct(">qiibIhiqqqhii")
LENGTH = 12
"""The length of a batch counts from here."""
MAGIC = 16
CHECKED = 21
"""The CRC is of what follows from here."""
CODEC, LOG_APPEND_TIME, CONTROL = 0x07, 0x08, 0x20


class Head(NamedTuple):
    """The head of a batch, as `HEAD` packs it."""

    base: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_delta: int
    first_timestamp: int
    largest_timestamp: int
    producer: int
    producer_epoch: int
    sequence: int
    records: int


@dataclass(frozen=True)
class _Batch:
    """A batch as it lies in Kafka. `head` is None for a form that is not today's, and where the batch is not whole.
    `intact`: its checksum is right."""

    raw: bytes
    base: int
    last: int
    head: Head | None = None
    intact: bool = True


class ReadByHand:
    """The first batch in `data` that reaches offset `since`, from there on, record by record; nothing where there is
    none. Takes the place of aiokafka's `PartitionRecords`, and raises for nothing that stands in the bytes.

    `next_fetch_offset`: where to read on, after the record that was given last; at the end after the batch.
    """

    def __init__(self, data: bytes, topic: str, partition: int, since: int) -> None:
        self.next_fetch_offset = since
        self._topic, self._partition = topic, partition
        batch = next((batch for batch in _batches(data, since) if batch.last >= since), None)
        self._records = self._read(batch) if batch is not None else iter(())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record:
        return next(self._records)

    def _read(self, batch: _Batch) -> Iterator[Record]:
        self.next_fetch_offset = max(self.next_fetch_offset, batch.base)
        if batch.head is None and not batch.intact:
            yield self._rest(
                batch, Cause.TOO_LARGE, "its batch is larger than what was fetched, or its length is wrong"
            )
        elif batch.head is None:
            yield self._rest(batch, Cause.UNREADABLE, "its batch, in a form of before Kafka 0.11, is corrupt")
        elif not batch.intact:
            yield self._rest(batch, Cause.UNREADABLE, "its batch is corrupt: the checksum is wrong")
        elif not batch.head.attributes & CONTROL:
            yield from self._inflated(batch, batch.head)
        self.next_fetch_offset = max(self.next_fetch_offset, batch.last + 1)

    def _inflated(self, batch: _Batch, head: Head) -> Iterator[Record]:
        body: Bytes = batch.raw[HEAD.size :]
        if codec := head.attributes & CODEC:
            name = CODECS[codec][0] if codec in CODECS else f"codec {codec}"
            try:
                body = inflate(codec, body)
            except TooLarge:
                yield self._rest(batch, Cause.TOO_LARGE, f"its batch would inflate beyond what is taken ({name})")
                return
            except MemoryError:  # no fault of the batch
                raise
            except Exception as error:
                why = f"its batch can't be inflated ({name}: {clean(str(error), 100)})"
                yield self._rest(batch, Cause.UNREADABLE, why)
                return
        yield from self._taken_apart(bytes(body), batch, head)

    def _taken_apart(self, body: bytes, batch: _Batch, head: Head) -> Iterator[Record]:
        """Read record by record. One that is not in form takes those behind it along: no one knows where they begin."""
        at, lowest, last = 0, head.base, batch.last
        for _ in range(head.records):
            try:
                length, start = decode_varint_py(body, at)
                at = start + length
                fields = _Fields(body, start, at)
                offset = head.base + fields.offset_delta
                if not lowest <= offset <= last:
                    raise ValueError
                lowest = offset + 1
                if offset < self.next_fetch_offset:
                    continue
                fields.read()
            except (IndexError, ValueError):
                yield self._rest(batch, Cause.UNREADABLE, "its batch holds records that are not in Kafka's form")
                return
            self.next_fetch_offset = lowest
            yield self._record(fields, offset, head)

    def _record(self, fields: _Fields, offset: int, head: Head) -> Record:
        key, value, headers = fields.key, fields.value, tuple(fields.headers)
        appended = bool(head.attributes & LOG_APPEND_TIME)
        timestamp = head.largest_timestamp if appended else head.first_timestamp + fields.time_delta
        place = self._topic, self._partition, offset, timestamp
        if fields.misnamed:
            reason = "the name of a header is not UTF-8; the letter has it with escapes"
            return UnreadableRecord(*place, Cause.UNREADABLE, reason, value, key=key, headers=headers)
        sizes = -1 if key is None else len(key), -1 if value is None else len(value)
        record: Record = ConsumerRecord(*place, int(appended), key, value, None, *sizes, headers)
        return record

    def _rest(self, batch: _Batch, cause: Cause, reason: str) -> Record:
        """What is left of a batch that is given up."""
        first, last = self.next_fetch_offset, max(batch.last, self.next_fetch_offset)
        self.next_fetch_offset = last + 1
        timestamp = batch.head.largest_timestamp if batch.head is not None and batch.intact else 0
        return UnreadableRecord(self._topic, self._partition, last, timestamp, cause, reason, batch.raw, first)


def _batches(data: bytes, position: int) -> Iterator[_Batch]:
    """The batches in what was fetched. The broker may have cut off the last one, which then comes with the next fetch,
    unless it is the only one. Behind a length that is wrong nothing can be found."""
    at = 0
    while at + MAGIC < len(data):
        base, length = struct.unpack_from(">qi", data, at)
        magic, end = data[at + MAGIC], at + LENGTH + length
        least = HEAD.size if magic >= 2 else MAGIC
        if end > len(data):
            break
        if end < at + least:
            yield _Batch(data[at:], position, position, intact=False)
            return
        raw = data[at:end]
        if magic < 2:
            yield _Batch(raw, position, base)
        else:
            head = Head._make(HEAD.unpack_from(raw))
            intact = calc_crc32c(raw[CHECKED:]) == head.crc
            yield _Batch(raw, base, _last_offset(head, intact, data[end : end + 8]), head, intact)
        at = end
    if at == 0 and data:
        yield _Batch(data, position, position, intact=False)


def _last_offset(head: Head, intact: bool, following: bytes) -> int:
    """The batch's last offset. `following`: the base offset of the batch behind it, before which it must end."""
    if intact:
        return head.base + max(head.last_delta, 0)
    after = int.from_bytes(following, "big", signed=True) if len(following) == 8 else 0
    if after > head.base:
        return after - 1
    return head.base + head.last_delta if 0 <= head.last_delta == head.records - 1 else head.base


class _Fields:
    """What stands in one record, between two places of a batch's body; all but offset and time after `read`. Raises
    IndexError or ValueError where it is not in Kafka's form."""

    def __init__(self, body: bytes, start: int, end: int) -> None:
        if end > len(body):
            raise ValueError
        self._body, self._end = body, end
        self._at = start + 1  # past the attributes, of which none is in use
        self.time_delta, self.offset_delta = self._number(), self._number()

    def read(self) -> None:
        self.misnamed = False
        self.key, self.value = self._bytes(), self._bytes()
        self.headers: list[Header] = []
        count = self._number()
        if count < 0:
            raise ValueError
        for _ in range(count):
            self.headers.append((self._name(), self._bytes()))
        if self._at != self._end:
            raise ValueError

    def _name(self) -> str:
        name = self._bytes()
        if name is None:
            raise ValueError
        try:
            return name.decode()
        except UnicodeDecodeError:
            self.misnamed = True
            return name.decode(errors="backslashreplace")

    def _number(self) -> int:
        number, self._at = decode_varint_py(self._body, self._at)
        if self._at > self._end:
            raise ValueError
        return int(number)

    def _bytes(self) -> bytes | None:
        size = self._number()
        if size < 0:
            return None
        at, self._at = self._at, self._at + size
        if self._at > self._end:
            raise ValueError
        return self._body[at : self._at]
