"""What every DeadLetters promises: KafkaDeadLetters on a real Kafka, read back as bytes, beside its twin."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from agents.ports import Unavailable
from rampgate.local.services.kafka import KafkaCluster
from schemas.dead_letters import HEAD_BYTES, DeadLetter
from schemas.outcomes import Cause
from schemas.settings import KafkaAccess
from streams.kafka.client import KafkaDeadLetters, Producer
from tests.fault.ledger.kafka_log import KafkaLog
from tests.fault.ledger.kafka_log import Record as KafkaRecord
from tests.memory_ports import MemoryDeadLetters

MAX = 1_000_000


@dataclass
class Rig:
    """The port, and what lies behind it as (key, value, headers), in the order it was put."""

    letters: KafkaDeadLetters | MemoryDeadLetters
    kafka: KafkaCluster
    topic: str

    async def lying(self, count: int) -> list[tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]]:
        if isinstance(self.letters, MemoryDeadLetters):
            return [letter.encode(MAX) for letter in self.letters.letters]
        found = KafkaLog(self.kafka.bootstrap, "", 1).records(self.topic)
        assert len(found) == count, "each letter once"
        return [(record.key, record.value, list(record.headers)) for record in found]


@pytest.fixture(params=["kafka", "memory"])
async def rig(request: pytest.FixtureRequest, kafka: KafkaCluster, topic_prefix: str) -> AsyncIterator[Rig]:
    if request.param == "memory":
        yield Rig(MemoryDeadLetters(), kafka, "")
        return
    topic = topic_prefix + "dead-letters"
    kafka.create_topics([topic], 1)
    producer = Producer(KafkaAccess((kafka.bootstrap,)))
    yield Rig(KafkaDeadLetters(producer, topic, MAX), kafka, topic)
    await producer.close()


def letter(value: bytes | None, key: bytes | None = b"r-1", headers: Any = (), detail: str = "why") -> DeadLetter:
    record = KafkaRecord("rampgate.thumbs", 3, 17, key, value, headers, 1_800_000_000_000)
    return DeadLetter(record, Cause.MALFORMED, detail, "thumbs.decode", 1_800_000_000_500)


def ours(headers: Sequence[tuple[str, bytes]]) -> dict[str, str]:
    return {n.removeprefix("rampgate."): c.decode() for n, c in headers if n.startswith("rampgate.")}


async def test_key_bytes_and_headers_are_kept_and_ours_say_why(rig: Rig) -> None:
    value = bytes(range(256)) + b'{"half": '
    original = (("trace", b"\x00\xff"), ("trace", b"again"), ("ü", b""))
    await rig.letters.put([letter(value, b"\x00key\xff", original)])
    ((key, kept, headers),) = await rig.lying(1)
    assert (key, kept) == (b"\x00key\xff", value)
    assert [pair for pair in headers if not pair[0].startswith("rampgate.")] == list(original)
    said = ours(headers)
    assert len(said.pop("replay-id")) == 36
    assert len(said.pop("mac")) == 64
    assert said == {
        "cause": "malformed",
        "detail": "why",
        "topic": "rampgate.thumbs",
        "partition": "3",
        "offset": "17",
        "timestamp": "1800000000000",
        "attempts": "1",
        "failed-at": "1800000000500",
        "stage": "thumbs.decode",
    }


@pytest.mark.parametrize(("key", "value"), [(None, None), (None, b"v"), (b"k", None), (b"", b"")])
async def test_a_record_without_key_or_value_is_a_letter_without_them(
    rig: Rig, key: bytes | None, value: bytes | None
) -> None:
    await rig.letters.put([letter(value, key)])
    ((held_key, held_value, headers),) = await rig.lying(1)
    assert (held_key, held_value) == (key, value)
    assert ours(headers)["cause"] == "malformed"


async def test_a_header_without_content_is_kept(rig: Rig) -> None:
    await rig.letters.put([letter(b"v", headers=(("empty", None), ("rampgate.attempts", None)))])
    ((_, _, headers),) = await rig.lying(1)
    assert headers[0] == ("empty", None)
    assert ours(headers[1:])["attempts"] == "1"


async def test_a_value_too_large_to_carry_keeps_its_head_its_length_and_its_hash(rig: Rig) -> None:
    value = bytes(n % 251 for n in range(5_000_000))
    whole = value[:MAX]
    await rig.letters.put([letter(value), letter(whole)])
    (_, head, headers), (_, uncut, more) = await rig.lying(2)
    assert head == value[:HEAD_BYTES]
    said = ours(headers)
    assert said["original-length"] == "5000000"
    assert said["original-sha256"] == hashlib.sha256(value).hexdigest()
    assert "can't be replayed" in said["detail"]
    assert uncut == whole, "what just fits is whole"
    assert "original-length" not in ours(more)


async def test_even_a_letter_with_huge_key_and_headers_is_taken(rig: Rig) -> None:
    """One that Kafka refuses for ever would hold up its partition for good."""
    await rig.letters.put([letter(b"v" * MAX, b"k" * 900_000, tuple((f"h{n}", b"x" * 1_000) for n in range(500)))])
    ((key, value, headers),) = await rig.lying(1)
    assert key is not None
    assert value is not None
    assert len(key) + len(value) + sum(len(content) for _, content in headers) < 1_048_576
    assert "can't be replayed" in ours(headers)["detail"]


async def test_many_letters_lie_there_in_order_when_put_returns(rig: Rig) -> None:
    await rig.letters.put([letter(b"%d" % n) for n in range(2_500)])
    await rig.letters.put([])
    assert [value for _, value, _ in await rig.lying(2_500)] == [b"%d" % n for n in range(2_500)]


async def test_a_detail_is_one_printable_line(rig: Rig) -> None:
    await rig.letters.put([letter(b"v", detail="\x1b[31mred\nnext\x00" + "x" * 5_000)])
    ((_, _, headers),) = await rig.lying(1)
    detail = ours(headers)["detail"]
    assert detail.isprintable()
    assert len(detail) <= 300


async def test_letters_that_nobody_took_are_unavailable() -> None:
    producer = Producer(KafkaAccess(("127.0.0.1:1",)))
    with pytest.raises(Unavailable):
        await KafkaDeadLetters(producer, "dead", MAX).put([letter(b"v")])


async def test_a_topic_that_refuses_the_letter_is_unavailable_and_says_so(
    kafka: KafkaCluster, topic_prefix: str
) -> None:
    topic = topic_prefix + "small"
    kafka.create_topics([topic], 1, config={"max.message.bytes": "2000"})
    producer = Producer(KafkaAccess((kafka.bootstrap,)))
    with pytest.raises(Unavailable, match="MessageSize"):
        await KafkaDeadLetters(producer, topic, MAX).put([letter(b"v" * 10_000)])
    await KafkaDeadLetters(producer, topic, MAX).put([letter(b"v")])
    await producer.close()
