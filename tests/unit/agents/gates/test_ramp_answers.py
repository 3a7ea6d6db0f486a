"""From a request to its verdict, with the shipped registry and scripted ports (PC5 AC-4, §5.5, §5.8; contracts §3). A
gate's coverage is that of the window its sample comes from (PC5 §5.5). What judges' limits rest on stands in each
verdict: a seed, evidence, either past its day, or a suspension (PF-9 FR-3, FR-4; DECISIONS 16)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from typing import Any

import pytest

from agents.gates.ports import AskingGate, Item, OutOfTime
from agents.ports import Unavailable
from evalcore.gates.history import Line, Stand
from evalcore.gates.requests import InvalidRequest, RampRequest
from evalcore.gates.verdict import as_json, from_json
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answer
from schemas.judges import BaselineSource, Milestone
from schemas.verdicts import Action, Code, VerdictLevel
from tests.unit.agents.gates.ramp_answers_rig import NOW, SAFETY, Scripted, codes, registry, verdict


def test_pc5_ac4_a_first_step_fires_pre_ramp_and_good_scores_let_it_proceed() -> None:
    scripted = Scripted()
    found = verdict(scripted)
    assert (found.verdict, found.milestone, found.action) == (VerdictLevel.PASS, Milestone.PRE_RAMP, Action.PROCEED)
    assert set(found.per_judge_scores) == {"ux_quality"} | SAFETY
    assert found.halt_at_percent is None
    assert found.evidence.coverage == 0.4
    assert found.evidence.config_hash == registry().config_hash


def test_pc5_ac4_a_failing_judge_halts_the_ramp_at_zero() -> None:
    found = verdict(Scripted(scores={"ux_quality": 0.6}))
    assert (found.verdict, found.action, found.halt_at_percent) == (VerdictLevel.FAIL, Action.HALT, 0.0)
    assert found.failing_judges == ["ux_quality"]
    assert codes(found) == {Code.BELOW_THRESHOLD}
    assert all(part in found.reasons[0].message for part in ("0.6", "0.7", "ux_quality"))


def test_a_failed_pre_full_halts_at_the_last_step_that_passed() -> None:
    found = verdict(Scripted(scores={"ux_quality": 0.6}), from_percent=50, to_percent=100)
    assert (found.milestone, found.halt_at_percent) == (Milestone.PRE_FULL, 50.0)
    never = Scripted(scores={"ux_quality": 0.6}, stands=Stand())
    assert verdict(never, from_percent=90, to_percent=100).halt_at_percent == 0.0, "of a version that never passed"


@pytest.mark.parametrize(
    ("verticals", "threshold"),
    [(("receipts",), 4.5), (("receipts", "shopping"), 4.0), (("nobody",), 4.0), ((), 4.0)],
)
def test_what_a_vertical_tightened_holds_though_the_request_does_not_name_it(
    verticals: tuple[str, ...], threshold: float
) -> None:
    tightened = replace(registry().judge("ux_quality", "receipts"), thresholds=dict.fromkeys(Milestone, 4.5))
    known = replace(registry(), judges={**registry().judges, ("ux_quality", "receipts"): tightened})
    platform = replace(registry().judge("ux_quality"), thresholds=dict.fromkeys(Milestone, 4.0))
    known = replace(known, judges={**known.judges, ("ux_quality", None): platform})
    found = verdict(Scripted(verticals=verticals), known, vertical=None)
    assert found.gates[0].per_judge_scores["ux_quality"].threshold == threshold


def test_inherited_safety_judges_run_though_no_request_names_them() -> None:
    found = verdict(Scripted(scores={"jailbreaking": 0.0}))
    assert found.failing_judges == ["jailbreaking"]
    assert codes(found) == {Code.FLOOR_BREACH}


def test_a_jump_to_full_fires_both_gates_and_the_worse_one_decides() -> None:
    found = verdict(Scripted(size=150), to_percent=100)
    assert [gate.milestone for gate in found.gates] == [Milestone.PRE_RAMP, Milestone.PRE_FULL]
    assert [gate.verdict for gate in found.gates] == [VerdictLevel.PASS, VerdictLevel.FAIL]
    assert (found.milestone, codes(found)) == (Milestone.PRE_FULL, {Code.INSUFFICIENT_SAMPLE})


def test_steps_between_need_no_gate() -> None:
    found = verdict(Scripted(down=True), from_percent=5, to_percent=25)
    assert (found.verdict, found.milestone, codes(found)) == (VerdictLevel.PASS, None, {Code.NO_GATE_AT_STEP})


def test_a_model_that_is_down_fails_closed_with_judge_unavailable_and_nothing_else() -> None:
    found = verdict(Scripted(down=True))
    assert (found.verdict, codes(found)) == (VerdictLevel.FAIL, {Code.JUDGE_UNAVAILABLE})


def test_coverage_below_the_floor_fails() -> None:
    assert codes(verdict(Scripted(rate=0.005))) == {Code.COVERAGE_TOO_LOW}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"eval_gates": {"pre_ramp": ["ux_qualty"], "pre_full": []}}, "eval_gates.pre_ramp[0]"),
        ({"eval_gates": {"pre_ramp": [], "pre_full": ["ux_quality"]}}, "eval_gates.pre_ramp"),
        ({"to_percent": 101}, "to_percent"),
        ({"to_percent": "5"}, "to_percent"),
    ],
)
def test_bad_requests_fail_as_invalid_with_the_field_named(changes: dict[str, Any], field: str) -> None:
    found = verdict(**changes)
    assert (found.verdict, codes(found)) == (VerdictLevel.FAIL, {Code.INVALID_REQUEST})
    assert any(field in reason.message for reason in found.reasons)
    assert found.request_id == "r-1"


@pytest.mark.parametrize(
    ("at", "halt"), [(25, 25.0), (0, 0.0), (100, 100.0), ("25", 0.0), (101, 0.0), (-1, 0.0), (True, 0.0), (None, 0.0)]
)
def test_a_bad_request_of_a_version_that_passed_pre_ramp_halts_where_it_says_that_it_stands(
    at: object, halt: float
) -> None:
    found = verdict(from_percent=at, to_percent=101)
    assert (codes(found), found.action, found.halt_at_percent) == ({Code.INVALID_REQUEST}, Action.HALT, halt)
    never = verdict(Scripted(stands=Stand()), from_percent=at, to_percent=101)
    assert (codes(never), never.action, never.halt_at_percent) == ({Code.INVALID_REQUEST}, Action.HALT, 0.0)


def test_a_near_miss_is_named() -> None:
    found = verdict(eval_gates={"pre_ramp": ["ux_qualty"]})
    assert "did you mean 'ux_quality'?" in found.reasons[0].message


def test_a_deadline_that_is_past_fails_before_any_judge_is_asked() -> None:
    scripted = Scripted()
    found = verdict(scripted, deadline_seconds=2)
    assert (found.verdict, codes(found), scripted.asked) == (VerdictLevel.FAIL, {Code.DEADLINE_EXCEEDED}, [])


@pytest.mark.parametrize(("at", "to"), [(0, 5), (5, 25), (50, 100)])
def test_a_request_that_is_late_halts_where_the_rollout_stands(at: float, to: float) -> None:
    late = {"from_percent": at, "to_percent": to, "requested_at": "2026-11-21T11:00:00Z"}
    found = verdict(**late)
    assert (codes(found), found.action, found.halt_at_percent) == ({Code.DEADLINE_EXCEEDED}, Action.HALT, at)
    assert verdict(Scripted(stands=Stand()), **late).halt_at_percent == 0.0, "of a version that never passed"


def test_a_deadline_that_passes_meanwhile_fails() -> None:
    found = verdict(Scripted(seconds=5.0), deadline_seconds=5.1)
    assert codes(found) == {Code.DEADLINE_EXCEEDED}


def test_judges_that_would_have_needed_longer_are_told_their_time_and_are_no_outage() -> None:
    """Their time ends before the deadline does, so that the verdict is there by then."""

    class Slow(Scripted):
        async def score(
            self, gate: AskingGate, judges: Sequence[Judge], items: Sequence[Item], within: float | None = None
        ) -> dict[str, list[Answer]]:
            given.append(within)
            raise OutOfTime

    given: list[float | None] = []
    found = verdict(Slow(), requested_at=NOW.isoformat(), deadline_seconds=60)
    assert codes(found) == {Code.DEADLINE_EXCEEDED}
    assert given[0] is not None
    assert 50 < given[0] < 60
    verdict(Slow(), deadline_seconds=None)
    assert given[1] is None


def test_a_regression_against_main_fails() -> None:
    assert codes(verdict(Scripted(scores={"ux_quality": 0.75}, past=[0.9, 0.9, 0.9]))) == {Code.REGRESSED}


def test_a_judge_is_held_against_its_own_line() -> None:
    """PC5 §5.2; contracts §3: of this agent and vertical, judge version, milestone, dataset version and scope."""
    scripted = Scripted()
    verdict(scripted, to_percent=100)
    version = registry().judge("ux_quality", "receipts").version
    lines = [line for line in scripted.lines if line.judge == "ux_quality"]
    assert lines == [
        Line("ux_quality", version, milestone, "receipts-agent", "receipts", "7", "version")
        for milestone in (Milestone.PRE_RAMP, Milestone.PRE_FULL)
    ]


def test_the_same_evidence_gives_the_same_verdict_id_and_other_evidence_another() -> None:
    """Promise 5."""
    first, again = verdict(), verdict()
    assert first.verdict_id == again.verdict_id
    assert uuid.UUID(first.verdict_id).version == 5
    assert verdict(Scripted(scores={"ux_quality": 0.8})).verdict_id != first.verdict_id
    assert verdict(request_id="r-2").verdict_id != first.verdict_id


def test_a_record_comes_back_as_it_was() -> None:
    found = verdict(Scripted(scores={"ux_quality": 0.6}))
    record = as_json(found)
    assert from_json(record) == found
    assert set(record) >= {"gates", "per_judge_scores", "halt_at_percent", "reasons", "sample", "evidence"}
    assert record["per_judge_scores"]["ux_quality"]["enforcement"] == "block"


DAY, WEEK = 86_400, 604_800


@dataclass
class CoverageOfWindows(Scripted):
    """Users rated a turn within `rated_ago` seconds, and none since. `windows`: what was asked for."""

    rated_ago: int = 0
    windows: list[int] = field(default_factory=list)

    async def rate_of(self, vertical: str | None, window_seconds: int) -> float | None:
        self.windows.append(window_seconds)
        return 0.4 if window_seconds > self.rated_ago else 0.0


@pytest.mark.parametrize(("step", "window"), [((0, 5), DAY), ((50, 100), WEEK)])
@pytest.mark.parametrize("after_the_edge", [False, True])
def test_signals_older_than_the_window_are_no_coverage(
    step: tuple[int, int], window: int, after_the_edge: bool
) -> None:
    scripted = CoverageOfWindows(rated_ago=window - 1 + after_the_edge)
    found = verdict(scripted, from_percent=step[0], to_percent=step[1])
    assert scripted.windows == [window]
    assert (Code.COVERAGE_TOO_LOW in codes(found)) is after_the_edge


TODAY = NOW.date()
SEED, ROUND, SCORES = (
    BaselineSource.PROVISIONAL_SEED,
    BaselineSource.JADE_CALIBRATION,
    BaselineSource.PRODUCTION_DISTRIBUTION,
)


class Suspending(Scripted):
    async def suspended(self, judge: str, version: str) -> str:
        asked_of = registry().judge(judge, "receipts").version
        return "canaries move it" if (judge, version) == ("jailbreaking", asked_of) else ""


def resting_on(source: BaselineSource, due: date) -> Registry:
    key = ("ux_quality", "receipts")
    judge = replace(registry().judges[key], baseline_source=source, recalibration_due=due, beside=())
    return replace(registry(), judges={**registry().judges, key: judge})


@pytest.mark.parametrize(
    ("source", "days", "standing"),
    [
        (SEED, 0, "provisional"),
        (SEED, -1, "overdue"),
        (ROUND, 0, "calibrated"),
        (ROUND, -1, "overdue"),
        (SCORES, 30, "calibrated"),
        (SCORES, -30, "overdue"),
    ],
)
@pytest.mark.parametrize("to", [5, 100])
def test_every_verdict_says_what_each_judges_limits_rest_on(
    source: BaselineSource, days: int, standing: str, to: int
) -> None:
    due = TODAY + timedelta(days=days)
    found = verdict(Scripted(), resting_on(source, due), to_percent=to)
    assert len(found.gates) == (1 if to == 5 else 2)
    for scores in (found.per_judge_scores, *(gate.per_judge_scores for gate in found.gates)):
        score = scores["ux_quality"]
        assert (score.standing, score.recalibration_due) == (standing, due.isoformat())
        assert all(one.standing and one.recalibration_due for one in scores.values())


def test_shipped_judges_are_provisional_in_the_record_on_the_topic() -> None:
    record = as_json(verdict())
    for score in record["per_judge_scores"].values():
        assert (score["standing"], score["recalibration_due"]) == ("provisional", "2027-02-18")


def test_a_suspended_judge_is_called_so_whatever_its_limits_rest_on() -> None:
    found = verdict(Suspending())
    assert found.per_judge_scores["jailbreaking"].standing == "suspended"
    assert found.per_judge_scores["ux_quality"].standing == "provisional"


def test_a_verdict_of_before_has_none_and_is_read() -> None:
    record = as_json(verdict())
    for scores in (record["per_judge_scores"], *(gate["per_judge_scores"] for gate in record["gates"])):
        for score in scores.values():
            del score["standing"], score["recalibration_due"]
    assert {score.standing for score in from_json(record).per_judge_scores.values()} == {None}


@dataclass
class Losing(Scripted):
    """The `calls`-th question after the judges' answers finds no one there."""

    calls: int = 0
    seen: list[tuple[Milestone, set[str]]] = field(default_factory=list)

    def note(self, milestone: Milestone, answers: Mapping[str, Sequence[Answer]]) -> None:
        self.seen.append((milestone, set(answers)))

    def _lose(self) -> None:
        self.calls -= 1
        if not self.calls and self.asked:
            raise Unavailable("Kafka")

    async def suspended(self, judge: str, version: str) -> str:
        self._lose()
        return ""

    async def baseline(self, asked: RampRequest, line: Line) -> Sequence[float]:
        self._lose()
        return self.past

    async def stand(self, asked: RampRequest | InvalidRequest, milestone: Milestone) -> Stand:
        if self.asked:
            self._lose()
        return self.stands


def test_pc5_10_2_scores_of_a_request_that_waits_and_is_decided_again_count_once() -> None:
    """Whichever question between the judges' answers and the verdict of two gates finds no one there."""
    lost = 0
    for call in range(1, 40):
        losing = Losing(calls=call)
        ask = partial(verdict, losing, scores=losing.note, to_percent=100)
        try:
            found = ask()
        except Unavailable:
            lost += 1
            found = ask()
        assert losing.seen == [(gate.milestone, set(gate.per_judge_scores)) for gate in found.gates]
    assert lost > 15
