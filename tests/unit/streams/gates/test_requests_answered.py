"""Ramp-step requests: one verdict each, whatever happens to the worker, and none holds up another."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

import pytest

from evalcore.gates.history import Stand
from evalcore.gates.requests import RampRequest
from schemas.outcomes import Cause
from schemas.verdicts import Code
from tests.unit.streams.gates.gate_world import Worker, quicken, request
from tests.waiting import come


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    quicken(monkeypatch)


async def test_a_record_is_acknowledged_once_its_verdict_stands() -> None:
    worker = Worker(slow={"r": asyncio.Event()})
    await worker.read(request("r"))
    await come(lambda: worker.begun)
    assert worker.acked == []
    worker.slow["r"].set()
    await come(lambda: worker.acked)
    assert worker.verdicts == ["r"]


async def test_a_gate_that_takes_long_holds_up_no_other() -> None:
    worker = Worker(slow={"long": asyncio.Event()})
    await worker.read(request("long"), request("beside"))
    await worker.read(request("after"), base=2)
    await come(lambda: set(worker.verdicts) == {"beside", "after"})
    await come(lambda: worker.acked == [2])
    worker.slow["long"].set()
    await come(lambda: worker.acked == [2, 0])


async def test_the_oldest_request_that_waits_is_as_old_as_it_was_read_and_none_is_once_all_are_answered() -> None:
    """Also one that no one decides yet, since a part is out of reach: an alert looks at its age."""
    worker = Worker(slow={"old": asyncio.Event(), "young": asyncio.Event()})
    assert worker.requests.oldest_seconds == 0.0
    await worker.read(request("old"))
    await asyncio.sleep(0.2)
    young = time.monotonic()
    await worker.read(request("young"), base=1)
    await come(lambda: len(worker.begun) == 2)
    assert worker.requests.oldest_seconds >= 0.2
    worker.slow["old"].set()
    await come(lambda: worker.acked)
    assert worker.requests.oldest_seconds <= time.monotonic() - young, "the younger one is left"
    worker.slow["young"].set()
    await come(lambda: len(worker.acked) == 2)
    assert worker.requests.oldest_seconds == 0.0


async def test_a_duplicate_gets_no_second_verdict_however_it_comes() -> None:
    worker = Worker(slow={"r": asyncio.Event()})
    await worker.read(request("r"), request("r"))
    await worker.read(request("r"), base=2)
    await come(lambda: worker.begun)
    worker.slow["r"].set()
    await come(lambda: sorted(worker.acked) == [0, 2])
    await worker.read(request("r"), base=3)
    await come(lambda: 3 in worker.acked)
    assert (worker.verdicts, worker.begun) == (["r"], ["r"])


async def test_another_body_under_the_same_id_is_a_dead_letter_and_the_first_verdict_stands() -> None:
    worker = Worker()
    await worker.read(request("r"))
    await come(lambda: worker.acked)
    await worker.read(request("r", to_percent=50), base=1)
    await come(lambda: 1 in worker.acked)
    assert [letter.cause for letter in worker.letters.letters] == [Cause.CONFLICTING_DUPLICATE]
    assert worker.verdicts == ["r"]


async def test_another_body_beside_a_gate_under_way_is_a_dead_letter_too() -> None:
    worker = Worker(slow={"r": asyncio.Event()})
    await worker.read(request("r"))
    await come(lambda: worker.begun)
    await worker.read(request("r", to_percent=50), base=1)
    await come(lambda: worker.acked == [1])
    assert [letter.cause for letter in worker.letters.letters] == [Cause.CONFLICTING_DUPLICATE]


async def test_malformed_with_an_id_gets_its_verdict_and_without_one_is_a_dead_letter() -> None:
    worker = Worker()
    await worker.read(request("r", to_percent="x"), b"{", None)
    await come(lambda: worker.acked)
    assert worker.verdicts == ["r"]
    assert worker.topic.published[0].reasons[0].code is Code.INVALID_REQUEST
    assert [letter.cause for letter in worker.letters.letters] == [Cause.MALFORMED, Cause.MALFORMED]
    assert worker.state.conservation() == {"consumed": 3, "done": 1, "dead_lettered:malformed": 2}


async def test_letters_of_records_that_were_settled_before_exist_already() -> None:
    worker = Worker()
    await worker.read(b"{", settled=1)
    await come(lambda: worker.acked)
    assert worker.letters.letters == []


async def test_a_fault_inside_fails_this_request_closed_and_no_other() -> None:
    worker = Worker(broken={"bad"})
    await worker.read(request("bad"), request("good"))
    await come(lambda: worker.acked)
    found = {verdict.request_id: verdict for verdict in worker.topic.published}
    assert [reason.code for reason in found["bad"].reasons] == [Code.JUDGE_UNAVAILABLE]
    assert (found["bad"].verdict, found["good"].verdict) == ("fail", "pass")
    assert found["bad"].halt_at_percent == 5
    assert worker.fatal == []


async def test_a_fault_inside_halts_a_version_that_never_passed_at_0_and_holds_up_no_step_down() -> None:
    worker = Worker(broken={"bad", "down"}, stands=Stand())
    await worker.read(request("bad"), request("down", to_percent=0))
    await come(lambda: worker.acked)
    found = {verdict.request_id: verdict for verdict in worker.topic.published}
    assert (found["bad"].action, found["bad"].halt_at_percent) == ("halt", 0)
    assert (found["down"].verdict, found["down"].action) == ("pass", "proceed")


@pytest.mark.parametrize(("record", "counts"), [(-30_000, -30_000), (None, 0), (60_000, 0)])
async def test_a_request_was_sent_when_its_record_came_or_was_first_read_whichever_was_earlier(
    record: int | None, counts: int
) -> None:
    """Also where deciding waits for a part that is away for hours."""
    worker = Worker(unavailable=2)
    now = worker.state.clock.now_ms()
    await worker.read(request("r"), at_ms=now + record if record is not None else 0)
    await come(lambda: worker.acked)
    sent = {asked.sent_by for asked in worker.asked if isinstance(asked, RampRequest)}
    assert (len(worker.asked), sent) == (3, {datetime.fromtimestamp((now + counts) / 1000, UTC)})


async def test_a_request_that_says_it_comes_from_the_future_is_late_all_the_same_when_it_is_read_again() -> None:
    """PC5 §5.8: the sender's patience begins no later than its record."""
    worker = Worker()
    now = worker.state.clock.now_ms()
    ahead = datetime.fromtimestamp(now / 1000 + 3_600, UTC).isoformat()
    worker.topic.down = True
    await worker.read(request("r", requested_at=ahead, deadline_seconds=60), at_ms=now)
    await asyncio.sleep(0.05)
    restarted = Worker(topic=worker.topic, state=worker.state)
    worker.state.clock.ms = now + 61_000
    worker.topic.down = False
    worker.consumer.generation = 2
    await restarted.read(request("r", requested_at=ahead, deadline_seconds=60), at_ms=now)
    await come(lambda: restarted.acked)
    (published,) = worker.topic.published
    assert [reason.code for reason in published.reasons] == [Code.DEADLINE_EXCEEDED]
    assert ahead in published.reasons[0].message
    assert published.halt_at_percent == 5


async def test_a_rebalance_that_gives_the_partition_back_resumes_the_job() -> None:
    worker = Worker(slow={"r": asyncio.Event()})
    await worker.read(request("r"))
    await come(lambda: worker.begun)
    worker.consumer.flow_active = False
    await come(lambda: worker.consumer.abandoned == [0])
    worker.consumer.flow_active, worker.consumer.generation = True, 2
    await worker.read(request("r"))
    worker.slow["r"].set()
    await come(lambda: worker.acked == [0])
    assert (worker.verdicts, worker.begun) == (["r"], ["r"])


async def test_a_job_whose_partition_went_elsewhere_publishes_nothing() -> None:
    first = Worker(slow={"r": asyncio.Event()})
    second = Worker(topic=first.topic)
    await first.read(request("r"))
    await come(lambda: first.begun)
    first.consumer.generation = 2
    await come(lambda: first.consumer.abandoned)
    await second.read(request("r"))
    await come(lambda: second.acked)
    first.slow["r"].set()
    await come(lambda: not first.requests.running)
    assert first.verdicts == ["r"]
    assert first.acked == []


async def test_a_worker_that_dies_between_verdict_and_commit_leaves_nothing_to_double() -> None:
    first = Worker()
    await first.read(request("r"))
    await come(lambda: first.acked)
    second = Worker(topic=first.topic)
    await second.read(request("r"))
    await come(lambda: second.acked)
    assert (second.verdicts, second.begun) == (["r"], [])


async def test_a_verdict_waits_for_a_kafka_that_is_away() -> None:
    worker = Worker()
    worker.topic.down = True
    await worker.read(request("r"))
    await asyncio.sleep(0.1)
    assert worker.acked == []
    worker.topic.down = False
    await come(lambda: worker.acked)
    assert worker.verdicts == ["r"]


async def test_a_thousand_requests_at_once_get_one_verdict_each() -> None:
    worker = Worker()
    await worker.read(*(request(f"r{n}") for n in range(1_000)), *[b"{"] * 1_000)
    await come(lambda: worker.acked, 30.0)
    assert sorted(worker.verdicts) == sorted(f"r{n}" for n in range(1_000))
    assert worker.state.conservation() == {"consumed": 2_000, "done": 1_000, "dead_lettered:malformed": 1_000}


async def test_a_stop_leaves_what_is_under_way_to_the_next_worker() -> None:
    worker = Worker(slow={"r": asyncio.Event()})
    await worker.read(request("r"))
    await come(lambda: worker.begun)
    await worker.requests.stop(1.0)
    assert (worker.acked, worker.verdicts, worker.consumer.abandoned) == ([], [], [0])


@pytest.mark.parametrize(("seconds", "code"), [(59, Code.NO_GATE_AT_STEP), (61, Code.DEADLINE_EXCEEDED)])
async def test_a_verdict_that_can_only_be_published_after_the_deadline_lets_nothing_go_on(
    seconds: int, code: Code
) -> None:
    worker = Worker(slow={"r": asyncio.Event()})
    now = worker.state.clock.now_ms()
    asked_at = datetime.fromtimestamp(now / 1000, UTC).isoformat()
    await worker.read(request("r", requested_at=asked_at, deadline_seconds=60))
    await come(lambda: worker.begun)
    worker.topic.down = True
    worker.slow["r"].set()
    await asyncio.sleep(0.05)
    worker.state.clock.ms = now + seconds * 1000
    worker.topic.down = False
    await come(lambda: worker.acked)
    (published,) = worker.topic.published
    assert [reason.code for reason in published.reasons] == [code]
