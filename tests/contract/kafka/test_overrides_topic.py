"""The central log of overrides on a real Kafka (PC5 §5.5)."""

from __future__ import annotations

import time

import pytest

from agents.ports import Unavailable
from rampgate.local.services.kafka import KafkaCluster
from rampgate.overrides import Quarter, publish, read, report
from rampgate.settings import Settings
from schemas.publish.examples import EXAMPLES


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
