"""Who follows a topic goes on whatever happens, and knows nothing while it can't read."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from schemas.settings import KafkaAccess
from streams.gates import followed_topic
from streams.gates.followed_topic import FollowedTopic
from tests.memory_ports import ManualClock


class Faulty(FollowedTopic):
    """Fails once in a way that no one foresaw."""

    def __init__(self) -> None:
        super().__init__(KafkaAccess(("nowhere:1",)), "standing", ManualClock())
        self.told: list[str] = []
        self.known: list[bool] = []
        self.read_twice = asyncio.Event()

    async def read_on(self) -> None:
        self.told.append("read")
        self.known.append(self.readable)
        self.readable = True
        if self.told.count("read") == 1:
            raise ValueError("a defect")
        self.read_twice.set()

    def take_in(self, value: bytes, appended_ms: int) -> None: ...
    def made_anew(self) -> None: ...


async def test_a_defect_in_following_ends_what_is_known_and_not_the_following(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_topic, "LOOK_SECONDS", 0.0)
    faulty = Faulty()
    with capture_logs() as logs:
        faulty.start()
        async with asyncio.timeout(30):
            await faulty.read_twice.wait()
        await faulty.close()
    assert faulty.told[:2] == ["read", "read"]
    assert faulty.known[:2] == [False, False], "a defect ends what is known"
    assert [line["event"] for line in logs] == ["following_a_topic_failed"]
