"""Moves a group's place in a partition forward, on purpose: what lies between is never read.

The state's watermark says where workers read on, so it is moved first, together with the count of what is skipped; then
the group's committed offset. Between the two a worker passes over what the watermark has passed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from faust.types import TP

from agents.join.counting import count_gap
from agents.keys import FOREVER, WATERMARK
from agents.ports import Change, Unavailable
from rampgate.cli.jobs.state.resume import partition_of
from rampgate.console import Failure, run
from rampgate.logs import configure_logs
from rampgate.overrides import write
from rampgate.settings_sources import load_settings
from rampgate.wiring import Parts, make_parts
from schemas.signals import kinds
from streams.kafka.client import client_options, make_consumer, started
from streams.kafka.offsets import KafkaOffsets
from streams.kafka.transport import KAFKA_ERRORS
from streams.retry import reason_of

MEMBERS = 5
"""Where a described group has its members."""


def skip(
    flags: dict[str, Any], place: str, to: int | None, reason: str, audit: Path | None, *, dry_run: bool
) -> dict[str, Any]:
    """Skip the records of `place` below offset `to`, by default all that lie there now. Raises Failure."""
    settings = load_settings(flags)
    configure_logs("error", "console")

    async def job() -> dict[str, Any]:
        parts = make_parts(settings, registry=False)
        try:
            return await skipped(parts, place, to, reason, audit, dry_run=dry_run)
        except Unavailable as error:
            raise Failure(str(error)) from error
        except KAFKA_ERRORS as error:
            raise Failure(f"Kafka at {settings.kafka}: {reason_of(error)}") from error
        finally:
            await parts.close()

    return run(job)


async def skipped(
    parts: Parts, place: str, to: int | None, reason: str, audit: Path | None, *, dry_run: bool
) -> dict[str, Any]:
    """Write the audit's line, then move the place; returns what was skipped. Raises Failure where workers run or there
    is nothing to skip, Unavailable and KAFKA_ERRORS."""
    if not reason.strip():
        raise Failure("--reason: say why these records are not to be read")
    partition = await partition_of(parts, place)
    await _no_worker(parts)
    group, offsets = parts.settings.group, KafkaOffsets(parts.access, tries=2)
    try:
        end = (await offsets.ends([partition]))[partition]
    finally:
        await offsets.close()
    async with started(make_consumer(parts.access, group_id=group)) as consumer:
        tp = TopicPartition(*partition)
        consumer.assign([tp])
        committed = await consumer.committed(tp)
        key = WATERMARK.key(*partition)
        (mark,) = await parts.store.read([key])
        if not mark:
            raise Failure(f"the state has no place in {place}: start a worker, and let it rebuild the state first")
        since, until = max(int(mark), committed or 0), end if to is None else to
        if not since < until <= end:
            raise Failure(f"{place} was read to offset {since} and ends at {end}: nothing to skip up to {until}")
        done = {"topic": partition.topic, "partition": partition.partition, "since": since, "until": until}
        if dry_run:
            return done | {"offsets": until - since, "dry_run": True}
        write(audit, "skip", [{**done, "group": group, "reason": reason}])
        await _move(parts, partition, mark, since, until)
        await consumer.commit({tp: until})  # which the broker refuses where a worker has joined the group meanwhile
    return done | {"offsets": until - since, "dry_run": False}


async def _move(parts: Parts, partition: TP, mark: bytes, since: int, until: int) -> None:
    """Move the watermark, and count what it passes as a gap: consumed, and in no state."""
    key, now = WATERMARK.key(*partition), parts.clock.now_ms()
    change = Change(checks={key: mark}, sets={key: (str(until).encode(), FOREVER)})
    kind = next(kind for kind in kinds() if parts.topics.of(kind) == partition.topic)
    count_gap(change, kind, until - since, now, parts.policy.lookback)
    if await parts.store.apply(change):
        raise Failure("the state has moved meanwhile: a worker runs")


async def _no_worker(parts: Parts) -> None:
    group = parts.settings.group
    async with started(AIOKafkaAdminClient(**client_options(parts.access), request_timeout_ms=10_000)) as admin:
        (answer,) = await admin.describe_consumer_groups([group])
    members = sum(len(described[MEMBERS]) for described in answer.groups)
    if members:
        raise Failure(f"{members} workers of the group {group} run: stop them first, so that none is at these records")
