"""Waits for topics, which must exist before Faust subscribes. Creates missing ones where the brokers permit it."""

from __future__ import annotations

from collections.abc import Iterable

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from schemas.settings import KafkaAccess
from streams.kafka.client import KAFKA_ERRORS, client_options, started
from streams.retry import Retry, TryAgain, reason_of

log = structlog.get_logger(__name__)
PARTITIONS = 4


async def wait_for_topics(access: KafkaAccess, names: Iterable[str], partitions: int = PARTITIONS) -> None:
    """Return once every topic has a leader for each partition; wait for as long as that takes, and log it."""
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
            replication = min(3, len(cluster["brokers"]))
            try:
                await admin.create_topics([NewTopic(name, partitions, replication) for name in absent])
            except KafkaError as error:
                log.info("topics_not_created", topics=absent, reason=reason_of(error))
            absent = await _absent(admin, names)
        return absent


async def _absent(admin: AIOKafkaAdminClient, names: list[str]) -> list[str]:
    described = await admin.describe_topics(names)
    whole = {
        topic["topic"]
        for topic in described
        if topic["error_code"] == 0 and topic["partitions"] and all(p["error_code"] == 0 for p in topic["partitions"])
    }
    return [name for name in names if name not in whole]
