"""Topics have to be there before Faust subscribes. Deployment makes them; where we may, we make what is missing."""

from __future__ import annotations

from collections.abc import Iterable

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from schemas.settings import KafkaAccess
from streams.kafka.client import client_options
from streams.retry import Retry, TryAgain

log = structlog.get_logger(__name__)
PARTITIONS = 4


async def wait_for_topics(access: KafkaAccess, names: Iterable[str], partitions: int = PARTITIONS) -> None:
    """Returns once every topic has a leader for each partition; waits for as long as that takes, and says so."""
    wanted = list(names)
    missing = wanted

    async def look() -> None:
        nonlocal missing
        missing = wanted
        missing = await _missing(access, wanted, partitions)
        if missing:
            raise TryAgain("not there yet")

    def noticed(error: BaseException, failures: int, pause: float) -> None:
        reason = str(error) if isinstance(error, TryAgain) else f"{type(error).__name__}: {error}"
        log.warning("waiting_for_topics", topics=missing, brokers=access.brokers, reason=reason, seconds=pause)

    await Retry().call(look, (TryAgain, KafkaError, OSError, TimeoutError), noticed=noticed)


async def _missing(access: KafkaAccess, names: list[str], partitions: int) -> list[str]:
    admin = AIOKafkaAdminClient(**client_options(access), request_timeout_ms=5_000)
    await admin.start()
    try:
        absent = await _absent(admin, names)
        if absent:
            cluster = await admin.describe_cluster()
            replication = min(3, len(cluster["brokers"]))
            try:
                await admin.create_topics([NewTopic(name, partitions, replication) for name in absent])
            except KafkaError as error:
                log.info("topics_not_created", topics=absent, reason=f"{type(error).__name__}: {error}")
            absent = await _absent(admin, names)
        return absent
    finally:
        await admin.close()


async def _absent(admin: AIOKafkaAdminClient, names: list[str]) -> list[str]:
    described = await admin.describe_topics(names)
    whole = {
        topic["topic"]
        for topic in described
        if topic["error_code"] == 0 and topic["partitions"] and all(p["error_code"] == 0 for p in topic["partitions"])
    }
    return [name for name in names if name not in whole]
