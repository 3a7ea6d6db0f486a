"""Inflates what producers compressed, within bounds, in the place of aiokafka's own functions.

300 MB of one letter are 300 kB of gzip, so the size of what was fetched bounds nothing. Two bounds hold in a process: a
batch inflates to `limit` bytes at most, and once a drain of fetched records has inflated DRAIN_BYTES, the next batch of
any partition waits until the records before it were handed on.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType

from aiokafka import codec
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError

Bytes = bytes | bytearray | memoryview
FETCH_BYTES = 4_194_304
"""What the join fetches of a partition at once."""
FACTOR = 16
"""A batch inflates at most to so many times what is fetched at once, or the largest record, whichever is more."""
DRAIN_BYTES = 4 * FETCH_BYTES
GROWTH = 16
"""lz4 and zstd need not say what they inflate to: they get room for so many times their size, and so again."""
LEAST_ROOM = 4_096
FULL = "failed to write whole buffer"
"""How cramjam says that the room is too small; `unusable_codecs` notices if it no longer does."""
XERIAL = b"\x82SNAPPY\x00"
XERIAL_HEAD = 16
"""The header of snappy in blocks, as Java's and librdkafka's producers write it: the name and two version numbers."""
AIOKAFKA = (
    "aiokafka.record.default_records",
    "aiokafka.record.legacy_records",
    "aiokafka.record._crecords.default_records",
    "aiokafka.record._crecords.legacy_records",
)
"""Modules that inflate; the last two are the compiled form of the first and missing where there is none."""


class TooLarge(Exception):
    """A batch would inflate beyond the limit."""


class NotNow(Exception):
    """The drain has inflated enough; the batch is inflated in the next."""


class Bound:
    """How far a batch may inflate, in bytes; one for the process."""

    limit: int = FACTOR * FETCH_BYTES


drain = threading.local()
"""`spent`: bytes inflated in this thread since its drain of fetched records began; `of`: the event loop in whose turn.
Each consumer drains all its partitions in one go."""


def limit_inflation(largest_record: int) -> None:
    """Bound inflation by the largest record that is taken."""
    Bound.limit = FACTOR * max(FETCH_BYTES, largest_record)


def inflate(number: int, data: Bytes) -> Bytes:
    """Inflate a batch that was compressed with the codec of this number. Raises TooLarge or NotNow; for broken bytes
    any Exception."""
    if number not in CODECS:
        raise UnsupportedCodecError(f"Kafka has no codec {number}")
    spent = getattr(drain, "spent", 0)
    if spent >= DRAIN_BYTES:
        raise NotNow
    name, inflated = CODECS[number]
    try:
        body = inflated(data, Bound.limit)
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # of cramjam's Rust, and no Exception
            raise CorruptRecordException(f"{name}: the decoder gave up") from None
        raise
    drain.spent = spent + len(body)
    return body


def _gzip(data: Bytes, limit: int) -> Bytes:
    decoder, body = zlib.decompressobj(wbits=31), bytearray()
    while not decoder.eof:
        # Step by step: in one go it would be in memory twice before its length is known.
        part = decoder.decompress(data, FETCH_BYTES)
        if not part and not decoder.eof:
            raise CorruptRecordException("it ends too early")
        body += part
        if len(body) > limit:
            raise TooLarge
        data = decoder.unconsumed_tail
    if decoder.unused_data.strip(b"\0"):
        raise CorruptRecordException("something follows its end")
    return body


def _snappy(data: Bytes, limit: int) -> Bytes:
    """Each block says its length up front."""
    data = bytes(data)
    blocks, at = [data], XERIAL_HEAD
    if data.startswith(XERIAL):
        blocks = []
        while at < len(data):
            size = int.from_bytes(data[at : at + 4], "big", signed=True)
            if not 0 < size <= len(data) - at - 4:
                raise CorruptRecordException("a block's length is wrong")
            blocks.append(data[at + 4 : at + 4 + size])
            at += 4 + size
    if sum(map(codec.cramjam.snappy.decompress_raw_len, blocks)) > limit:
        raise TooLarge
    return b"".join(bytes(codec.cramjam.snappy.decompress_raw(block)) for block in blocks)


def _framed(name: str, data: Bytes, limit: int) -> Bytes:
    """lz4 or zstd, into room that grows up to the limit."""
    into: Callable[[Bytes, bytearray], int] = getattr(codec.cramjam, name).decompress_into
    room, body = LEAST_ROOM, bytearray()
    while True:
        room = min(max(room, len(data)) * GROWTH, limit)
        body.clear()  # before the next is made
        body = bytearray(room)
        try:
            del body[into(data, body) :]
        except Exception as error:
            if FULL not in str(error):
                raise
            if room >= limit:
                raise TooLarge from None
        else:
            return body


CODECS: dict[int, tuple[str, Callable[[Bytes, int], Bytes]]] = {
    1: ("gzip", _gzip),
    2: ("snappy", _snappy),
    3: ("lz4", partial(_framed, "lz4")),
    4: ("zstd", partial(_framed, "zstd")),
}
"""By the numbers in the attributes of Kafka's batches."""


def unusable_codecs() -> dict[str, str]:
    """The codecs of Kafka that don't work on this machine, each with the reason. A producer may use any of them, and
    what it sends would end as dead letters."""
    sample = b"rampgate " * 8_000
    found = {}
    for name, inflated in CODECS.values():
        try:
            packed = bytes(getattr(codec, f"{name}_encode")(sample))
            if bytes(inflated(packed, len(sample))) != sample:
                found[name] = "it gives back other bytes than went in"
            elif not _bounded(inflated, packed, len(sample) - 1):
                found[name] = "it can't be held to a bound"
        except Exception as error:
            found[name] = str(error)
    return found


def _bounded(inflated: Callable[[Bytes, int], Bytes], packed: bytes, limit: int) -> bool:
    try:
        inflated(packed, limit)
    except TooLarge:
        return True
    return False


def bound_aiokafka() -> None:
    """Have aiokafka inflate by these functions, wherever it unpacks batches."""
    for module in filter(None, map(_loaded, AIOKAFKA)):
        for number, (name, _) in CODECS.items():
            if hasattr(module, f"{name}_decode"):
                setattr(module, f"{name}_decode", partial(inflate, number))


def _loaded(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ImportError:
        return None
