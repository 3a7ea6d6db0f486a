"""Record batches made byte by byte, also such as no client would make, and a way to send them to a real Kafka."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Sequence
from pathlib import Path

from aiokafka import AIOKafkaProducer, TopicPartition, codec
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from rampgate.local.services.kafka import KafkaCluster

HEAD = 61
NOT_LEADER = 6
NUMBERS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
PLACEHOLDER, MISNAMED = "misnamed", b"mi\xff\xfename"
"""A header of the first name is sent under the second, which is no UTF-8."""
NOW = time.time_ns() // 1_000_000

Plain = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]


def record(value: bytes | None, key: bytes | None = None, *headers: tuple[str, bytes | None]) -> Plain:
    return key, value, headers


def batch(
    *records: Plain, base: int = 0, compression: str = "", timestamp: int = NOW, offsets: Sequence[int] = ()
) -> bytes:
    """A batch as Kafka holds it, from offset `base` on; `offsets`: those of the records, counted from there."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 31)
    for number, (key, value, headers) in zip(offsets or range(len(records)), records, strict=True):
        assert builder.append(number, timestamp, key, value, list(headers)) is not None
    made = bytes(builder.build())
    body = made[HEAD:].replace(PLACEHOLDER.encode(), MISNAMED)
    return compressed(made[:HEAD] + body, compression, base)


def compressed(raw: bytes, compression: str, base: int = 0) -> bytes:
    """The batch with its body compressed."""
    if compression:
        body = bytes(getattr(codec, f"{compression}_encode")(raw[HEAD:]))
        raw = raw[:21] + struct.pack(">h", NUMBERS[compression]) + raw[23:HEAD] + body
    return sealed(struct.pack(">q", base) + raw[8:])


def sealed(raw: bytes) -> bytes:
    """The batch with the length and the checksum that its bytes have."""
    raw = raw[:8] + struct.pack(">i", len(raw) - 12) + raw[12:]
    return raw[:17] + struct.pack(">I", calc_crc32c(raw[21:])) + raw[21:]


async def produce(bootstrap: str, topic: str, partition: int, raw: bytes) -> int:
    """Send a batch as it is; the offset that it got."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        await producer.client._wait_on_metadata(topic)
        error = NOT_LEADER
        while error == NOT_LEADER:  # of a topic that has just been made
            leader = producer.client.cluster.leader_for_partition(TopicPartition(topic, partition))
            request = ProduceRequest(None, -1, 10_000, [(topic, [(partition, raw)])])
            answer = await producer.client.send(leader, request)
            ((_, ((_, error, offset, *_),)),) = answer.topics
            if error == NOT_LEADER:
                await producer.client.force_metadata_update()
                await asyncio.sleep(0.1)
        assert error == 0, f"Kafka refuses the batch: error {error}"
        return int(offset)
    finally:
        await producer.stop()


def corrupt(log: Path, offset: int) -> None:
    """Change a byte of the batch at this offset where it lies on a broker's disk. The broker sends it as it is."""
    data, at = log.read_bytes(), 0
    while at + HEAD <= len(data):
        base, length = struct.unpack_from(">qi", data, at)
        assert length > 0
        if base == offset:
            with log.open("r+b") as file:
                file.seek(at + 12 + length - 1)
                file.write(bytes([data[at + 12 + length - 1] ^ 0x10]))
            return
        at += 12 + length
    raise AssertionError(f"{log} has no batch at offset {offset}")


def log_of(kafka: KafkaCluster, topic: str, partition: int = 0) -> Path:
    return kafka.nodes[0].folder / "data" / f"{topic}-{partition}" / f"{0:020}.log"
