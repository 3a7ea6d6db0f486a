"""Waits for topics, which must exist before Faust subscribes. Creates missing ones where the brokers permit it."""

from __future__ import annotations

from collections.abc import Iterable

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from schemas.settings import KafkaAccess
from streams.kafka.client import KAFKA_ERRORS, client_options, started
from streams.retry import Retry, TryAgain, reason_of

log = structlog.get_logger(__name__)
PARTITIONS = 4
REPLICAS = 3
IN_SYNC = 2
"""Replicas that have a record before its producer hears so, in topics of REPLICAS: the loss of one loses none."""
MIN_IN_SYNC = "min.insync.replicas"


async def wait_for_topics(access: KafkaAccess, names: Iterable[str], partitions: int = PARTITIONS) -> None:
    """Return once every topic has a leader for each partition; wait for as long as that takes, and log it. Tells of
    topics that can lose what was acknowledged."""
    wanted = list(names)
    missing = wanted

    async def look() -> None:
        nonlocal missing
        missing = wanted
        missing = await _missing(access, wanted, partitions)
        if missing:
            raise TryAgain("not there yet")

    def noticed(error: BaseException, failures: int, pause: float) -> None:
        reason = str(error) if isinstance(error, TryAgain) else reason_of(error)
        log.warning("waiting_for_topics", topics=missing, brokers=access.brokers, reason=reason, seconds=pause)

    await Retry().call(look, (TryAgain, *KAFKA_ERRORS), noticed=noticed)


async def _missing(access: KafkaAccess, names: list[str], partitions: int) -> list[str]:
    """The topics that are still missing after those that were missing have been created."""
    async with started(AIOKafkaAdminClient(**client_options(access), request_timeout_ms=5_000)) as admin:
        absent = await _absent(admin, names)
        if absent:
            cluster = await admin.describe_cluster()
            replication = min(REPLICAS, len(cluster["brokers"]))
            configs = {MIN_IN_SYNC: str(IN_SYNC)} if replication > IN_SYNC else {}
            try:
                await admin.create_topics(
                    [NewTopic(name, partitions, replication, topic_configs=configs) for name in absent]
                )
            except KafkaError as error:
                log.info("topics_not_created", topics=absent, reason=reason_of(error))
            absent = await _absent(admin, names)
        if not absent:
            await _tell_of_weak(admin, names)
        return absent


async def _tell_of_weak(admin: AIOKafkaAdminClient, names: list[str]) -> None:
    """Log each topic of which the loss of one broker can lose acknowledged records, where there are brokers enough for
    better. Nothing is changed: a topic belongs to who made it."""
    try:
        if len((await admin.describe_cluster())["brokers"]) < REPLICAS:
            return
        asked = [ConfigResource(ConfigResourceType.TOPIC, name, {MIN_IN_SYNC: None}) for name in names]
        answers = await admin.describe_configs(asked)
        described = await admin.describe_topics(names)
    except KAFKA_ERRORS as error:  # brokers that don't let us ask
        log.info("topics_not_described", reason=reason_of(error))
        return
    replicas = {
        topic["topic"]: min(len(partition["replicas"]) for partition in topic["partitions"]) for topic in described
    }
    for resource in (one for answer in answers for one in answer.resources):
        name, entries = resource[3], resource[4]
        in_sync = next((int(entry[1]) for entry in entries if entry[0] == MIN_IN_SYNC), IN_SYNC)
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
