"""An evaluation that somebody or a schedule asked for brings the response that live scores bring, once (PC5 §5.7). An
evaluation that is dated ahead, or by a time without a zone, brings no response; others around it do."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from agents.keys import REGRESSION_LEASE, REGRESSION_STATE
from evalcore.evaluations import lines_of
from evalcore.gates.regression import EVALUATED_DAYS, Event, Response, Step, Watched, WatchLimits, look
from schemas.checks.evaluation import MOST_ANSWERS, EvaluatedJudge, Evaluation, Origin
from schemas.dead_letters import Record
from streams.alerts import regression_watch
from streams.alerts.evaluations import EvaluationResponses
from streams.alerts.regression_watch import GIVEN_UP_AFTER_MS, Ours, PendingResponse, Regressions, RegressionWatch
from streams.redis.lease import SHORT_LEASE_MS
from tests.memory_ports import ManualClock, MemoryStore
from tests.unit.agents.builders import DAY, Rec
from tests.unit.evalcore.gates.regression_cases import NOW, REGISTRY, bad, only, seen

QUALITY, SAFETY = "helpfulness", "refusal"
SAFETY_STEPS = (Step.RAMP_DOWN, Step.PAGE, Step.LOG)


def said(judge: str, *, well: bool = False, count: int = 40, **changes: Any) -> EvaluatedJudge:
    known = REGISTRY.judge(judge)
    low, high = known.score_range
    about = {"judge_id": judge, "judge_version": known.version, "users": 0 if well else 9, "sessions": 0 if well else 9}
    return EvaluatedJudge.model_validate({**about, "scores": ((high if well else low, 1.0, count),), **changes})


def evaluation(*judges: EvaluatedJudge, **changes: Any) -> Evaluation:
    about = {
        "event_id": "e1", "origin": Origin.AD_HOC, "agent_id": "assistant", "agent_version": "v7",
        "judges": judges, "at": datetime(2026, 11, 21, 3, 0, tzinfo=UTC),
    }  # fmt: skip
    return Evaluation.model_validate({**about, **changes})


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a look with another worker's."""
    monkeypatch.setattr(regression_watch, "WAIT_SECONDS", 0.5)


class Workers:
    """Workers that come and go: nothing is remembered but what the store and the topic hold."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store: Any = MemoryStore(self.clock)
        self.registry = REGISTRY
        self.failing: set[Step] = set()
        self.pending: list[PendingResponse] = []
        """Each response that something was done about, once for each time that its record was taken."""
        self.taken: list[PendingResponse] = []

    async def carry_out(self, pending: PendingResponse, step: Step, ours: Ours) -> bool:
        if not any(one.about == pending.about for one in self.taken):
            self.pending.append(pending)
            self.taken.append(pending)
        return step not in self.failing

    def watch(self) -> RegressionWatch:
        return RegressionWatch(
            self.store, self.clock, lambda: self.registry, self.carry_out,
            window_seconds=86_400, limits=WatchLimits(minimum=30), every=1.0,
        )  # fmt: skip

    async def look(self) -> None:
        self.taken.clear()
        watch = self.watch()
        await watch.once()
        await watch.notified()

    def record(self, found: Evaluation) -> Record:
        self.clock.ms += 1_000
        return Rec(found.model_dump_json().encode(), timestamp=self.clock.ms)

    async def take(self, *records: Record) -> list[Record]:
        """As a worker's consumer hands them in: what waits once more, as soon as the notices are through."""
        self.taken.clear()
        watch = self.watch()
        responses = EvaluationResponses(watch, lambda: self.registry, self.clock)
        waiting = await responses(records)
        await watch.notified()
        if waiting and not self.failing:
            waiting = await responses(waiting)
            await watch.notified()
        return list(waiting)

    async def hear(self, *judges: EvaluatedJudge, **changes: Any) -> list[Record]:
        return await self.take(self.record(evaluation(*judges, **changes)))

    @property
    def done(self) -> list[Response]:
        return [one.response for one in self.pending]

    def events(self) -> list[tuple[str, str]]:
        return [(one.breach.judge_id, one.event) for one in self.done]


@pytest.mark.parametrize("origin", [Origin.AD_HOC, Origin.SCHEDULED])
async def test_pc5_5_7_an_evaluation_below_a_floor_brings_the_response_of_live_scores(origin: Origin) -> None:
    workers = Workers()
    assert await workers.hear(said(SAFETY), said(QUALITY), origin=origin) == []
    found = {one.breach.judge_id: one for one in workers.done}
    for judge in (SAFETY, QUALITY):
        live = only(seen(bad(judge)))
        assert found[judge].steps == live.steps
        assert (found[judge].breach.score, found[judge].breach.n) == (live.breach.score, live.breach.n)
        assert found[judge].breach.origin == origin
    assert found[SAFETY].steps == SAFETY_STEPS
    assert Step.TRIAGE in found[QUALITY].steps


async def test_pc5_5_7_the_same_evaluation_or_the_next_bad_one_is_no_news() -> None:
    workers = Workers()
    record = workers.record(evaluation(said(SAFETY)))
    for _ in range(2):
        assert await workers.take(record) == []
    await workers.hear(said(SAFETY))
    assert workers.events() == [(SAFETY, Event.BREACH)]


async def test_a_breach_of_an_evaluation_ends_by_a_good_evaluation_and_not_by_live_scores() -> None:
    """The sample of an evaluation may be what live traffic rarely is; a page is not resolved a minute later."""
    workers = Workers()
    await workers.hear(said(SAFETY))
    await workers.look()
    assert workers.events() == [(SAFETY, Event.BREACH)]
    await workers.hear(said(SAFETY, well=True))
    assert workers.events()[-1] == (SAFETY, Event.RECOVERED)


async def test_an_evaluation_ends_no_breach_of_live_scores() -> None:
    known = seen(bad(SAFETY))
    good, _ = lines_of(evaluation(said(SAFETY, well=True)), REGISTRY)
    assert look(good, known.open, WatchLimits(), NOW, whole=False).open == known.open


async def test_without_another_evaluation_a_breach_ends_after_a_while_and_is_told_again() -> None:
    workers = Workers()
    await workers.hear(said(QUALITY))
    workers.clock.ms += (EVALUATED_DAYS - 1) * DAY
    await workers.hear(said(QUALITY))
    workers.clock.ms += (EVALUATED_DAYS - 1) * DAY
    await workers.look()
    assert workers.events() == [(QUALITY, Event.BREACH)], "each evaluation found it so"
    workers.clock.ms += 2 * DAY
    await workers.look()
    assert workers.events()[-1] == (QUALITY, Event.LAPSED)
    await workers.hear(said(QUALITY))
    assert workers.events()[-1] == (QUALITY, Event.BREACH)


async def test_a_breach_that_should_have_ended_is_told_again_also_where_nobody_looked_meanwhile() -> None:
    """As where live judging is off."""
    workers = Workers()
    await workers.hear(said(QUALITY))
    workers.clock.ms += (EVALUATED_DAYS + 1) * DAY
    await workers.hear(said(QUALITY))
    assert workers.events() == [(QUALITY, Event.BREACH), (QUALITY, Event.BREACH)]


async def test_a_step_that_failed_keeps_the_record_until_it_is_done_whatever_becomes_of_redis() -> None:
    workers = Workers()
    record = workers.record(evaluation(said(SAFETY)))
    workers.failing = {Step.PAGE}
    assert await workers.take(record) == [record]
    workers.store.flush()
    workers.failing = set()
    assert await workers.take(record) == []
    assert workers.pending[-1].left == SAFETY_STEPS, "it is begun again; the topic of commands knows its command"


async def test_an_evaluation_that_is_tried_again_undoes_nothing_that_a_later_one_found() -> None:
    workers = Workers()
    first = workers.record(evaluation(said(SAFETY)))
    workers.failing = {Step.PAGE}
    assert await workers.take(first) == [first]
    workers.failing = set()
    await workers.hear(said(SAFETY, well=True))
    assert await workers.take(first) == []
    assert workers.events()[-1] == (SAFETY, Event.RECOVERED)


async def test_evaluations_that_come_at_once_forget_nothing_of_each_other() -> None:
    """Each partition of the topic is read beside the others, and they share the watch."""
    workers = Workers()
    begun = asyncio.Event()

    async def carry_out(pending: PendingResponse, step: Step, ours: Ours) -> bool:
        """The first takes longer than any other. Every step is left, to be tried again."""
        waits = 1 if begun.is_set() else 200
        begun.set()
        for _ in range(waits):
            await asyncio.sleep(0)
        return False

    watch = RegressionWatch(
        workers.store, workers.clock, lambda: workers.registry, carry_out,
        window_seconds=86_400, limits=WatchLimits(minimum=30), every=1.0,
    )  # fmt: skip
    responses = EvaluationResponses(watch, lambda: workers.registry, workers.clock)
    records = [workers.record(evaluation(said(SAFETY), agent_version=version)) for version in ("v7", "v8")]
    first = asyncio.create_task(responses([records[0]]))
    await begun.wait()
    second = asyncio.create_task(responses([records[1]]))
    assert [await first, await second] == [[records[0]], [records[1]]]
    await watch.notified()
    known = Regressions.decode(*await workers.store.read([REGRESSION_STATE.key()]))
    assert {breach.agent_version for breach in known.open.values()} == {"v7", "v8"}
    assert {pending.response.breach.agent_version for pending in known.pending} == {"v7", "v8"}


async def test_an_evaluation_of_which_redis_forgot_everything_at_once_is_not_done() -> None:
    """Emptied after the breach was noted: nothing of it is pending any more, and nothing of it was done."""
    workers = Workers()
    record = workers.record(evaluation(said(SAFETY)))

    async def carry_out(pending: PendingResponse, step: Step, ours: Ours) -> bool:
        workers.store.flush()
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "carry_out", carry_out)
        workers.failing = {Step.RAMP_DOWN}  # it is taken once
        assert await workers.take(record) == [record]
    workers.failing = set()
    assert await workers.take(record) == []
    assert workers.events() == [(SAFETY, Event.BREACH)]


async def test_while_another_worker_looks_the_record_waits() -> None:
    workers = Workers()
    other = workers.store.lease(REGRESSION_LEASE.key(), SHORT_LEASE_MS)
    await other.acquire()
    record = workers.record(evaluation(said(SAFETY)))
    assert await workers.take(record) == [record]
    assert workers.done == []
    await other.release()
    assert await workers.take(record) == []


async def test_scores_of_a_version_that_does_not_serve_wait_for_it_and_the_others_count() -> None:
    """A judge that was just added, or changed: the worker may not have read its file yet."""
    workers = Workers()
    record = workers.record(evaluation(said(SAFETY), said(QUALITY, judge_version="other"), said(QUALITY, judge_id="x")))
    assert await workers.take(record) == [record]
    assert workers.events() == [(SAFETY, Event.BREACH)]
    workers.clock.ms += GIVEN_UP_AFTER_MS
    with capture_logs() as logs:
        assert await workers.take(record) == []
    (line,) = [line for line in logs if line["event"] == "evaluation_given_up"]
    assert "another version serves here: helpfulness, x" in line["reason"]


async def test_what_is_no_evaluation_is_not_quoted_and_holds_nothing_up() -> None:
    workers = Workers()
    with capture_logs() as logs:
        assert await workers.take(Rec(b"canary"), Rec(b'{"canary": 1}'), workers.record(evaluation(said(SAFETY)))) == []
    assert "canary" not in str(logs)
    assert workers.events() == [(SAFETY, Event.BREACH)]


async def test_few_scores_decide_nothing_and_what_is_off_the_scale_is_no_score() -> None:
    workers = Workers()
    await workers.hear(said(SAFETY, count=29))
    assert workers.done == []
    await workers.hear(said(SAFETY, scores=((-5.0, 1.0, 40),)))
    ((one, _),) = [(one.breach.kind, one.steps) for one in workers.done]
    assert one == "unscored", "it pages as a judge that gives no score, and ramps no one down"


def test_what_has_no_usable_weight_is_unscored_and_no_unscored_item_weighs_nothing() -> None:
    known = said(SAFETY, scores=((0.0, math.inf, 2), (0.0, -1.0, 1), (0.0, 2.0, 1)), missing=((-5.0, 1), (math.nan, 1)))
    ((line,), _) = lines_of(evaluation(known), REGISTRY)
    assert (line.answers.weights, line.answers.missing) == ((2.0,), (1.0,) * 5)


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": "live"},
        {"scores": ((0.0, 1.0, MOST_ANSWERS + 1),)},
        {"missing": ((1.0, MOST_ANSWERS), (1.0, 1))},
        {"scores": ((0.0, 1.0, -1),)},
    ],
    ids=["of live scores", "more scores than anybody gives", "more missing ones", "less than none"],
)
async def test_a_record_that_no_evaluation_makes_brings_nothing_and_fills_no_memory(changes: dict[str, Any]) -> None:
    made = evaluation(said(SAFETY)).model_dump(mode="json")
    (made if "origin" in changes else made["judges"][0]).update(changes)
    workers = Workers()
    with capture_logs() as logs:
        assert await workers.take(Rec(json.dumps(made).encode())) == []
    assert [one["event"] for one in logs] == ["no_evaluation"]
    assert workers.done == []


HOUR = 3_600_000


@dataclass(frozen=True)
class Stamped(Rec):
    """A record that its broker has stamped."""

    timestamp_type: int = 1


class Watch:
    """Stands for what responds."""

    def __init__(self) -> None:
        self.evaluations: list[str] = []

    async def evaluated(self, lines: Sequence[Watched], at: int) -> bool:
        self.evaluations += [line.agent_version for line in lines]
        return True


def body(version: str, at: str) -> bytes:
    judge = REGISTRY.judge("refusal")
    said = EvaluatedJudge(judge_id=judge.id, judge_version=judge.version, scores=((judge.score_range[0], 1.0, 40),))
    made = Evaluation(
        event_id="e", origin=Origin.AD_HOC, agent_id="a", agent_version=version, judges=(said,), at=datetime.now(UTC)
    )
    return json.dumps(json.loads(made.model_dump_json()) | {"at": at}).encode()


@pytest.mark.parametrize(
    ("dated", "kind", "appended"),
    [
        ("ahead", Rec, 0),
        ("no zone", Rec, 0),
        ("beyond the calendar", Rec, 0),
        ("ahead", Stamped, -HOUR),
    ],
    ids=["of a producer's time", "without a zone", "beyond the calendar", "read long after it was appended"],
)
async def test_an_evaluation_that_is_dated_ahead_is_passed_over_alone(
    dated: str, kind: type[Rec], appended: int
) -> None:
    watch: Any = Watch()
    clock = ManualClock()
    came = clock.ms + appended
    now = datetime.fromtimestamp(came / 1_000, UTC)
    times = {"ahead": (now + timedelta(minutes=30)).isoformat(), "no zone": now.replace(tzinfo=None).isoformat()}
    times["beyond the calendar"] = "0001-01-01T00:00:00+23:00"
    ahead_too = came + HOUR if kind is Rec else came  # a producer dates its record as it likes
    records = [
        Rec(body("before", now.isoformat()), "rampgate.evaluations", timestamp=came),
        kind(body("bad", times[dated]), "rampgate.evaluations", timestamp=ahead_too),
        kind(body("after", (now + timedelta(seconds=50)).isoformat()), "rampgate.evaluations", timestamp=came),
    ]
    assert await EvaluationResponses(watch, lambda: REGISTRY, clock)(records) == []
    assert watch.evaluations == ["before", "after"]
