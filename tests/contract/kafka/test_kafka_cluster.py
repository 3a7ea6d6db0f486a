"""Three nodes survive the death of one; clients of a proxied cluster can be cut off from it."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from structlog.testing import capture_logs

from rampgate.local.services.kafka import KafkaCluster
from schemas.settings import KafkaAccess
from streams.kafka.topics import wait_for_topics


@pytest.mark.slow
async def test_acknowledged_writes_go_on_when_one_of_three_nodes_dies(kafka: KafkaCluster) -> None:
    with KafkaCluster(3) as cluster:
        cluster.create_topics(["events"])
        producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", request_timeout_ms=20_000)
        await producer.start()
        try:
            await producer.send_and_wait("events", b"1", partition=0)
            cluster.nodes[0].kill()
            for partition in range(4):
                await producer.send_and_wait("events", b"2", partition=partition)
            cluster.start()
            cluster.nodes[1].restart()
            cluster.wait_ready(3)
            await producer.send_and_wait("events", b"3", partition=1)
        finally:
            await producer.stop()


@pytest.mark.slow
async def test_of_three_nodes_a_worker_uses_all_and_tells_of_a_topic_that_does_not(kafka: KafkaCluster) -> None:
    with KafkaCluster(3) as cluster:
        cluster.create_topics(["weak"], replication=3)
        cluster.create_topics(["single"], replication=1)
        with capture_logs() as lines:
            await wait_for_topics(KafkaAccess((cluster.bootstrap,)), ["made", "weak", "single"])
    told = {line["topic"]: line["replicas"] for line in lines if line["event"] == "topic_can_lose_records"}
    assert told == {"weak": 3, "single": 1}


@pytest.mark.slow
async def test_a_proxied_client_reaches_the_brokers_only_through_the_proxy(kafka: KafkaCluster) -> None:
    with pytest.raises(ValueError, match="proxied=True"):
        _ = kafka.proxied_bootstrap
    with KafkaCluster(proxied=True) as cluster:
        cluster.create_topics(["events"])
        proxy = cluster.nodes[0].proxy
        assert proxy is not None
        producer = AIOKafkaProducer(bootstrap_servers=cluster.proxied_bootstrap, request_timeout_ms=1500)
        await producer.start()
        try:
            await producer.send_and_wait("events", b"1")
            proxy.refuse()
            with pytest.raises(KafkaError):
                await producer.send_and_wait("events", b"2")
            proxy.heal()
            await producer.send_and_wait("events", b"3")
        finally:
            await producer.stop()
