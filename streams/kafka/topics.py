"""Waits for topics, which must exist before Faust subscribes. Creates missing ones where the brokers permit it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

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
            await _tell_of_weak(admin, names)
            await _tell_of_forgetful(admin, keep)
            await _tell_of_deleting(admin, [name for name in names if name in compacted])
        return absent


def _kept(milliseconds: int | None) -> dict[str, str]:
    """The settings of a topic that keeps its records for so long, and a day more to read the oldest."""
    return {RETENTION: str(milliseconds + DAY_MS), CLEANUP: "delete"} if milliseconds is not None else {}


async def _tell_of_forgetful(admin: AIOKafkaAdminClient, keep: Mapping[str, int]) -> None:
    """Log each topic that deletes records before their time, by age or by key."""
    for name, entries in (await _settings(admin, keep, (RETENTION, CLEANUP))).items():
        retention = int(entries.get(RETENTION) or -1)
        if 0 <= retention < keep[name] or "compact" in entries.get(CLEANUP, ""):
            log.warning(
                "topic_forgets",
                topic=name,
                retention_days=round(retention / DAY_MS, 2) if retention >= 0 else None,
                needed_days=round(keep[name] / DAY_MS, 2),
                cleanup_policy=entries.get(CLEANUP),
                consequence="baselines, the memory of answered requests and a rebuilt state lack what is deleted early",
                remedy=f"{RETENTION} of at least {keep[name]} and {CLEANUP}=delete",
            )


async def _tell_of_deleting(admin: AIOKafkaAdminClient, names: list[str]) -> None:
    """Log each topic that deletes by age what must be kept for ever."""
    for name, entries in (await _settings(admin, names, (RETENTION, CLEANUP))).items():
        if "delete" in entries.get(CLEANUP, "") and int(entries.get(RETENTION) or -1) >= 0:
            log.warning(
                "topic_forgets",
                topic=name,
                cleanup_policy=entries.get(CLEANUP),
                consequence="what counts until somebody says otherwise, as a suspension does, ends with its record",
                remedy=f"{CLEANUP}=compact",
            )


async def _settings(
    admin: AIOKafkaAdminClient, topics: Iterable[str], wanted: Iterable[str]
) -> dict[str, dict[str, str]]:
    """These settings of the topics; nothing from brokers that don't let us ask."""
    asked = [ConfigResource(ConfigResourceType.TOPIC, name, dict.fromkeys(wanted)) for name in topics]
    answers: list[Any] = []
    try:
        answers = await admin.describe_configs(asked) if asked else []
    except KAFKA_ERRORS as error:
        log.info("topics_not_described", reason=reason_of(error))
    resources = (resource for answer in answers for resource in answer.resources)
    return {resource[3]: {entry[0]: entry[1] for entry in resource[4]} for resource in resources}


async def _tell_of_weak(admin: AIOKafkaAdminClient, names: list[str]) -> None:
    """Log each topic of which the loss of one broker can lose acknowledged records, where there are brokers enough for
    better. Nothing is changed: a topic belongs to who made it."""
    try:
        if len((await admin.describe_cluster())["brokers"]) < REPLICAS:
            return
        described = await admin.describe_topics(names)
    except KAFKA_ERRORS as error:  # brokers that don't let us ask
        log.info("topics_not_described", reason=reason_of(error))
        return
    replicas = {
        topic["topic"]: min(len(partition["replicas"]) for partition in topic["partitions"]) for topic in described
    }
    for name, entries in (await _settings(admin, names, (MIN_IN_SYNC,))).items():
        in_sync = int(entries.get(MIN_IN_SYNC) or IN_SYNC)
        if in_sync < IN_SYNC or replicas.get(name, REPLICAS) < REPLICAS:
            log.warning(
                "topic_can_lose_records",
                topic=name,
                replicas=replicas.get(name),
                min_in_sync=in_sync,
                consequence="a record that was acknowledged can be lost with one broker",
                remedy=f"{REPLICAS} replicas and {MIN_IN_SYNC}={IN_SYNC}",
            )


async def _absent(admin: AIOKafkaAdminClient, names: list[str]) -> list[str]:
    described = await admin.describe_topics(names)
    whole = {
        topic["topic"]
        for topic in described
        if topic["error_code"] == 0 and topic["partitions"] and all(p["error_code"] == 0 for p in topic["partitions"])
    }
    return [name for name in names if name not in whole]
