"""Says which shards of a DynamoDB stream may be read now. Pure.

Shards form a forest. Changes of an item are in order within a shard, and a child shard goes on where its parent ended,
so a parent is read to its end before its children begin. A parent that is no longer listed was trimmed: its children
are roots then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgspec

HORIZON_MS = 86_400_000
"""How long a stream keeps a record: 24 hours."""


@dataclass(frozen=True)
class Shard:
    """A shard as the stream lists it. `closed`: it gets no more records; its children hold what came later."""

    shard_id: str
    parent: str | None = None
    first: str = "0"
    closed: bool = False


class Place(msgspec.Struct, omit_defaults=True, frozen=True):
    """How far a shard has been published. Kept in Redis as JSON.

    `seq`: sequence number of the last published record, None at the start. `time` (ms): all that the shard got before
    it is published; 0 where nothing is known. `tip`: `time` is when all there was had been read, not the time of a
    record. `end`: the shard is closed and published whole.
    """

    seq: str | None = None
    time: int = 0
    tip: bool = False
    end: bool = False

    def outlived(self, now: int) -> bool:
        """True where the stream may have forgotten records after this place."""
        return self.time > 0 and now - self.time > HORIZON_MS


encode_place = msgspec.json.Encoder().encode
decode_place = msgspec.json.Decoder(Place).decode


def readable(shards: Iterable[Shard], done: Collection[str]) -> list[Shard]:
    """Shards that are not `done` and whose parent is done or no longer listed, oldest first."""
    listed = {shard.shard_id: shard for shard in shards}
    return sorted(
        (
            shard
            for shard in listed.values()
            if shard.shard_id not in done and (shard.parent not in listed or shard.parent in done)
        ),
        key=_age,
    )


def unlisted(listed: Iterable[str], places: dict[str, Place], *, read: bool) -> list[str]:
    """Shards that are no longer listed and were, or were not, `read` to their end. Of those that were not, the rest is
    lost; the places of the others are needed no more."""
    present = set(listed)
    return sorted(shard for shard, place in places.items() if shard not in present and place.end is read)


def _age(shard: Shard) -> tuple[int, str]:
    return (int(shard.first) if shard.first.isdigit() else 0, shard.shard_id)
