"""Overrides on a real Kafka: published and counted by quarter, and those that skip gates read whole by each decider,
honoured only while they can be read (PC5 §5.5)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import date
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError

from agents.ports import Unavailable
from evalcore.gates.skips import GateSkip, SkippedGate
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.topics import with_admin
from rampgate.overrides import Quarter, event_id, publish, read, read_skips, report
from rampgate.settings import Settings
from schemas.publish.examples import EXAMPLES
from schemas.settings import KafkaAccess
from streams.gates.gate_skips import GateSkips
from streams.kafka.client import Producer
from tests.memory_ports import ManualClock

TODAY = date(2026, 3, 2)


@pytest.fixture
def settings(kafka: KafkaCluster, topic_prefix: str) -> Settings:
    kafka.create_topics([f"{topic_prefix}gate-overrides"], 2)
    return Settings(kafka=kafka.bootstrap, topic_prefix=topic_prefix)


@pytest.fixture
def access(kafka: KafkaCluster) -> KafkaAccess:
    return KafkaAccess((kafka.bootstrap,))


@pytest.fixture
async def skips(access: KafkaAccess, settings: Settings) -> AsyncIterator[GateSkips]:
    made = GateSkips(access, f"{settings.topic_prefix}gate-overrides", ManualClock())
    yield made
    await made.close()


def entry(version: str = "abc") -> Mapping[str, Any]:
    (example,) = EXAMPLES["gate-override"]
    whole = {name: value for name, value in example.items() if name != "event_id"}
    return {**whole, "agent_version": version}


def about(version: str = "abc", milestone: str = "pre_ramp") -> SkippedGate:
    return SkippedGate(milestone, entry()["agent_id"], version)


async def told(skips: GateSkips, version: str = "abc") -> GateSkip | None:
    """What a gate of this version is told."""
    return (await skips.now()).of(about(version), TODAY)


async def test_what_ci_publishes_is_known_to_the_gate_of_that_version_and_to_no_other(
    settings: Settings, skips: GateSkips
) -> None:
    await publish(settings, [entry(), {**entry("b"), "kind": "baseline_shift"}, {**entry("c"), "agent_version": ""}])
    await skips.read_on()
    found = await told(skips)
    assert found is not None
    assert (found.gate, found.event_id) == (about(), event_id(entry()))
    for version in ("abd", "b", "c", ""):
        assert skips.skips.of(about(version), TODAY) is None
    await publish(settings, [entry("d"), entry()])
    await skips.read_on()
    assert await told(skips, "d") is not None, "one that comes later is known at the next look"
    assert (await read_skips(settings)).of(about("d"), TODAY) is not None, "and to a command"


async def test_what_is_no_override_is_passed_over(settings: Settings, access: KafkaAccess, skips: GateSkips) -> None:
    topic, producer = f"{settings.topic_prefix}gate-overrides", Producer(access)
    odd = [b"no json", b"{}", b"[]", b"null", b'{"kind": "gate_skip"}', b"\xff", None]
    await producer.send([(topic, b"k", value, ()) for value in odd])
    await producer.close()
    await publish(settings, [entry()])
    await skips.read_on()
    assert await told(skips) is not None


async def test_while_the_topic_can_not_be_read_no_skip_is_honoured(
    settings: Settings, skips: GateSkips, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish(settings, [entry()])
    await skips.read_on()
    assert await told(skips) is not None

    async def away(self: object, partitions: object) -> None:
        raise KafkaConnectionError

    with monkeypatch.context() as broken:
        broken.setattr("aiokafka.AIOKafkaConsumer.end_offsets", away)
        with pytest.raises(Unavailable, match="the topic of overrides can't be read"):
            await skips.read_on()
        assert await told(skips) is None
        with pytest.raises(Unavailable):
            await read_skips(settings)
    await skips.read_on()
    assert await told(skips) is not None, "what was known is known again"


async def test_of_a_topic_that_was_made_anew_only_what_stands_on_it_is_honoured(
    kafka: KafkaCluster, settings: Settings, skips: GateSkips
) -> None:
    """Who can tell what was on the old one? Its records are gone, and with them who allowed them."""
    await publish(settings, [entry(version) for version in "abcdef"])
    await skips.read_on()
    assert await told(skips, "a") is not None
    topic = f"{settings.topic_prefix}gate-overrides"
    with_admin(kafka.bootstrap, lambda admin: admin.delete_topics([topic]))

    async with asyncio.timeout(60):
        while not skips.readable or await told(skips, "a") is not None:  # Kafka deletes in its own time
            kafka.create_topics([topic], 2)
            with suppress(Unavailable):
                await skips.read_on()
    await publish(settings, [entry("g")])
    await skips.read_on()
    assert await told(skips, "g") is not None
    assert await told(skips, "a") is None


async def test_without_the_topic_gates_run_whole_and_wait_for_nothing(access: KafkaAccess, topic_prefix: str) -> None:
    """An older installation has none; the first look ends at once, and with it the waiting of a gate."""
    absent = GateSkips(access, f"{topic_prefix}nothing", ManualClock())
    absent.start()
    try:
        assert await told(absent) is None
        with pytest.raises(Unavailable, match="there is no topic"):
            await absent.read_on()
    finally:
        await absent.close()


def settings_of(kafka: KafkaCluster, prefix: str) -> Settings:
    return Settings(kafka=kafka.bootstrap, topic_prefix=prefix)


def this_quarter() -> Quarter:
    now = time.gmtime()
    return Quarter.of(f"{now.tm_year}-Q{(now.tm_mon + 2) // 3}")


async def test_what_was_published_is_read_back_and_a_repeated_run_counts_once(
    kafka: KafkaCluster, topic_prefix: str
) -> None:
    settings, quarter = settings_of(kafka, topic_prefix), this_quarter()
    with pytest.raises(Unavailable, match="there is no topic"):
        await read(settings, quarter)
    kafka.create_topics([f"{topic_prefix}gate-overrides"], 2)
    (example,) = EXAMPLES["gate-override"]
    at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    entry = {name: value for name, value in example.items() if name != "event_id"} | {"at": at}
    await publish(settings, [entry, entry | {"repository": "example/other"}])
    await publish(settings, [entry])
    found = await read(settings, quarter)
    assert len(found) == 3
    assert {one["event_id"] for one in found} == {one["event_id"] for one in report(found, quarter)["overrides"]}
    assert report(found, quarter)["by_repository"] == {"example/agents": 1, "example/other": 1}
    assert set(found[0]) == set(example)
