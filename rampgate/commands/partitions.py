"""Runs `rampgate resume` and `skip`: where the workers of a group read on in a partition (contracts §5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.options import DryRunOption
from rampgate.report.model import Report

if TYPE_CHECKING:
    from faust.types import TP

    from rampgate.wiring import Parts

MEMBERS = 5
"""Where a described group has its members."""


def resume_report(told: Mapping[str, Any]) -> Report:
    result = f"bad records below offset {told['until']} go to the dead letters"
    return Report(f"{told['topic']}/{told['partition']}", result, "pass")


@command(resume_report, flags="kafka redis")
async def resume(
    context: Context,
    place: Annotated[str, Argument(help="The paused partition, topic/number, as /readyz names it")],
    until: Annotated[int | None, Option(min=0, help="Offset of the first record not let through")] = None,
) -> Document:
    """Let the bad records of a paused partition go to the dead letters; its worker then reads on within seconds.

    A partition pauses when `bad_records_in_a_row` of its records can't be decoded. This lets through those that lie
    there now, or below --until; ones that come later count again. Stop or mend their producer first.

    Example: rampgate resume rampgate.thumbs/3
    """
    from agents.keys import LET_THROUGH
    from agents.ports import Change
    from streams.kafka.offsets import KafkaOffsets

    async with context.parts() as parts:
        partition = await partition_of(parts, place)
        if until is None:
            offsets = KafkaOffsets(parts.access, tries=2)
            try:
                until = (await offsets.ends([partition]))[partition]
            finally:
                await offsets.close()
        expires = parts.clock.now_ms() + parts.policy.lookback
        await parts.store.apply(Change(sets={LET_THROUGH.key(*partition): (str(until).encode(), expires)}))
    return Document({"topic": partition.topic, "partition": partition.partition, "until": until})


async def partition_of(parts: Parts, place: str) -> TP:
    """The partition of signals or traces that `topic/number` names. Raises Failure for any other place, Unavailable."""
    from faust.types import TP

    from schemas.topics import consumed
    from streams.kafka.reading import partitions_of

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


def skip_report(told: Mapping[str, Any]) -> Report:
    verb = "would be skipped" if told["dry_run"] else "are skipped"
    result = f"{told['offsets']} offsets from {told['since']} on {verb}; the group reads on from {told['until']}"
    return Report(f"{told['topic']}/{told['partition']}", result, "pass")


@command(skip_report, flags="kafka redis", gone={"--group": "RAMPGATE_GROUP names it"})
async def skip(
    context: Context,
    place: Annotated[str, Argument(help="The partition, topic/number")],
    reason: Annotated[str, Option(help="Why; it goes into the audit")],
    audit: Annotated[Path, Option(help="File to which the audit's line is appended")],
    to: Annotated[int | None, Option(min=0, help="Offset to read on from; by default the partition's end")] = None,
    dry_run: DryRunOption = False,
) -> Document:
    """Leave records of a partition unread, for good: the group (RAMPGATE_GROUP) reads on from a later offset.

    Only while no worker of the group runs. What is skipped counts as a gap, so that conservation shows it; thumbs of
    it come back with `rampgate sweep`. Exit code 2: workers run, or there is nothing to skip.

    Example: rampgate skip rampgate.thumbs/3 --to 4711 --reason "a load test's records" --audit skips.jsonl
    """
    from streams.kafka.transport import KAFKA_ERRORS
    from streams.retry import reason_of

    if not reason.strip():
        raise Failure("--reason: say why these records are not to be read")
    async with context.parts() as parts:
        try:
            return Document(await _skipped(parts, place, to, reason, audit, dry_run=dry_run))
        except KAFKA_ERRORS as error:
            raise Failure(f"Kafka at {parts.settings.kafka}: {reason_of(error)}") from error


async def _skipped(
    parts: Parts, place: str, to: int | None, reason: str, audit: Path, *, dry_run: bool
) -> dict[str, Any]:
    """Write the audit's line, then move the place; returns what was skipped. Raises Failure where workers run or there
    is nothing to skip, Unavailable and KAFKA_ERRORS.

    The state's watermark says where workers read on, so it is moved first, together with the count of what is skipped;
    then the group's committed offset. Between the two a worker passes over what the watermark has passed.
    """
    from aiokafka import TopicPartition

    from agents.keys import WATERMARK
    from rampgate.overrides import write
    from streams.kafka.client import make_consumer, started
    from streams.kafka.offsets import KafkaOffsets

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
        if not dry_run:
            write(audit, "skip", [{**done, "group": group, "reason": reason}])
            await _move(parts, partition, mark, since, until)
            await consumer.commit({tp: until})  # which the broker refuses where a worker has joined the group meanwhile
    return done | {"offsets": until - since, "dry_run": dry_run}


async def _move(parts: Parts, partition: TP, mark: bytes, since: int, until: int) -> None:
    """Move the watermark, and count what it passes as a gap: consumed, and in no state."""
    from agents.join.counting import count_gap
    from agents.keys import FOREVER, WATERMARK
    from agents.ports import Change
    from schemas.signals import kinds

    key, now = WATERMARK.key(*partition), parts.clock.now_ms()
    change = Change(checks={key: mark}, sets={key: (str(until).encode(), FOREVER)})
    kind = next(kind for kind in kinds() if parts.topics.of(kind) == partition.topic)
    count_gap(change, kind, until - since, now, parts.policy.lookback)
    if await parts.store.apply(change):
        raise Failure("the state has moved meanwhile: a worker runs")


async def _no_worker(parts: Parts) -> None:
    from aiokafka.admin import AIOKafkaAdminClient

    from streams.kafka.client import client_options, started

    group = parts.settings.group
    async with started(AIOKafkaAdminClient(**client_options(parts.access), request_timeout_ms=10_000)) as admin:
        (answer,) = await admin.describe_consumer_groups([group])
    members = sum(len(described[MEMBERS]) for described in answer.groups)
    if members:
        raise Failure(f"{members} workers of the group {group} run: stop them first, so that none is at these records")
