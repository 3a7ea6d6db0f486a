"""What real brokers keep of the topics that a worker makes, and what they say of others."""

from __future__ import annotations

from structlog.testing import capture_logs

from rampgate.local.services.broker import MockBroker
from rampgate.local.services.kafka import KafkaCluster
from schemas.settings import KafkaAccess
from streams.kafka.topics import DAY_MS, wait_for_topics


async def told(bootstrap: str, keep: dict[str, int]) -> dict[str, float | None]:
    with capture_logs() as lines:
        await wait_for_topics(KafkaAccess((bootstrap,)), list(keep), keep=keep)
    return {line["topic"]: line["retention_days"] for line in lines if line["event"] == "topic_forgets"}


async def test_a_made_topic_keeps_baselines_and_one_that_forgets_earlier_is_told_of(
    kafka: KafkaCluster, topic_prefix: str
) -> None:
    """Kafka's own default is a week; it is set here, since the local brokers have another."""
    made, default, compacted = (f"{topic_prefix}{name}" for name in ("made", "default", "compacted"))
    kafka.create_topics([default], config={"retention.ms": str(7 * DAY_MS)})
    kafka.create_topics([compacted], config={"cleanup.policy": "compact", "retention.ms": "-1"})
    keep = dict.fromkeys((made, default, compacted), 90 * DAY_MS)
    assert await told(kafka.bootstrap, keep) == {default: 7.0, compacted: None}
    assert await told(kafka.bootstrap, {made: 91 * DAY_MS}) == {}
    assert await told(kafka.bootstrap, {made: 92 * DAY_MS}) == {made: 91.0}


async def test_a_broker_in_memory_holds_up_no_start(mock_broker: MockBroker, topic_prefix: str) -> None:
    assert await told(mock_broker.bootstrap, {f"{topic_prefix}verdicts": 90 * DAY_MS}) == {}
