"""That a live trace was judged, and where its record is; one small cell a trace, for the lookback."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from agents.ports import Cell, Store

_LAYOUT = struct.Struct(">?Iq")


class Mark(NamedTuple):
    """`voted_down`: judged by all its judges, whatever their rates. No record for a trace that was read from Opik."""

    voted_down: bool
    partition: int = 0
    offset: int = -1

    def pack(self) -> bytes:
        return _LAYOUT.pack(*self)


def mark_cell(trace: bytes) -> Cell:
    return "l:" + trace.hex()


async def read_marks(store: Store, traces: Sequence[bytes]) -> dict[bytes, Mark]:
    found = await store.read([mark_cell(trace) for trace in traces]) if traces else []
    return {trace: Mark(*_LAYOUT.unpack(mark)) for trace, mark in zip(traces, found, strict=True) if mark}
