"""Draws the turns that a gate judges: a bounded uniform sample of a window, whatever order they came in. Pure.

Each turn has a number, a hash of its response id. A pool has one place a turn and keeps the turns with the lowest
numbers of an hour; the lowest of several hours' pools are a uniform sample of those hours, as long as no pool's edge
lies below them. A turn that is delivered again has the same number, so it changes nothing but its place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b, sha256
from heapq import nsmallest
from typing import Any

POOL = 600
"""Turns that a pool keeps: what the largest production sample takes (PC5 §5.5: 500 to 1,000 with the other parts)."""
_BITS = 44
_LAYOUT = struct.Struct(">8sHI16sHHIHI")
"""Of a member: 44 bytes, since an allocator rounds 45 up to 64. Times and offsets take six."""
_LOW = 32
TURN = 8
"""Bytes of a turn's hash, with which a member begins."""


@dataclass(frozen=True)
class PooledTurn:
    """A turn that may be drawn, by its last trace. `turn`: the hash of its response id; `ended` and `stamp` in ms, the
    latter of its record, which `partition` and `offset` say on the topic of traces."""

    turn: bytes
    ended: int
    trace: bytes
    partition: int
    offset: int
    stamp: int = 0

    @property
    def number(self) -> int:
        return number_of(self.turn)

    def pack(self) -> bytes:
        mask = (1 << _LOW) - 1
        ended, offset, stamp = ((one >> _LOW, one & mask) for one in (self.ended, self.offset, self.stamp))
        return _LAYOUT.pack(self.turn, *ended, self.trace, self.partition, *offset, *stamp)

    @classmethod
    def unpack(cls, member: bytes) -> PooledTurn:
        return cls._of(_LAYOUT.unpack(member))

    @classmethod
    def _of(cls, fields: tuple[Any, ...]) -> PooledTurn:
        turn, ended, rest, trace, partition, offset, of_offset, stamp, of_stamp = fields
        return cls(turn, ended << _LOW | rest, trace, partition, offset << _LOW | of_offset, stamp << _LOW | of_stamp)

    def later(self, other: PooledTurn) -> bool:
        """Tells whether this counts instead of another place of the turn: the one that ended last, of those that ended
        together the later record."""
        if self.ended != other.ended:
            return self.ended > other.ended
        if self.partition == other.partition:
            return self.offset > other.offset
        return (self.stamp, self.partition) > (other.stamp, other.partition)


def turn_hash(response_id: str, version: bytes = b"") -> bytes:
    """Returns the hash under which a turn of a version is pooled. `version`: its hashed names."""
    whole = response_id.encode(errors="surrogatepass") + version
    return blake2b(whole, digest_size=TURN, person=b"sample").digest()


def number_of(turn: bytes) -> int:
    """Returns a turn's number, or a trace's: of its first eight bytes."""
    # 44 bits: a Redis score is a double, and Redis' scripts may write one with 14 digits.
    return int.from_bytes(turn[:TURN], "big") >> (8 * TURN - _BITS)


def share(trace: bytes) -> float:
    """Returns a number from 0 to 1: a judge scores the trace when it is below the judge's sampling rate. All judges of
    one rate score the same traces (PC5 FR-11), and a redelivery changes nothing."""
    return number_of(blake2b(trace, digest_size=8, person=b"rate").digest()) / (1 << _BITS)


def in_window(pool: Iterable[bytes], since: int, until: int) -> dict[bytes, PooledTurn]:
    """Returns the pool's turns that ended after the second `since` and by the second `until`, by their hashes."""
    found: dict[bytes, PooledTurn] = {}
    for fields in _LAYOUT.iter_unpack(b"".join(pool)):
        if since < (fields[1] << _LOW | fields[2]) // 1000 <= until:
            one = PooledTurn._of(fields)
            known = found.get(one.turn)
            if known is None or one.later(known):
                found[one.turn] = one
    return found


def draw(turns: Iterable[PooledTurn], size: int) -> list[PooledTurn]:
    """Returns the `size` turns with the lowest numbers."""
    return nsmallest(size, turns, key=lambda one: (one.number, one.turn))


def fingerprint(items: Iterable[str]) -> str:
    """Returns a hash of the items, the same in any order."""
    return sha256("\n".join(sorted(items)).encode()).hexdigest()[:32]
