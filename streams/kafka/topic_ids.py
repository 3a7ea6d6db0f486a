"""Asks for topic ids: Kafka gives each topic a new one when it is made, also where a topic of its name was before.

aiokafka speaks Metadata up to version 5; ids come with version 10, which brokers have since Kafka 2.8.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from io import BytesIO
from typing import Any

from aiokafka.errors import IncompatibleBrokerVersion, NodeNotReadyError
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

TEXT = CompactString("utf-8")
NO_ID = uuid.UUID(int=0)


class Uuid(AbstractType[uuid.UUID]):
    """Sixteen bytes."""

    @classmethod
    def encode(cls, value: uuid.UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> uuid.UUID:
        return uuid.UUID(bytes=data.read(16))


class TopicsWithIds(Response):
    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(("node_id", Int32), ("host", TEXT), ("port", Int32), ("rack", TEXT), ("tags", TaggedFields)),
        ),
        ("cluster_id", TEXT),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", TEXT),
                ("topic_id", Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class TopicsByName(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = TopicsWithIds
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", Uuid), ("topic", TEXT), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicIds(Request[TopicsByName]):
    """Asks for topics by name, and makes none of them."""

    API_KEY = 3

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics: list[tuple[uuid.UUID, str, dict[int, bytes]]] = [(NO_ID, topic, {}) for topic in topics]

    def build(self, request_struct_class: type[TopicsByName]) -> TopicsByName:
        return request_struct_class(self._topics, False, False, False, {})


async def ask_topic_ids(client: Any, topics: Iterable[str]) -> dict[str, str]:
    """The id of each topic that exists; nothing from brokers that know no ids. `client` is aiokafka's, connected.

    Raises KafkaError.
    """
    node = client.get_random_node()
    if node is None:
        raise NodeNotReadyError("no broker is known")
    try:
        answer = await client.send(node, TopicIds(topics))
    except (IncompatibleBrokerVersion, NotImplementedError):  # aiokafka raises either for a version not in common
        return {}
    return {topic: str(topic_id) for error, topic, topic_id, *_ in answer.topics if not error and topic_id != NO_ID}
