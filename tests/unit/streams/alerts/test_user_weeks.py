"""A worker holds judges against users by itself: each closed week once, news of two in a row once (PF-9 FR-10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from agents.ports import Unauthorized, Unavailable
from evalcore.inversion.user_weeks import MADE_UP, merged
from evalcore.inversion.users import UserSignal, UserTurn, Week
from evalcore.scoring.http_client import HttpClient
from schemas.checks.user_week import UserWeek
from streams.alerts import user_weeks
from streams.alerts.notifiers import Address, Slack
from streams.alerts.user_weeks import Seen, UserWeeks
from tests.memory_ports import ManualClock, MemoryStore
from tests.unit.streams.alerts.notifier_rig import Server, notifier
from tests.waiting import come

LATE = timedelta(days=7)
WEEK = Week(2026, 45)
STEPS = ("read", "written", "posted", "noted")
Page = list[UserTurn]


class Killed(BaseException):
    """The worker's process ends here, and does nothing more."""


def page(week: Week, rho: float, users: int = 60, vertical: str = "receipts") -> Page:
    """Users of one week, half of whose thumbs are down, and a judge that goes with them by about so much."""
    draw = np.random.default_rng(week.number)
    thumbs = np.where(np.arange(users) % 2, 1.0, -1.0)
    scores = rho * thumbs + np.sqrt(1 - rho**2) * draw.normal(size=users)
    return [
        UserTurn(
            f"{week} {number}", f"u{number}", vertical, week.since_ms + number,
            {UserSignal.THUMBS: float(thumbs[number])}, {"tone": float(scores[number])},
        )
        for number in range(users)
    ]  # fmt: skip


@dataclass
class Topic:
    """Stands for the compacted topic: of each key the last record. `dies_at`: the step at which the process ends."""

    held: dict[str, UserWeek] = field(default_factory=dict)
    reads: int = 0
    dies_at: str = ""

    async def weeks(self) -> dict[Week, UserWeek]:
        self.reads += 1
        return merged(self.held.values())

    async def write(self, record: UserWeek) -> None:
        if self.dies_at == ("posted" if record.told else "read"):
            raise Killed
        self.held[record.key] = record
        if self.dies_at == ("noted" if record.told else "written"):
            raise Killed


@dataclass
class World:
    """What outlives a worker: topic, Opik, Redis, Slack and the clock."""

    server: Server
    client: HttpClient
    clock: ManualClock
    store: MemoryStore
    topic: Topic = field(default_factory=Topic)
    opik: dict[tuple[str, Week], list[Page]] = field(default_factory=dict)
    refused: dict[str, Exception] = field(default_factory=dict)
    """Of a vertical the error that its Opik answers with."""
    asked: list[str] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    during: Any = None
    """Called once in the middle of a reading."""

    def at_close_of(self, week: Week, after: timedelta = timedelta(0)) -> None:
        self.clock.ms = round((week.closes(LATE) + after).timestamp() * 1000)

    async def read(self, vertical: str, week: Week) -> AsyncIterator[Page]:
        self.asked.append(f"{vertical} {week}")
        if vertical in self.refused:
            raise self.refused[vertical]
        for turns in self.opik.get((vertical, week), []):
            yield turns
        if self.during is not None:
            self.during, happens = None, self.during
            await happens()

    def worker(self, *verticals: str, slack: bool = True, **options: Any) -> UserWeeks:
        """One that remembers nothing."""
        topic: Any = self.topic
        address = Address(self.server.url + "/slack") if slack else None
        told = Slack(notifier(self.client), address)
        return UserWeeks(
            topic, self.store, self.clock, verticals or ("receipts",), self.read, told,
            late=LATE, every=0.01, observe=self.seen.append, **options,
        )  # fmt: skip

    @property
    def told(self) -> list[str]:
        return [body["text"] for _, _, body in self.server.taken]

    @property
    def rows(self) -> list[tuple[str, list[int]]]:
        """Of each week that was looked at, its judges' weeks in a row."""
        found = sorted(self.topic.held.values(), key=lambda one: one.key)
        return [(one.week, [judge.weeks_in_a_row for judge in one.judges]) for one in found if not one.told]


@pytest.fixture
async def world(server: Server, client: HttpClient) -> World:
    clock = ManualClock()
    made = World(server, client, clock, MemoryStore(clock))
    made.opik = {("receipts", week): [page(week, -0.6)] for week in (WEEK.before, WEEK)}
    made.at_close_of(WEEK)
    return made


async def test_pf9_fr10_5_4_two_weeks_against_users_are_told_once_whoever_looks_and_how_often(world: World) -> None:
    """Neither another worker, nor a restart, nor an emptied Redis tells it again or looks at the weeks again."""
    for _ in range(3):
        worker = world.worker()
        await worker.once()
        world.store.flush()
        await worker.once()
        world.clock.ms += 60_000
    (text,) = world.told
    for said in ("2026-W44 and 2026-W45", "tone in receipts: Pearson -0.", "60 users", "No one is suspended"):
        assert said in text
    assert world.rows == [("2026-W44", [1]), ("2026-W45", [2])]
    assert world.topic.held["2026-W45/told"].told == "Slack"
    assert world.asked == ["receipts 2026-W44", "receipts 2026-W45"]
    assert world.seen[-1] == Seen({("tone", "receipts"): 2}, behind=False)


async def test_a_week_is_looked_at_once_no_signal_can_come_any_more(world: World) -> None:
    world.at_close_of(WEEK, -timedelta(milliseconds=1))
    await world.worker().once()
    assert world.rows == [("2026-W43", []), ("2026-W44", [1])]
    assert world.told == []
    world.at_close_of(WEEK)
    await world.worker().once()
    assert world.rows[-1] == ("2026-W45", [2])
    assert len(world.told) == 1


async def test_a_third_week_in_a_row_is_no_news_and_a_new_run_of_weeks_is(world: World) -> None:
    runs, week = (-0.6, -0.6, 0.0, -0.6, -0.6), WEEK
    for rho in runs:
        week = week.after
        world.opik["receipts", week] = [page(week, rho)]
    world.at_close_of(week)
    world.topic.held["2026-W43"] = UserWeek(week="2026-W43", at=week.closes(LATE))
    await world.worker().once()
    assert [rows for _, rows in world.rows] == [[], [1], [2], [3], [4], [0], [1], [2]]
    assert [text.split(":")[0] for text in world.told] == [
        "Judges score against users, in 2026-W44 and 2026-W45",
        "Judges score against users, in 2026-W49 and 2026-W50",
    ]


@pytest.mark.parametrize("rho", [0.0, 0.6])
async def test_judges_that_do_not_score_against_users_are_no_news(world: World, rho: float) -> None:
    world.opik = {("receipts", week): [page(week, rho)] for week in (WEEK.before, WEEK)}
    await world.worker().once()
    assert (world.rows, world.told) == ([("2026-W44", [0]), ("2026-W45", [0])], [])
    assert world.seen[-1] == Seen({}, behind=False)


@pytest.mark.parametrize("step", STEPS)
async def test_a_worker_that_dies_leaves_its_week_to_the_next_who_finds_the_same(world: World, step: str) -> None:
    """Whatever it had done; only one that dies between Slack's answer and the note has the week told twice."""
    untouched = World(world.server, world.client, world.clock, MemoryStore(world.clock), opik=world.opik)
    await untouched.worker().once()
    world.server.taken.clear()
    world.topic.dies_at = step
    with pytest.raises(Killed):
        await world.worker().once()
    world.topic.dies_at = ""
    world.store.flush()
    for _ in range(2):
        await world.worker().once()
    assert world.topic.held == untouched.topic.held
    assert len(world.told) == (2 if step == "posted" else 1)


async def test_weeks_that_nobody_looked_at_are_made_up_the_oldest_first_as_far_as_a_quarter(world: World) -> None:
    world.at_close_of(WEEK.before)
    await world.worker().once()
    world.asked.clear()
    late = WEEK
    for _ in range(3):
        late = late.after
    world.at_close_of(late)
    await world.worker().once()
    assert world.asked == [f"receipts 2026-W{number}" for number in (45, 46, 47, 48)]
    assert len(world.told) == 1
    world.asked.clear()
    for _ in range(30):
        late = late.after
    world.at_close_of(late)
    await world.worker().once()
    assert (len(world.asked), world.asked[-1]) == (MADE_UP, f"receipts {late}")


async def test_who_has_lost_the_right_to_look_writes_and_tells_nothing(world: World) -> None:
    """An emptied Redis gives it to another worker, who meanwhile does both."""

    async def emptied() -> None:
        world.store.flush()
        await world.worker().once()

    world.during = emptied
    await world.worker().once()
    assert len(world.told) == 1
    assert world.asked == ["receipts 2026-W44", "receipts 2026-W44", "receipts 2026-W45"]


async def test_who_slept_and_writes_the_same_result_again_takes_back_no_note_that_it_was_told(world: World) -> None:
    await world.worker().once()
    world.topic.held["2026-W45"] = world.topic.held.pop("2026-W45")
    await world.worker().once()
    assert len(world.told) == 1


async def test_while_one_worker_looks_no_other_reads_opik(world: World) -> None:
    async def other() -> None:
        await world.worker().once()

    world.during = other
    await world.worker().once()
    assert world.asked == ["receipts 2026-W44", "receipts 2026-W45"]


async def test_the_topic_is_read_no_more_once_nothing_is_left(world: World) -> None:
    worker = world.worker()
    await worker.once()
    read = world.topic.reads
    for _ in range(5):
        await worker.once()
    assert world.topic.reads == read


async def test_an_opik_that_can_not_be_read_leaves_the_week_for_later_and_the_right_with_who_tried(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try reads pages, and searches in Opik are few. Half of the verticals would be another check."""
    monkeypatch.setattr(user_weeks, "AGAIN_SECONDS", 3600.0)
    world.refused["shopping"] = Unavailable("Opik: 503")
    trying = asyncio.create_task(world.worker("receipts", "shopping").once())
    await come(lambda: "shopping 2026-W44" in world.asked)
    await world.worker("receipts", "shopping").once()
    assert world.asked == ["receipts 2026-W44", "shopping 2026-W44"]
    trying.cancel()
    await asyncio.gather(trying, return_exceptions=True)
    assert world.rows == []
    world.refused.clear()
    await world.worker("receipts", "shopping").once()
    assert len(world.rows) == 2


async def test_a_vertical_that_refuses_our_key_for_a_week_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_weeks, "AGAIN_SECONDS", 0.0)
    world.refused["shopping"] = Unauthorized("Opik: 401")
    world.at_close_of(WEEK, timedelta(days=6))
    await world.worker("receipts", "shopping").once()
    assert [(one.week, one.unread) for one in world.topic.held.values()] == [("2026-W44", ("shopping",))]
    world.at_close_of(WEEK, timedelta(days=7))
    await world.worker("receipts", "shopping").once()
    record = world.topic.held["2026-W45"]
    assert (record.unread, [one.vertical for one in record.judges]) == (("shopping",), ["receipts"])
    assert len(world.told) == 1


async def test_news_that_slack_did_not_take_are_told_by_a_later_look_for_a_day(world: World) -> None:
    world.server.statuses = [500] * 3
    await world.worker().once()
    assert "2026-W45/told" not in world.topic.held
    world.server.statuses = [500] * 3
    world.clock.ms += 86_400_000 - 1
    worker = world.worker()
    await worker.once()
    assert "2026-W45/told" not in world.topic.held
    await worker.once()
    assert world.topic.held["2026-W45/told"].told == "Slack"


async def test_news_that_slack_took_in_no_try_of_a_day_are_given_up(world: World) -> None:
    world.server.statuses = [500] * 3
    await world.worker().once()
    world.server.statuses = [500] * 3
    world.clock.ms += 86_400_000
    await world.worker().once()
    assert world.topic.held["2026-W45/told"].told.startswith("no one: Slack")


async def test_without_slack_the_log_and_the_alert_say_it(world: World) -> None:
    await world.worker(slack=False).once()
    assert world.topic.held["2026-W45/told"].told == "no one: slack_webhook is not set"
    assert world.seen[-1].against == {("tone", "receipts"): 2}


async def test_a_week_that_closed_two_days_ago_and_was_not_looked_at_shows(world: World) -> None:
    async def away() -> dict[Week, UserWeek]:
        raise Unavailable("Kafka has no topic user-weeks")

    topic: Any = world.topic
    topic.weeks = away
    for days, behind in ((0, False), (2, True)):
        world.at_close_of(WEEK, timedelta(days=days))
        with pytest.raises(Unavailable):
            await world.worker().once()
        assert world.seen[-1] == Seen({}, behind)
    del topic.weeks
    await world.worker().once()
    assert world.seen[-1].behind is False


async def test_nobody_looks_while_the_worker_waits_and_a_failed_look_ends_nothing(world: World) -> None:
    """A clock that is not trusted, or records that are read again."""
    topic: Any = world.topic
    made, waits, look, looks = asyncio.Event(), True, topic.weeks, 0

    async def ready() -> None:
        made.set()

    async def weeks() -> dict[Week, UserWeek]:
        nonlocal looks
        assert not waits
        looks += 1
        if looks < 3:
            raise (Unavailable("away"), RuntimeError("a bug"))[looks - 1]
        found: dict[Week, UserWeek] = await look()
        return found

    topic.ready, topic.weeks = ready, weeks
    running = asyncio.create_task(world.worker(ready=lambda: not waits).run())
    await made.wait()
    await asyncio.sleep(0.1)
    assert world.asked == []
    waits = False
    await come(lambda: world.told)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
