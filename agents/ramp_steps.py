"""The agent of the topic `ramp-steps`: takes a request, returns its verdict, and counts its record (PC5 §5.5, §5.8,
AC-4).

`answer` is a plain function of the request and its ports. It knows no Kafka and no Redis: `streams.gates` decodes
records, repeats what failed and publishes each verdict once. A port that is out of reach raises Unavailable; the
request then waits, and its deadline goes on.

`RampCounting` holds the conservation of the requests (promises 2 and 3, contracts §2), whose records end in any order.
The verdicts' topic alone says how a record ends, so a record that is read again ends as before. Which records are
counted is stored beside the counters and changes with them in one step: all below the partition's watermark, and above
it the noted spans. A request that is being decided is not counted yet.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from agents.gates.ports import AskingGate, GatePorts, OutOfTime, Sample
from agents.join.batches import Batch
from agents.join.counting import CONSUMED, arrival, count_tallies, tally
from agents.join.step import until_recorded
from agents.join.step_data import Report
from agents.keys import COUNTED, FOREVER, WATERMARK
from agents.ports import Change, Clock, Store, Unavailable
from evalcore.gates.gate import prepare, wrong_vertical
from evalcore.gates.history import Line
from evalcore.gates.requests import (
    GateBefore,
    InvalidRequest,
    RampRequest,
    gate_before,
    halt_at,
    judges_of,
    of_step,
    preceding,
)
from evalcore.gates.skips import SkippedGate
from evalcore.gates.verdict import Moment, invalid, of_gates, refused, step_down
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answer
from schemas.dead_letters import Record, UnreadableRecord
from schemas.judges import Milestone
from schemas.manifests import GateDefaults
from schemas.outcomes import Kind
from schemas.verdicts import Code, GateVerdict, Reason, Verdict, VerdictLevel

MARGIN = 0.5
"""Seconds kept for deciding and publishing after the judges."""
PUBLISHED_LATE = "but what holds verdicts was out of reach until the deadline had passed"
NO_CONFIGURATION = "the registry is not loaded: no judge, threshold or category is known"


async def answer(
    request: RampRequest | InvalidRequest, registry: Registry | None, ports: GatePorts, now: datetime | None = None
) -> Verdict:
    """Decide a request and return its verdict. `now` is when deciding begins. Raises Unavailable."""
    began = time.monotonic()
    now = now or datetime.now(UTC)
    config = registry.config_hash if registry is not None else None

    def moment() -> Moment:
        taken = time.monotonic() - began
        return Moment((now + timedelta(seconds=taken)).isoformat(timespec="milliseconds"), round(taken, 3))

    async def refusal(*reasons: Reason, config: str | None = config) -> Verdict:
        return refused(request, reasons, moment(), halt_at=await _halt(request, ports), config_hash=config)

    if request.goes_down:
        return step_down(request, moment())
    if isinstance(request, InvalidRequest):
        return invalid(request, moment(), halt_at=await _halt(request, ports))
    left = _seconds_left(request, now)
    if left is not None and left <= 0:
        return await refusal(_too_late(request, 0), config=None)
    before = await _before(request, registry, ports)
    if before is not None and before.level is VerdictLevel.FAIL:  # whatever judges would say, and they cost
        return await refusal(before.reason)
    missing = before.reason if before is not None else None
    if not request.milestones:
        return of_gates(request, [], moment(), config_hash=config, missing=missing)
    if registry is None:
        return await refusal(Reason(Code.JUDGE_UNAVAILABLE, NO_CONFIGURATION))
    wrong = [why for milestone in request.milestones for why in judges_of(request, milestone, registry)[1]]
    if wrong:
        return await refusal(*(Reason(Code.INVALID_REQUEST, why) for why in wrong))
    scope = asyncio.timeout(left)
    gates: list[_Gate] = []
    since = began
    late: Reason | None = None
    try:
        async with scope, ports.room:
            ends = began + left if left is not None else None
            for one in request.milestones:
                gate = await _gate(request, one, registry, ports, now.date(), ends)
                since, taken = time.monotonic(), time.monotonic() - since
                gates.append(replace(gate, verdict=replace(gate.verdict, duration_seconds=round(taken, 3))))
    except (TimeoutError, OutOfTime) as error:
        if isinstance(error, TimeoutError) and not scope.expired():
            raise
        # A gate that ran and failed stands, whatever the next one would have come to.
        if not any(gate.verdict.verdict is VerdictLevel.FAIL for gate in gates):
            late = _too_late(request, time.monotonic() - began)
    halt = await _halt(request, ports)
    # Only here: a request that met Unavailable before is decided again, and its scores count once.
    for gate in gates:
        ports.scores(gate.verdict.milestone, gate.answers)
    if late is not None:
        return refused(request, [late], moment(), halt_at=halt, config_hash=config)
    verdicts = [gate.verdict for gate in gates]
    decides = of_step(halt, verdicts).deciding
    worst = next(gate for gate in gates if gate.verdict is decides)
    return of_gates(
        request,
        verdicts,
        moment(),
        sample=worst.sample.facts,
        config_hash=config,
        coverage=worst.coverage,
        halt_at=halt,
        missing=missing,
    )


async def _before(request: RampRequest, registry: Registry | None, ports: GatePorts) -> GateBefore | None:
    """Ask how the definition stands with the gates before: the history decides, and not where a request says it
    stands."""
    enforcement = (registry.gates if registry is not None else GateDefaults()).preceding_gate
    stands = {one: await ports.history.stand(request, one) for one in preceding(request.stands, request.wanted)}
    return gate_before(request.step, stands, enforcement)


async def _halt(request: RampRequest | InvalidRequest, ports: GatePorts) -> float:
    """Return the percentage to hold after a halt, which every verdict that halts a rollout takes from here."""
    return halt_at(request, await ports.history.stand(request, Milestone.PRE_RAMP))


@dataclass(frozen=True)
class RampAnswers:
    """Answers requests by the registry that serves when deciding begins. Each may raise Unavailable."""

    registry: Callable[[], Registry | None]
    ports: GatePorts

    async def decided(self, request: RampRequest | InvalidRequest) -> Verdict:
        return await answer(request, self.registry(), self.ports)

    async def broken(self, request: RampRequest | InvalidRequest, why: str, moment: Moment) -> Verdict:
        """Return the verdict in place of one that a defect of ours kept from being made."""
        if request.goes_down:
            return step_down(request, moment)
        reasons = [Reason(Code.JUDGE_UNAVAILABLE, why)]
        return refused(request, reasons, moment, halt_at=await _halt(request, self.ports))

    async def last(self, request: RampRequest | InvalidRequest, verdict: Verdict, now: datetime) -> Verdict:
        """Return the verdict, or a refusal in its place where it would let a rollout go on after the deadline, or after
        a gate before has failed: it could not be published earlier."""
        if isinstance(request, InvalidRequest) or request.goes_down or verdict.verdict is VerdictLevel.FAIL:
            return verdict
        left = _seconds_left(request, now)
        before = await _before(request, self.registry(), self.ports)
        if left is not None and left <= 0:
            late = f"decided as {verdict.verdict}, {PUBLISHED_LATE}, {-left:.1f} s after it{_ahead(request)}"
            reason = Reason(Code.DEADLINE_EXCEEDED, late)
        elif before is not None and before.level is VerdictLevel.FAIL:
            reason = before.reason
        else:
            return verdict
        facts = verdict.evidence
        moment = Moment(now.isoformat(timespec="milliseconds"), facts.duration_seconds)
        halt = await _halt(request, self.ports)
        return refused(request, [reason], moment, halt_at=halt, config_hash=facts.config_hash)


@dataclass(frozen=True)
class _Gate:
    verdict: GateVerdict
    sample: Sample
    coverage: float | None
    answers: Mapping[str, Sequence[Answer]]


async def _gate(
    asked: RampRequest, milestone: Milestone, registry: Registry, ports: GatePorts, today: date, ends: float | None
) -> _Gate:
    """Bring one gate to its verdict. `ends`: when the deadline passes, on the monotonic clock."""
    names, _ = judges_of(asked, milestone, registry)
    sample = await ports.samples.frozen(asked, milestone, registry)
    overrides = await ports.overrides()
    skip = overrides.of(SkippedGate(milestone, asked.step.agent_id, asked.step.agent_version), today)
    gate = prepare(milestone, sample.items, names, registry, asked.step.vertical, skip)
    shortage = "; ".join(filter(None, [sample.shortage, *wrong_vertical(asked.step.vertical, registry)]))
    window = registry.gates.window_seconds.get(milestone)
    # Read with the sample: the gate must not see counts that change while its judges work.
    rate = await ports.coverage.rate(gate.vertical, window) if window is not None else None
    step = asked.step
    asking = AskingGate(asked.request_id, milestone, step.agent_id, step.agent_version, gate.vertical or step.vertical)
    answers = await ports.scoring.score(asking, list(gate.judges.values()), gate.items, _within(ends))
    history = {
        name: await ports.history.baseline(asked, _line(asked, milestone, name, judge, sample))
        for name, judge in gate.judges.items()
    }
    suspended = {one.id: await ports.history.suspended(one.id, one.version) for one in gate.judges.values()}
    verdict = gate.verdict(
        answers,
        today,
        history=history,
        suspended=suspended,
        overrides=overrides,
        coverage=rate,
        coverage_floor=registry.gates.coverage_floor if window is not None else None,
        mismatches=sample.mismatches,
        incomplete=sample.facts.incomplete,
        shortage=shortage,
    )
    return _Gate(replace(verdict, sample=sample.facts), sample, rate, answers)


def _line(asked: RampRequest, milestone: Milestone, name: str, judge: Judge, sample: Sample) -> Line:
    step, facts = asked.step, sample.facts
    return Line(name, judge.version, milestone, step.agent_id, step.vertical, facts.dataset_version, facts.scope)


def _within(ends: float | None) -> float | None:
    """Seconds that judges may take so that the verdict is out before the deadline; None without one."""
    if ends is None:
        return None
    left = ends - time.monotonic()
    return max(left - min(MARGIN, left / 10), 0.0)


def _seconds_left(asked: RampRequest, now: datetime) -> float | None:
    """Seconds until the deadline; None without one. A time in the future counts as now."""
    if asked.step.deadline_seconds is None:
        return None
    return asked.step.deadline_seconds - max((now - asked.requested_at).total_seconds(), 0.0)


def _too_late(asked: RampRequest, taken: float) -> Reason:
    message = (
        f"not decided within the deadline of {asked.step.deadline_seconds or 0:g} s after "
        + asked.requested_at.isoformat()
        + _ahead(asked)
        + (f"; deciding took {taken:.1f} s so far" if taken else "; it had passed when deciding began")
    )
    return Reason(Code.DEADLINE_EXCEEDED, message)


def _ahead(asked: RampRequest) -> str:
    """Says that the deadline does not count from when the request says; empty where it does."""
    if asked.requested_at == asked.stated_at:
        return ""
    return f" (when its record came: requested_at says {asked.stated_at.isoformat()}, which lies ahead of that)"


Place = tuple[str, int]
"""(topic, partition)."""
Span = tuple[int, int]
"""(first offset, offset after the last)."""


@dataclass(frozen=True, eq=False, slots=True)
class Ended:
    """How a record ended: `name` is a field of conservation. From offset `since` to the record there is no other
    record."""

    since: int
    record: Record
    name: str


class RampCounting:
    """Counts each ramp-step record once. `observe` gets the report of each recorded step."""

    def __init__(self, store: Store, clock: Clock, lookback_ms: int, observe: Callable[[Report], None]) -> None:
        self._store, self._clock, self._lookback, self._observe = store, clock, lookback_ms, observe
        self._waiting: defaultdict[Place, dict[Ended, None]] = defaultdict(dict)
        self._steps: defaultdict[Place, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def end(self, batch: Batch, ended: Ended) -> None:
        """Return once the record is counted, by this call or an earlier one. Calls that arrive during a step share the
        next. Raises Unavailable, also where the watermark is gone: the state was lost, and the partition will be read
        again."""
        place = batch.topic, batch.partition
        waiting = self._waiting[place]
        waiting[ended] = None
        try:
            async with self._steps[place]:
                if ended in waiting:
                    many = list(waiting)
                    await self._count(place, many)
                    for one in many:
                        waiting.pop(one, None)
        finally:
            waiting.pop(ended, None)

    async def counted(self, batch: Batch, record: Record) -> bool:
        """Return whether any worker counted the record. Raises Unavailable."""
        place = batch.topic, batch.partition
        mark, held = await self._store.read([WATERMARK.key(*place), COUNTED.key(*place)])
        return bool(mark) and inside(record.offset, counted(int(mark), held))

    async def _count(self, place: Place, many: Sequence[Ended]) -> None:
        mark_key, above_key = WATERMARK.key(*place), COUNTED.key(*place)

        async def attempt() -> Report | None:
            now = self._clock.now_ms()
            mark, held = await self._store.read([mark_key, above_key])
            if not mark:
                raise Unavailable(f"the watermark {mark_key} is gone: its partition is read again")
            spans = counted(int(mark), held)
            # A record that was read twice may be here twice.
            fresh = {one.record.offset: one for one in many if not inside(one.record.offset, spans)}.values()
            tallies: dict[tuple[str, int, str], int] = {}
            report = Report()
            for one in fresh:
                at = arrival(one.record, now, self._lookback)
                by = one.record.count if isinstance(one.record, UnreadableRecord) else 1
                for name in (CONSUMED, one.name):
                    tally(tallies, Kind.RAMP_STEP, at, name, by)
                    report.counts[Kind.RAMP_STEP, name] = report.counts.get((Kind.RAMP_STEP, name), 0) + by
            change = Change(checks={mark_key: mark, above_key: held})
            (_, end), *rest = joined([*spans, *((one.since, one.record.offset + 1) for one in fresh)])
            change.sets = {mark_key: (str(end).encode(), FOREVER), above_key: (written(end, rest), FOREVER)}
            count_tallies(change, tallies, now, self._lookback)
            return None if await self._store.apply(change) else report

        self._observe(await until_recorded(attempt))


def counted(mark: int, held: bytes) -> list[Span]:
    """Return the spans of counted offsets, in order; the first is everything below the watermark. Spans noted above a
    higher watermark belong to a topic that was deleted and made again, and do not count. A watermark rises without
    spans where Kafka's retention deletes records before they are read."""
    noted, *spans = held.decode().split() or ["0"]
    above = [(int(start), int(end)) for start, _, end in (span.partition("-") for span in spans)]
    return joined([(0, mark), *above]) if int(noted) <= mark else [(0, mark)]


def written(mark: int, above: Iterable[Span]) -> bytes:
    return " ".join([str(mark), *(f"{start}-{end}" for start, end in above)]).encode()


def inside(offset: int, spans: Sequence[Span]) -> bool:
    """Return whether one of the ordered spans holds the offset."""
    return offset < spans[bisect_right(spans, offset, key=lambda span: span[0]) - 1][1]


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the same offsets in order and in as few spans as possible."""
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
