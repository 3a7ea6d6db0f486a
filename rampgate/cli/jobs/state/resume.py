"""Lets the bad records of a paused partition go to the dead letters, so that its worker reads on."""

from __future__ import annotations

from typing import Any

from faust.types import TP

from agents.keys import LET_THROUGH
from agents.ports import Change, Unavailable
from rampgate.console import Failure, run
from rampgate.logs import configure_logs
from rampgate.settings_sources import load_settings
from rampgate.wiring import Parts, make_parts
from schemas.topics import consumed
from streams.kafka.offsets import KafkaOffsets
from streams.kafka.reading import partitions_of


def resume(flags: dict[str, Any], place: str, until: int | None) -> dict[str, Any]:
    """Let bad records below `until` through, by default all that lie in the partition now. Raises Failure."""
    settings = load_settings(flags)
    configure_logs("error", "console")

    async def job() -> dict[str, Any]:
        parts = make_parts(settings, registry=False)
        try:
            return await let_through(parts, place, until)
        except Unavailable as error:
            raise Failure(str(error)) from error
        finally:
            await parts.close()

    return run(job)


async def let_through(parts: Parts, place: str, until: int | None) -> dict[str, Any]:
    """Note in the state up to which offset bad records of the place go to the dead letters; return what was noted.
    Raises Failure for a place that is none of ours, Unavailable."""
    partition = await partition_of(parts, place)
    if until is None:
        offsets = KafkaOffsets(parts.access, tries=2)
        try:
            until = (await offsets.ends([partition]))[partition]
        finally:
            await offsets.close()
    expires = parts.clock.now_ms() + parts.policy.lookback
    await parts.store.apply(Change(sets={LET_THROUGH.key(*partition): (str(until).encode(), expires)}))
    return {"topic": partition.topic, "partition": partition.partition, "until": until}


async def partition_of(parts: Parts, place: str) -> TP:
    """The partition of signals or traces that `topic/number` names. Raises Failure for any other place, Unavailable."""
    topic, _, number = place.rpartition("/")
    names = {name: parts.topics[name] for name in consumed() if name != "ramp-steps"}  # those never pause
    topic = names.get(topic, topic)
    if topic not in names.values() or not number.isdecimal():
        raise Failure(f"{place} is no partition of a consumed topic; name one as {names['thumbs']}/0")
    partition = TP(topic, int(number))
    count = (await partitions_of(parts.access, [topic])).get(topic, 0)
    if partition.partition >= count:
        raise Failure(f"{topic} has {count} partitions, numbered from 0")
    return partition
