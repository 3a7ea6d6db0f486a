"""Topics that a worker makes keep what they acknowledged when one broker is lost; of others that don't, it tells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.admin import NewTopic
from aiokafka.errors import ClusterAuthorizationFailedError
from structlog.testing import capture_logs

from schemas.settings import KafkaAccess
from streams.kafka import topics
from streams.kafka.topics import wait_for_topics


class Cluster:
    """So many brokers, and the topics that were made, each with its replicas and settings."""

    def __init__(self, brokers: int) -> None:
        self.brokers, self.refuses, self.late = brokers, False, ""
        """`late`: a topic of which the broker that is asked last does not know."""
        self.made: dict[str, tuple[int, dict[str, str]]] = {}
        self.described = 0

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": [{}] * self.brokers}

    async def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        found, self.described = [], self.described + 1
        for name in names:
            replicas, _ = self.made.get(name, (0, {}))
            if name == self.late and self.described > 1:
                replicas = 0
            parts = [{"error_code": 0, "replicas": list(range(replicas))}] if replicas else []
            found.append({"topic": name, "error_code": 0 if replicas else 3, "partitions": parts})
        return found

    async def create_topics(self, wanted: list[NewTopic]) -> None:
        self.made |= {topic.name: (topic.replication_factor, dict(topic.topic_configs)) for topic in wanted}

    async def describe_configs(self, asked: list[Any]) -> list[Any]:
        if self.refuses:
            raise ClusterAuthorizationFailedError
        about = [
            (0, "", 2, one.name, [(name, self.made[one.name][1].get(name, "1")) for name in one.configs])
            for one in asked
        ]
        return [SimpleNamespace(resources=about)]


@pytest.fixture(params=[1, 2, 3, 5])
def cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(request.param)
    monkeypatch.setattr(topics, "AIOKafkaAdminClient", lambda **options: made)
    return made


async def told(names: list[str]) -> dict[str, Any]:
    """Wait for the topics; returns the warnings by topic."""
    with capture_logs() as lines:
        await wait_for_topics(KafkaAccess(("nowhere:1",)), names)
    return {line["topic"]: line["min_in_sync"] for line in lines if line["event"] == "topic_can_lose_records"}


async def test_a_topic_that_we_make_has_two_replicas_of_what_it_acknowledged(cluster: Cluster) -> None:
    """With fewer than three brokers it would take no record while one of them is away."""
    assert await told(["thumbs", "traces"]) == {}
    many = cluster.brokers >= 3
    wanted = (3, {"min.insync.replicas": "2"}) if many else (cluster.brokers, {})
    assert cluster.made == {"thumbs": wanted, "traces": wanted}


@pytest.mark.parametrize(
    ("made", "weak"),
    [
        ((3, {}), True),
        ((1, {}), True),
        ((2, {"min.insync.replicas": "2"}), True),
        ((3, {"min.insync.replicas": "2"}), False),
    ],
)
async def test_an_existing_topic_with_less_is_told_of(
    cluster: Cluster, made: tuple[int, dict[str, str]], weak: bool
) -> None:
    """Where there are no brokers for better, it is not."""
    cluster.made["thumbs"] = made
    assert ("thumbs" in await told(["thumbs"])) is (weak and cluster.brokers >= 3)
    assert cluster.made["thumbs"] == made, "it is not ours to change"


async def test_brokers_that_do_not_let_us_ask_hold_nothing_up(cluster: Cluster) -> None:
    cluster.refuses = True
    assert await told(["thumbs"]) == {}


async def test_a_broker_that_does_not_know_of_a_topic_yet_holds_up_no_start(cluster: Cluster) -> None:
    cluster.made["thumbs"] = cluster.made["traces"] = (3, {"min.insync.replicas": "2"})
    cluster.late = "thumbs"
    assert await told(["thumbs", "traces"]) == {}
    assert cluster.described == 2


WEEK, DAY = 7 * 86_400_000, 86_400_000


async def forgetful(keep: dict[str, int]) -> dict[str, Any]:
    """Wait for topics that must keep their records so long; returns the warnings by topic."""
    with capture_logs() as lines:
        await wait_for_topics(KafkaAccess(("nowhere:1",)), list(keep), keep=keep)
    return {line["topic"]: line["retention_days"] for line in lines if line["event"] == "topic_forgets"}


async def test_a_topic_that_we_make_keeps_its_records_as_long_as_they_are_needed(cluster: Cluster) -> None:
    """And a day more: what a broker does by itself is a week, and baselines reach back for 90 days."""
    assert await forgetful({"thumbs": WEEK, "verdicts": 90 * DAY}) == {}
    configs = {name: configs for name, (_, configs) in cluster.made.items()}
    assert {name: made["retention.ms"] for name, made in configs.items()} == {
        "thumbs": str(8 * DAY),
        "verdicts": str(91 * DAY),
    }
    assert {made["cleanup.policy"] for made in configs.values()} == {"delete"}


@pytest.mark.parametrize(
    ("settings", "days"),
    [
        ({"retention.ms": str(WEEK), "cleanup.policy": "delete"}, 7.0),
        ({"retention.ms": "-1", "cleanup.policy": "compact"}, None),
        ({"retention.ms": str(90 * DAY), "cleanup.policy": "compact,delete"}, 90.0),
        ({"retention.ms": str(90 * DAY), "cleanup.policy": "delete"}, "not told of"),
        ({"retention.ms": "-1", "cleanup.policy": "delete"}, "not told of"),
    ],
)
async def test_an_existing_topic_that_forgets_earlier_is_told_of(
    cluster: Cluster, settings: dict[str, str], days: object
) -> None:
    cluster.made["verdicts"] = (3, {"min.insync.replicas": "2", **settings})
    assert (await forgetful({"verdicts": 90 * DAY})).get("verdicts", "not told of") == days
    assert cluster.made["verdicts"][1].items() >= settings.items(), "it is not ours to change"


async def test_brokers_that_do_not_tell_hold_up_no_start(cluster: Cluster) -> None:
    cluster.made["verdicts"] = (3, {})
    cluster.refuses = True
    assert await forgetful({"verdicts": WEEK}) == {}
