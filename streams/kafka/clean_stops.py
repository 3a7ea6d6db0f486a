"""Notes with a committed offset that nothing beyond it was begun, and takes the note away at the next start.

Who takes a partition over doubts what lies behind the watermark, for a worker that died may have handled it: its scores
are written again, and compared with Opik's once no late write can come. After a stop in good order there is nothing to
doubt. The note lies in Kafka, beside the offset, so that a Redis which comes back as an older copy cannot bring it
back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka.structs import OffsetAndMetadata, TopicPartition
from faust.types import TP

NOTE = "nothing begun beyond"
SECONDS = 5.0
"""For a commit: aiokafka would try without end, and who waits for us to leave would wait as long."""


async def leave_notes(consumer: Any, offsets: Mapping[TP, int]) -> dict[TP, int]:
    """Commit these offsets with the note; return those that were: none while we are no member of the group. Raises what
    Kafka's client raises. `consumer` is aiokafka's, and this runs in its thread."""
    if not offsets or not consumer._coordinator.member_id or consumer._coordinator._performed_join_prepare:
        return {}
    noted = {TopicPartition(*tp): OffsetAndMetadata(offset, NOTE) for tp, offset in offsets.items()}
    await asyncio.wait_for(consumer.commit(noted), SECONDS)
    return dict(offsets)


async def take_notes(consumer: Any, partitions: Iterable[TP]) -> dict[TP, int]:
    """Take the notes of these partitions away, and return the offsets they stood with.

    Raises what Kafka's client raises while it can't: nothing may be begun then, for a note that outlives the next start
    is untrue.
    """
    found = await consumer._coordinator.fetch_committed_offsets([TopicPartition(*tp) for tp in partitions])
    noted = {tp: one.offset for tp, one in found.items() if one.metadata == NOTE}
    if noted:
        without = {tp: OffsetAndMetadata(offset, "") for tp, offset in noted.items()}
        await asyncio.wait_for(consumer.commit(without), SECONDS)
    return {TP(*tp): offset for tp, offset in noted.items()}
