"""Waits for topics, which must exist before Faust subscribes. Creates missing ones where the brokers permit it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from schemas.settings import KafkaAccess
from schemas.topics import broker_settings
from streams.kafka.client import client_options, started
from streams.kafka.transport import KAFKA_ERRORS
from streams.retry import Retry, TryAgain, reason_of

log = structlog.get_logger(__name__)
PARTITIONS = 4
REPLICAS = 3
IN_SYNC = 2
"""Replicas that have a record before its producer hears so, in topics of REPLICAS: the loss of one loses none."""
MIN_IN_SYNC = "min.insync.replicas"
RETENTION, CLEANUP = "retention.ms", "cleanup.policy"
DAY_MS = 86_400_000
NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


async def wait_for_topics(
    access: KafkaAccess,
    names: Iterable[str],
    partitions: int = PARTITIONS,
    keep: Mapping[str, int] = NOTHING,
    compacted: Collection[str] = (),
) -> None:
    """Return once every topic has a leader for each partition; wait for as long as that takes, and log it. Tells of
    topics that can lose what was acknowledged, or delete it earlier than needed. `keep`: the milliseconds for which a
    topic must keep its records. `compacted` topics must keep the last record of each key for ever."""
    wanted = list(names)
    missing = wanted

    async def look() -> None:
        nonlocal missing
        missing = wanted
        missing = await _missing(access, wanted, partitions, keep, compacted)
        if missing:
            raise TryAgain("not there yet")

    def noticed(error: BaseException, failures: int, pause: float) -> None:
        reason = str(error) if isinstance(error, TryAgain) else reason_of(error)
        log.warning("waiting_for_topics", topics=missing, brokers=access.brokers, reason=reason, seconds=pause)

    await Retry().call(look, (TryAgain, *KAFKA_ERRORS), noticed=noticed)


async def _missing(
    access: KafkaAccess, names: list[str], partitions: int, keep: Mapping[str, int], compacted: Collection[str]
) -> list[str]:
    """The topics that are still missing after those that were missing have been created."""
    async with started(AIOKafkaAdminClient(**client_options(access), request_timeout_ms=5_000)) as admin:
        absent = await _absent(admin, names)
        if absent:
            cluster = await admin.describe_cluster()
            replication = min(REPLICAS, len(cluster["brokers"]))
            copies = {MIN_IN_SYNC: str(IN_SYNC)} if replication > IN_SYNC else {}
            new = [
                NewTopic(
                    name,
                    partitions,
                    replication,
                    topic_configs=copies
                    | broker_settings(name)
                    | ({CLEANUP: "compact"} if name in compacted else _kept(keep.get(name))),
                )
                for name in absent
            ]
            try:
                await admin.create_topics(new)
            except KafkaError as error:
                log.info("topics_not_created", topics=absent, reason=reason_of(error))
            absent = await _absent(admin, names)
        if not absent:
            await _tell_of_unfit(admin, names, keep, compacted)
        return absent


def _kept(milliseconds: int | None) -> dict[str, str]:
    """The settings of a topic that keeps its records for so long, and a day more to read the oldest."""
    return {RETENTION: str(milliseconds + DAY_MS), CLEANUP: "delete"} if milliseconds is not None else {}


async def _tell_of_unfit(
    admin: AIOKafkaAdminClient, names: list[str], keep: Mapping[str, int], compacted: Collection[str]
) -> None:
    """Log each topic of which the loss of one broker can lose acknowledged records, where there are brokers enough for
    better, and each that deletes records before their time, by age or by key. Nothing is changed: a topic belongs to
    who made it."""
    wanted = dict.fromkeys((MIN_IN_SYNC, RETENTION, CLEANUP))
    try:
        answers = await admin.describe_configs(
            [ConfigResource(ConfigResourceType.TOPIC, name, wanted) for name in names]
        )
        enough = len((await admin.describe_cluster())["brokers"]) >= REPLICAS
        described = await admin.describe_topics(names)
    except KAFKA_ERRORS as error:  # brokers that don't let us ask
        log.info("topics_not_described", reason=reason_of(error))
        return
    # Another broker than before may answer, one that does not know of a new topic's partitions yet.
    replicas = {
        topic["topic"]: min(len(partition["replicas"]) for partition in topic["partitions"])
        for topic in described
        if topic["partitions"]
    }
    for resource in (resource for answer in answers for resource in answer.resources):
        name, entries = resource[3], {entry[0]: entry[1] for entry in resource[4]}
        retention, cleanup = int(entries.get(RETENTION) or -1), entries.get(CLEANUP) or ""
        in_sync = int(entries.get(MIN_IN_SYNC) or IN_SYNC)
        if enough and (in_sync < IN_SYNC or replicas.get(name, REPLICAS) < REPLICAS):
            log.warning(
                "topic_can_lose_records",
                topic=name,
                replicas=replicas.get(name),
                min_in_sync=in_sync,
                consequence="a record that was acknowledged can be lost with one broker",
                remedy=f"{REPLICAS} replicas and {MIN_IN_SYNC}={IN_SYNC}",
            )
        if name in keep and (0 <= retention < keep[name] or "compact" in cleanup):
            log.warning(
                "topic_forgets",
                topic=name,
                retention_days=round(retention / DAY_MS, 2) if retention >= 0 else None,
                needed_days=round(keep[name] / DAY_MS, 2),
                cleanup_policy=cleanup,
                consequence="baselines, the memory of answered requests and a rebuilt state lack what is deleted early",
                remedy=f"{RETENTION} of at least {keep[name]} and {CLEANUP}=delete",
            )
        if name in compacted and "delete" in cleanup and retention >= 0:
            log.warning(
                "topic_forgets",
                topic=name,
                cleanup_policy=cleanup,
                consequence="what counts until somebody says otherwise, as a suspension does, ends with its record",
                remedy=f"{CLEANUP}=compact",
            )


async def _absent(admin: AIOKafkaAdminClient, names: list[str]) -> list[str]:
    described = await admin.describe_topics(names)
    whole = {
        topic["topic"]
        for topic in described
        if topic["error_code"] == 0 and topic["partitions"] and all(p["error_code"] == 0 for p in topic["partitions"])
    }
    return [name for name in names if name not in whole]
