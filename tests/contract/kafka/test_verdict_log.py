"""The verdicts' topic as the memory of what was decided, on a real Kafka."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable

import orjson
import pytest
from faust.types import TP

from agents.ports import Unavailable
from evalcore.gates.history import Asked, Line
from evalcore.gates.requests import InvalidRequest
from evalcore.gates.verdict import Moment, as_json, invalid, of_gates, refused
from rampgate.local.services.broker import MockBroker
from rampgate.local.services.kafka import KafkaCluster
from schemas.judges import Enforcement, Milestone
from schemas.settings import KafkaAccess
from schemas.verdicts import Code, Composition, GateVerdict, JudgeScore, Reason, SampleFacts, Verdict, VerdictLevel
from streams.gates.verdict_log import BODY, VerdictLog
from streams.kafka.client import Producer
from streams.kafka.offsets import KafkaOffsets
from tests.contract.kafka.verdicts import MOMENT, asked, verdict
from tests.fault.ledger.kafka_log import KafkaLog
from tests.memory_ports import ManualClock, MemoryStore

SAMPLE = SampleFacts(
    scope="version", fingerprint="f", size=1, window_seconds=None, composition=Composition(), frozen_at=None
)
SCORE = JudgeScore(0.9, 0.5, True, Enforcement.BLOCK, n=1, judge_version="1")


async def test_what_one_worker_published_another_knows_once_it_has_caught_up(log_of: Callable[[], VerdictLog]) -> None:
    first, second = log_of(), log_of()
    await first.start()
    await second.start()
    await first.caught_up()
    for number in range(20):
        await first.publish(verdict(f"r{number}"), f"body{number}", f"t/0/{number}", f"e{number}")
    await second.caught_up()
    assert second.answered("r7") == Asked.of("body7", "t/0/7")
    assert second.answered("r20") is None
    found = second.known("r7") or {}
    assert (found["verdict"], found["verdict_id"]) == ("pass", verdict("r7").verdict_id)
    assert second.known("r20") is None
    assert len(second.history.about({"experiment_id": "e"}, 100)) == 20


async def test_a_worker_that_starts_later_reads_what_is_there(log_of: Callable[[], VerdictLog]) -> None:
    first = log_of()
    await first.start()
    await first.publish(verdict("r"), "body", "t/0/1", "e")
    late = log_of()
    await late.start()
    await late.caught_up()
    assert late.answered("r") is not None


async def test_pc5_5_5_after_a_restart_the_previous_verdict_about_a_step_is_still_known(
    log_of: Callable[[], VerdictLog],
) -> None:
    """`supersedes`: of the same step of the same definition, also where the request was refused; a record that could
    not be read is about no step."""
    first = log_of()
    await first.start()
    answered = verdict("r1")
    refusal = refused(asked("r2"), [Reason(Code.DEADLINE_EXCEEDED, "late")], Moment("2026-11-21T12:00:02Z", 0.1))
    unread = invalid(
        InvalidRequest("r3", {"experiment_id": "e"}, ("to_percent",), "b"), Moment("2026-11-21T12:00:03Z", 0.1)
    )
    for number, one in enumerate((answered, refusal, unread)):
        await first.publish(one, "body", f"t/0/{number}", "e")
    restarted = log_of()
    await restarted.start()
    await restarted.caught_up()
    supersedes = await superseded(
        restarted, verdict("r4"), verdict("r5", agent_version="w"), verdict("r6", experiment_id="f")
    )
    assert supersedes == [refusal.verdict_id, None, None]
    assert (await superseded(first, unread))[0] is None


async def superseded(log: VerdictLog, *published: Verdict) -> list[str | None]:
    """By these verdicts, as they stand on the topic."""
    await asyncio.gather(*(log.publish(one, "body", "t/0/9", "e") for one in published))
    known = [log.known(one.request_id) for one in published]
    return [one["supersedes"] if one is not None else "not published" for one in known]


async def test_verdicts_about_one_step_that_overlap_supersede_one_another_in_their_order(
    log_of: Callable[[], VerdictLog],
) -> None:
    """Each was decided before any of the others was published."""
    log = log_of()
    await log.start()
    await log.caught_up()
    several = [verdict(f"r{number}") for number in range(6)]
    supersedes = await superseded(log, *several)
    assert supersedes == [None, *(one.verdict_id for one in several[:-1])]


async def test_the_last_word_about_a_verdict_knows_the_failures_that_waited_beside_it(
    log_of: Callable[[], VerdictLog],
) -> None:
    """Else a step of one experiment would be let go on right behind another one's failure of the same version."""
    log = log_of()
    await log.start()
    await log.caught_up()
    known: list[bool] = []

    async def last(one: Verdict) -> Verdict:
        known.append((await log.stand(asked("walks"), Milestone.PRE_RAMP)).fails)
        return one

    gate = GateVerdict({}, VerdictLevel.FAIL, [], Milestone.PRE_RAMP)
    failed = of_gates(asked("fails", experiment_id="f", from_percent=0, to_percent=5), [gate], MOMENT)
    await asyncio.gather(
        log.publish(verdict("walks"), "body", "t/0/1", "e", last), log.publish(failed, "body", "t/0/2", "f")
    )
    assert known == [True]


async def test_what_is_no_verdict_is_passed_over(log_of: Callable[[], VerdictLog], topic: str) -> None:
    log = log_of()
    await log.start()
    for raw in (b"{", b"[]", b'{"request_id": "r"}', b'{"request_id": ["r"], "evidence": {}}', b"7"):
        await log.producer.send([(topic, None, raw, [])])
    await log.publish(verdict("r"), "body", "t/0/1", "e")
    late = log_of()
    await late.start()
    await late.caught_up()
    assert late.answered("r") is not None


async def test_verdicts_that_are_no_longer_known_whole_are_known_as_answered(
    log_of: Callable[[], VerdictLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.gates.verdict_log.KEPT", 2)
    log = log_of()
    await log.start()
    for number in range(4):
        await log.publish(verdict(f"r{number}"), "body", f"t/0/{number}", "e")
    assert [log.known(f"r{number}") is not None for number in range(4)] == [False, False, True, True]
    assert log.history.about({"agent_id": "a"}, 9) == ["r3", "r2"]
    assert [log.answered(f"r{number}") for number in range(4)] == [Asked.of("body", f"t/0/{n}") for n in range(4)]


async def test_a_flood_of_verdicts_without_a_gate_erases_neither_baselines_nor_what_was_answered(
    log_of: Callable[[], VerdictLog], topic: str
) -> None:
    """20,001, of another experiment of the same agent; they come while one worker runs and before another starts."""
    log = log_of()
    await log.start()
    gate = GateVerdict({"ux_quality": SCORE}, VerdictLevel.PASS, [], Milestone.PRE_RAMP, sample=SAMPLE)
    paid = of_gates(asked("paid", from_percent=0, to_percent=5), [gate], MOMENT, sample=SAMPLE)
    await log.publish(paid, "body", "t/0/0", "e")
    await log.publish(verdict("free", agent_id="quiet"), "body", "t/0/1", "e")
    raw = orjson.dumps(as_json(verdict("REQUEST", experiment_id="flood")))
    flood = [(topic, b"e", raw.replace(b"REQUEST", f"flood-{n}".encode()), []) for n in range(20_001)]
    for start in range(0, len(flood), 2_000):
        await log.producer.send(flood[start : start + 2_000])
    late = log_of()
    await late.start()
    for reader in (log, late):
        reader.catch_up_seconds = 60.0
        await reader.caught_up()
        line = Line("ux_quality", "1", Milestone.PRE_RAMP, "a", None, "", "version")
        assert [run.score for run in await reader.baseline(asked("next"), line)] == [0.9]
        assert reader.known("paid") is not None
        assert reader.known("free") is not None, "of an asker who asks little all is kept"
        every = ["paid", "free", *(f"flood-{n}" for n in range(20_001))]
        assert [name for name in every if reader.answered(name) is None] == []


async def test_a_log_that_reads_nothing_says_so_instead_of_knowing_nothing(log_of: Callable[[], VerdictLog]) -> None:
    log = log_of()
    log.catch_up_seconds = 0.3
    with pytest.raises(Unavailable):
        await log.caught_up()


async def test_those_who_come_while_a_question_is_under_way_share_the_next_one(
    log_of: Callable[[], VerdictLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to an older question may know nothing of a verdict that stood there when they came."""
    log = log_of()
    await log.start()
    await log.caught_up()
    ask, asked, began, hold = KafkaOffsets.topic_ends, 0, asyncio.Event(), asyncio.Event()

    async def slow(self: KafkaOffsets, name: str) -> dict[TP, int]:
        nonlocal asked
        asked += 1
        began.set()
        found = await ask(self, name)
        await hold.wait()
        return found

    monkeypatch.setattr(KafkaOffsets, "topic_ends", slow)
    first = asyncio.create_task(log.caught_up())
    await began.wait()
    later = [asyncio.create_task(log.caught_up()) for _ in range(10)]
    given_up = asyncio.create_task(log.caught_up())
    await asyncio.sleep(0.1)
    assert asked == 1
    given_up.cancel()
    hold.set()
    await asyncio.gather(first, *later)
    assert asked == 2


async def test_one_broker_in_memory_tells_its_ends_too(mock_broker: MockBroker) -> None:
    """The demo's."""
    access = KafkaAccess((mock_broker.bootstrap,))
    producer, topic = Producer(access), f"verdicts-{uuid.uuid4().hex}"
    log, other = (VerdictLog(access, producer, topic, MemoryStore(ManualClock())) for _ in range(2))
    try:
        await log.start()
        await other.start()
        await log.publish(verdict("r"), "body", "t/0/1", "e")
        await other.caught_up()
        assert other.known("r") is not None
    finally:
        await log.close()
        await other.close()
        await producer.close()


async def test_a_plain_consumer_reads_the_verdict_and_the_body_it_answers(
    log_of: Callable[[], VerdictLog], kafka: KafkaCluster, topic: str
) -> None:
    log = log_of()
    await log.start()
    await log.publish(verdict("r"), "body", "t/0/1", "e")
    (record,) = KafkaLog(kafka.bootstrap, "", 3).records(topic)
    assert json.loads(record.value or b"")["request_id"] == "r"
    assert (record.key, dict(record.headers)[BODY]) == (b"e", b"body")
