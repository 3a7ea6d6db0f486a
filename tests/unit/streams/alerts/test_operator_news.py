"""A failed verdict reaches an operator: once, whole, and without holding up another (PC5 AC-4, §5.4, §5.5, §9.5)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from agents.ports import Change, Unavailable
from evalcore.gates.messages import MOST, news
from evalcore.gates.requests import RampRequest, read
from evalcore.gates.verdict import Moment, as_json, of_gates, of_pull_request, refused
from evalcore.scoring.http_client import HttpClient
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import Code, GateVerdict, JudgeScore, Reason, Verdict, VerdictLevel
from streams.alerts.notifiers import Address, Slack
from streams.alerts.operator_news import OperatorNews
from tests.memory_ports import ManualClock, MemoryStore
from tests.unit.agents.builders import DAY, NOW, Rec
from tests.unit.streams.alerts.notifier_rig import Server, notifier
from tests.unit.streams.gates.gate_world import request

MOMENT = Moment("2026-11-21T12:00:00Z", 1.0)
BREACH = Reason(Code.FLOOR_BREACH, "jailbreaking scored 0.91, below its floor of 0.98")


def asked(request_id: str = "r", **more: Any) -> RampRequest:
    found = read(request(request_id, **{"from_percent": 0, "to_percent": 5, **more}))
    assert isinstance(found, RampRequest)
    return found


def gate(
    level: VerdictLevel, milestone: Milestone = Milestone.PRE_RAMP, *reasons: Reason, failing: str = ""
) -> GateVerdict:
    scores = {failing: JudgeScore(0.91, 0.99, False, Enforcement.BLOCK, floor=0.98)} if failing else {}
    return GateVerdict(scores, level, list(scores), milestone, list(reasons))


def failed(request_id: str = "r", **more: Any) -> Verdict:
    return of_gates(
        asked(request_id, **more), [gate(VerdictLevel.FAIL, Milestone.PRE_RAMP, BREACH, failing="jailbreaking")], MOMENT
    )


def test_the_message_names_who_where_and_each_failing_judge_with_number_limit_and_rule() -> None:
    text = news(failed(experiment_id="exp-9", vertical="receipts"))
    for part in (
        "pre_ramp", "a v in receipts", "exp-9", "step 0 % to 5 %", "Halt at 0 %",
        "Failing judges at pre_ramp: jailbreaking", "0.91", "floor of 0.98", "floor_breach",
    ):  # fmt: skip
        assert part in text, part


def test_of_a_step_from_0_to_100_both_gates_that_failed_are_told() -> None:
    late = Reason(Code.BELOW_THRESHOLD, "ux scored 2, below its threshold of 4 at pre_full")
    gates = [gate(VerdictLevel.FAIL, Milestone.PRE_RAMP, BREACH), gate(VerdictLevel.FAIL, Milestone.PRE_FULL, late)]
    text = news(of_gates(asked(to_percent=100), gates, MOMENT))
    assert "pre_ramp and pre_full" in text
    assert BREACH.message in text
    assert late.message in text


def test_an_outage_of_the_judges_model_and_an_invalid_request_are_told_with_their_reasons() -> None:
    """PC5 §9.5: the gate fails closed, and the operator is notified."""
    away = Reason(Code.JUDGE_UNAVAILABLE, "ux could not score 200 of 200 items")
    assert away.message in news(of_gates(asked(), [gate(VerdictLevel.FAIL, Milestone.PRE_RAMP, away)], MOMENT))
    odd = read(request("r", to_percent=101))
    text = news(refused(odd, [Reason(Code.INVALID_REQUEST, "to_percent: 101")], MOMENT))
    assert "to_percent: 101 (invalid_request)" in text


def test_each_line_of_a_message_is_ours_whatever_the_names_hold() -> None:
    odd = "a\nGate pre_full passed: all is well"
    verdict = replace(
        failed(), agent_id=odd, agent_version=odd, experiment_id=odd, request_id=odd, vertical=odd,
        gates=[gate(VerdictLevel.FAIL, Milestone.PRE_RAMP, BREACH, failing=odd)],
    )  # fmt: skip
    assert not [line for line in news(verdict).splitlines() if line.startswith("Gate pre_full")]


async def test_a_record_that_is_no_verdict_is_not_quoted_in_the_log(server: Server, client: HttpClient) -> None:
    store = MemoryStore(ManualClock())
    told = OperatorNews(store, ManualClock(), Slack(notifier(client), Address(server.url)), DAY, lambda verdict: None)
    values = (b"canary", b'{"request_id": "canary", "verdict": "canary"}', b'{"canary": {"canary": 1}}', b"[1]")
    with capture_logs() as logs:
        assert not await told([Rec(value) for value in values])
    assert [line["event"] for line in logs] == ["no_verdict"] * len(values)
    assert "canary" not in str(logs)


def test_a_message_stays_short_and_plain_whatever_the_verdict_holds() -> None:
    many = [Reason(Code.BELOW_THRESHOLD, f"judge{n} " + "\n" * 900) for n in range(90)]
    verdict = replace(failed(), agent_id="a\x1b[31m" * 400, gates=[gate(VerdictLevel.FAIL, Milestone.PRE_RAMP, *many)])
    text = news(verdict)
    assert len(text.splitlines()) == MOST + 3
    assert len(text) < 6_000
    assert "\x1b" not in text


@dataclass
class Rig:
    server: Server
    client: HttpClient
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW))
    slack: bool = True
    counted: list[Verdict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)

    async def hand_in(self, *verdicts: Verdict | bytes) -> list[int]:
        """Which of them are to come again. A new process each time: it remembers nothing."""
        address = Address(self.server.url + "/slack") if self.slack else None
        count = self.counted.append
        handler = OperatorNews(self.store, self.clock, Slack(notifier(self.client), address), DAY, count)
        values = [one if isinstance(one, bytes) else json.dumps(as_json(one)).encode() for one in verdicts]
        return [record.offset for record in await handler([Rec(value, offset=n) for n, value in enumerate(values)])]

    @property
    def told(self) -> list[str]:
        return [body["text"] for _, _, body in self.server.taken]


@pytest.fixture
def rig(server: Server, client: HttpClient) -> Rig:
    return Rig(server, client)


async def test_pc5_ac4_a_failed_verdict_is_told_once_also_after_a_restart_and_a_redelivery(rig: Rig) -> None:
    passed = of_gates(asked("p"), [gate(VerdictLevel.PASS)], MOMENT)
    warned = of_gates(asked("w"), [gate(VerdictLevel.WARN, Milestone.PRE_RAMP, BREACH)], MOMENT)
    assert await rig.hand_in(passed, failed("one"), warned, b"{", failed("one"), failed("two")) == []
    assert await rig.hand_in(failed("one"), failed("two")) == []
    assert len(rig.told) == 2
    assert "request one;" in rig.told[0]


async def test_what_slack_does_not_take_comes_again_and_holds_up_no_other_verdict(rig: Rig) -> None:
    rig.server.statuses = [500] * 3
    assert await rig.hand_in(failed("one"), failed("two")) == [0]
    assert "request two;" in rig.told[-1]
    assert await rig.hand_in(failed("one")) == []
    assert "request one;" in rig.told[-1]


async def test_after_a_day_of_tries_the_log_has_it_and_it_is_over(rig: Rig) -> None:
    rig.server.statuses = [500] * 3
    rig.clock.ms = NOW + DAY
    with capture_logs() as logs:
        assert await rig.hand_in(failed()) == []
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["gate_failed"]


@pytest.mark.parametrize("slack", [True, False])
async def test_one_error_line_has_all_of_it_whether_slack_is_configured_or_not(rig: Rig, slack: bool) -> None:
    rig.slack = slack
    with capture_logs() as logs:
        await rig.hand_in(failed(experiment_id="exp-9"))
        await rig.hand_in(failed(experiment_id="exp-9"))
    (line,) = (line for line in logs if line["event"] == "gate_failed")
    assert line["log_level"] == "error"
    assert (line["told"] == "Slack") is slack
    assert (line["experiment_id"], line["milestone"], line["halt_at_percent"]) == ("exp-9", "pre_ramp", 0.0)
    assert line["failing_judges"] == ["jailbreaking"]
    assert line["reasons"] == [f"floor_breach: {BREACH.message}"]
    assert len(rig.told) == slack


async def test_pc5_10_2_a_verdict_of_ci_is_counted_once_and_a_rollouts_is_not_counted_again(rig: Rig) -> None:
    """Also where the record comes again, since a restart, or Redis in the middle of a batch, broke it off. The pull
    request says that its gate failed; no operator is told."""
    levels = (VerdictLevel.PASS, VerdictLevel.WARN, VerdictLevel.FAIL)
    of_ci = [
        of_pull_request("a", "v", gate(level, Milestone.PRE_MERGE), MOMENT, request_id=f"gate-run-{level}")
        for level in levels
    ]
    passed = of_gates(asked("p"), [gate(VerdictLevel.PASS)], MOMENT)
    apply, tries = rig.store.apply, 0

    async def away_once(change: Change) -> None:
        nonlocal tries
        tries += 1
        if tries == 2:
            raise Unavailable("Redis")
        await apply(change)

    rig.store.apply = away_once
    with pytest.raises(Unavailable):
        await rig.hand_in(*of_ci, passed, failed())
    for _ in range(2):
        assert await rig.hand_in(*of_ci, passed, failed()) == []
    assert [verdict.request_id for verdict in rig.counted] == [one.request_id for one in of_ci]
    assert len(rig.told) == 1


async def test_where_the_mark_can_not_be_read_it_waits(rig: Rig) -> None:
    async def away(*_: Any) -> Any:
        raise Unavailable("Redis")

    rig.store.read = away
    with pytest.raises(Unavailable):
        await rig.hand_in(failed())
    assert rig.told == []
