"""Draws the traces that a gate judges: a bounded uniform sample of a window, whatever order they came in. Pure.

Each trace has a number, a hash of its id. A pool keeps the traces with the lowest numbers of an hour; the lowest of
several hours' pools are a uniform sample of those hours, as long as it is no larger than a pool. A trace that is
delivered again has the same number, so it changes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b, sha256
from heapq import nsmallest
from itertools import chain

POOL = 600
"""Traces that a pool keeps: what the largest production sample takes (PC5 §5.5: 500 to 1,000 with the other parts)."""
_BITS = 44
_LAYOUT = struct.Struct(">16sQIQ")


@dataclass(frozen=True)
class PooledTrace:
    """A trace that may be drawn. `ended` in ms; `partition` and `offset` are of its record on the topic of traces."""

    trace: bytes
    ended: int
    partition: int
    offset: int

    @property
    def number(self) -> int:
        return _hash(b"sample", self.trace)

    def pack(self) -> bytes:
        return _LAYOUT.pack(self.trace, self.ended, self.partition, self.offset)

    @classmethod
    def unpack(cls, member: bytes) -> PooledTrace:
        return cls(*_LAYOUT.unpack(member))


def share(trace: bytes) -> float:
    """Returns a number from 0 to 1: a judge scores the trace when it is below the judge's sampling rate. All judges of
    one rate score the same traces (PC5 FR-11), and a redelivery changes nothing."""
    return _hash(b"rate", trace) / (1 << _BITS)


def draw(pools: Iterable[Iterable[bytes]], since: int, until: int, size: int) -> list[PooledTrace]:
    """Returns, of the pools' traces that ended in (since, until], the `size` with the lowest numbers. A trace that was
    posted twice counts once, by its later record."""
    found: dict[bytes, tuple[int, int, int]] = {}
    for trace, ended, partition, offset in chain.from_iterable(map(_LAYOUT.iter_unpack, map(b"".join, pools))):
        if since < ended <= until:
            place = ended, partition, offset
            found[trace] = max(found.get(trace, place), place)
    lowest = nsmallest(size, ((_hash(b"sample", trace), trace) for trace in found))
    return [PooledTrace(trace, *found[trace]) for _, trace in lowest]


def fingerprint(items: Iterable[str]) -> str:
    """Returns a hash of the items, the same in any order."""
    return sha256("\n".join(sorted(items)).encode()).hexdigest()[:32]


def _hash(purpose: bytes, trace: bytes) -> int:
    # 44 bits: a Redis score is a double, and Redis' scripts may write one with 14 digits.
    return int.from_bytes(blake2b(trace, digest_size=8, person=purpose).digest(), "big") >> (64 - _BITS)
