"""Each embedded service is the real thing: it starts, answers and comes back on the same port."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import redis
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from rampgate.local.services.broker import MockBroker
from rampgate.local.services.dynamodb import DynamoDBLocal
from rampgate.local.services.http_services import LocalOpik
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.redis import RedisServer


@pytest.fixture(params=["kafka", "mock_broker"])
def broker(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


async def test_what_is_produced_is_consumed_once_per_group(broker: Any, topic_prefix: str) -> None:
    topic, group = f"{topic_prefix}events", f"{topic_prefix}group"
    broker.create_topics([topic])  # inside a running event loop, on purpose
    await _produce(broker.bootstrap, topic, range(10))
    first = await _consume(broker.bootstrap, topic, group, 10)
    assert sorted(first) == list(range(10))
    await _produce(broker.bootstrap, topic, range(10, 15))
    assert sorted(await _consume(broker.bootstrap, topic, group, 5)) == list(range(10, 15))


async def test_first_and_last_offsets_are_known(broker: Any, topic_prefix: str) -> None:
    topic = f"{topic_prefix}events"
    broker.create_topics([topic])
    await _produce(broker.bootstrap, topic, range(3), partition=1)
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
    await consumer.start()
    try:
        partition = TopicPartition(topic, 1)
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: 3}
    finally:
        await consumer.stop()


@pytest.mark.parametrize(("service", "expected"), [("kafka", 2), ("mock_broker", None)])
async def test_only_real_kafka_finds_offsets_by_time(
    request: pytest.FixtureRequest, topic_prefix: str, service: str, expected: int | None
) -> None:
    """The mock answers "nothing that late" to any time, so a rewind on it must not trust that answer."""
    broker, topic = request.getfixturevalue(service), f"{topic_prefix}events"
    broker.create_topics([topic])
    start = int(time.time() * 1000) - 30 * 86_400_000  # older than Kafka's default retention
    await _produce(broker.bootstrap, topic, range(4), partition=0, start=start)
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        found = (await consumer.offsets_for_times({partition: start + 1500}))[partition]
        assert (found.offset if found else None) == expected
    finally:
        await consumer.stop()


async def test_kafka_keeps_records_and_commits_over_restart_and_kill() -> None:
    """Of its own: after a kill a broker looks through all its topics, and the session's has hundreds."""
    topic, group = "events", "group"
    with KafkaCluster() as kafka:
        address = kafka.bootstrap
        kafka.create_topics([topic], partitions=2, config={"retention.ms": "3600000"})
        await _produce(address, topic, range(4))
        assert len(await _consume(address, topic, group, 4)) == 4
        kafka.nodes[0].kill()
        kafka.start()
        await _produce(address, topic, range(4, 6))
        assert kafka.bootstrap == address
        assert sorted(await _consume(address, topic, group, 2)) == [4, 5]


def test_a_refused_topic_is_an_error(kafka: KafkaCluster, topic_prefix: str) -> None:
    with pytest.raises(KafkaError):
        kafka.create_topics([f"{topic_prefix}x"], replication=3)
    kafka.create_topics([f"{topic_prefix}y"])
    kafka.create_topics([f"{topic_prefix}y"])  # but not one that exists


def test_redis_answers_and_comes_back_empty_on_the_same_port() -> None:
    with RedisServer() as server, redis.Redis.from_url(server.url) as client:
        url = server.url
        client.set("key", "value")
        assert client.get("key") == b"value"
        server.restart()
        assert server.url == url
        assert client.get("key") is None
        server.pause()
        with pytest.raises(redis.TimeoutError), redis.Redis.from_url(url, socket_timeout=0.2, retry=None) as other:
            other.ping()
        server.resume()
        assert client.ping()


def test_redis_with_password_limit_and_file_refuses_and_remembers() -> None:
    with RedisServer(password='p w"@/', maxmemory="3mb", persistent=True) as server:
        with redis.Redis(port=server.port, retry=None) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.get("key")
        with redis.Redis.from_url(server.url) as client:
            client.set("key", "value")
            server.restart()
            assert client.get("key") == b"value"
            with pytest.raises(redis.OutOfMemoryError):
                _fill(client)


@pytest.mark.parametrize("password", [None, "secret ü"])
def test_redis_is_ready_only_once_it_has_read_its_file(password: str | None) -> None:
    with RedisServer(password=password, persistent=True) as server, redis.Redis.from_url(server.url) as client:
        with client.pipeline(transaction=False) as pipe:
            for number in range(12_000):  # the server answers while it reads, once per 1,024 commands
                pipe.set(f"key {number}", number)
            pipe.execute()
        with (server.folder / "redis.conf").open("a") as config:
            config.write("key-load-delay 100\n")
        server.restart()
        with redis.Redis.from_url(server.url, retry=None) as other:
            assert other.get("key 11999") == b"11999"


def test_dynamodb_streams_what_happened_to_an_item(dynamodb: DynamoDBLocal, topic_prefix: str) -> None:
    table = f"{topic_prefix}thumbs"
    arn, client, streams = dynamodb.create_thumbs_table(table), dynamodb.client(), dynamodb.streams()
    client.put_item(TableName=table, Item={"MessageId": {"S": "m1"}, "Thumbs": {"S": "up"}})
    client.put_item(TableName=table, Item={"MessageId": {"S": "m1"}, "Thumbs": {"S": "down"}})
    client.delete_item(TableName=table, Key={"MessageId": {"S": "m1"}})
    shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
    iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    records = streams.get_records(ShardIterator=iterator["ShardIterator"])["Records"]
    assert [record["eventName"] for record in records] == ["INSERT", "MODIFY", "REMOVE"]
    assert records[1]["dynamodb"]["OldImage"]["Thumbs"] == {"S": "up"}
    assert records[1]["dynamodb"]["NewImage"]["Thumbs"] == {"S": "down"}


def test_dynamodb_comes_back_empty_on_the_same_port() -> None:
    with DynamoDBLocal() as service:
        service.create_thumbs_table("thumbs")
        endpoint = service.endpoint
        service.restart()
        assert service.endpoint == endpoint
        assert service.client().list_tables()["TableNames"] == []


def test_the_mock_broker_makes_topics_with_four_partitions_alone() -> None:
    with MockBroker() as broker:
        assert broker.bootstrap.startswith("127.0.0.1:")
        with pytest.raises(ValueError, match="4 partitions"):
            broker.create_topics(["c"], partitions=2)


def test_local_opik_answers_and_restarts(local_opik: LocalOpik) -> None:
    url = local_opik.url
    local_opik.restart()
    assert local_opik.url == url
    assert url.endswith("/api")


def _fill(client: redis.Redis) -> None:
    for number in range(100):
        client.set(f"big{number}", b"x" * 100_000)


async def _produce(
    bootstrap: str, topic: str, numbers: range, partition: int | None = None, start: int | None = None
) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    await producer.start()
    try:
        for index, number in enumerate(numbers):
            stamp = None if start is None else start + 1000 * index
            await producer.send_and_wait(topic, b"%d" % number, partition=partition, timestamp_ms=stamp)
    finally:
        await producer.stop()


async def _consume(bootstrap: str, topic: str, group: str, count: int) -> list[int]:
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=3000,  # the mock broker rebalances only after most of it
        heartbeat_interval_ms=500,
    )
    await consumer.start()
    numbers: list[int] = []
    try:
        async with asyncio.timeout(30):
            while len(numbers) < count:
                for records in (await consumer.getmany(timeout_ms=300)).values():
                    numbers += [int(record.value) for record in records]
        await consumer.commit()
    finally:
        await consumer.stop()
    return numbers
