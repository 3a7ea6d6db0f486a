"""What a step is answered by how its agent definition stands with each gate (PC5 FR-2, §5.5, §5.9; contracts §3, "The
gate before"): by the verdicts that were published about it, for each setting of `preceding_gate`. A step asks for the
standing pass of the gate before it, by the history and not by where the request says it stands (PC5 §5.5; contracts §3,
"The gate before")."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.ramp_steps import RampAnswers, answer
from evalcore.gates.history import History, Stand
from evalcore.gates.requests import InvalidRequest, RampRequest
from evalcore.gates.verdict import Moment
from evalcore.registry.registry import Registry
from schemas.judges import Milestone
from schemas.verdicts import Action, Code, Verdict, VerdictLevel
from tests.unit.agents.gates.ramp_answers_rig import (
    NOW,
    REQUEST,
    Scripted,
    codes,
    ports_of,
    registry,
    requested,
    verdict,
)

PRE_MERGE, PRE_RAMP, PRE_FULL = Milestone
Setting = Literal["off", "warn", "block"]
SETTINGS: tuple[Setting, ...] = ("off", "warn", "block")


@dataclass
class Remembering(Scripted):
    """The history is a real one, of published verdicts."""

    history: History = field(default_factory=History)

    async def stand(self, asked: RampRequest | InvalidRequest, milestone: Milestone) -> Stand:
        return self.history.stand(asked.known.get("agent_id", ""), asked.known.get("agent_version", ""), milestone)

    def published(self, minute: int, gates: dict[str, str], **changes: Any) -> None:
        """A verdict on the definition, decided in that minute, whose gates ended so; none: a refusal."""
        shown = [{"milestone": one, "verdict": word, "per_judge_scores": {}} for one, word in gates.items()]
        self.history.add(
            {
                **{name: REQUEST[name] for name in ("experiment_id", "agent_id", "agent_version", "vertical")},
                "request_id": f"before {minute}", "verdict_id": f"v{minute}", "from_percent": 0.0, "to_percent": 5.0,
                "gates": shown, "sample": None, **changes,
                "evidence": {"decided_at": f"2026-11-20T{minute // 60:02}:{minute % 60:02}:00.000+00:00"},
            }
        )  # fmt: skip


def of(setting: Setting) -> Registry:
    return replace(registry(), gates=registry().gates.model_copy(update={"preceding_gate": setting}))


def answered(scripted: Scripted, setting: Setting, at: float, to: float, **changes: Any) -> Verdict:
    request = requested(from_percent=at, to_percent=to, **changes)
    return asyncio.run(answer(request, of(setting), ports_of(scripted), NOW))


STANDINGS = {"none": [], "passed": ["pass"], "failed": ["fail"], "failed then passed": ["fail", "warn"]}
STEPS: dict[str, tuple[float, float]] = {
    "0 to 5 again": (0, 5), "0 to 0": (0, 0), "5 to 5": (5, 5), "1 to 99": (1, 99), "50 to 60": (50, 60),
    "50 to 99": (50, 99), "50 to 100": (50, 100), "100 to 100": (100, 100), "50 to 0": (50, 0), "100 to 50": (100, 50),
}  # fmt: skip
FIRES = {"0 to 5 again": [PRE_RAMP], "50 to 100": [PRE_FULL]}
FAILED = {
    ("0 to 5 again", PRE_MERGE): 0,
    ("5 to 5", PRE_RAMP): 0,
    ("5 to 5", PRE_FULL): 5,
    ("1 to 99", PRE_RAMP): 0,
    ("1 to 99", PRE_FULL): 1,
    ("50 to 60", PRE_RAMP): 0,
    ("50 to 60", PRE_FULL): 50,
    ("50 to 99", PRE_RAMP): 0,
    ("50 to 99", PRE_FULL): 50,
    ("50 to 100", PRE_RAMP): 0,
    ("100 to 100", PRE_RAMP): 0,
}
"""A standing failure of this gate alone halts this step there, unless the setting is off; every other passes."""
MISSING = {
    ("0 to 5 again", PRE_MERGE),
    ("1 to 99", PRE_RAMP),
    ("50 to 60", PRE_RAMP),
    ("50 to 99", PRE_RAMP),
    ("50 to 100", PRE_RAMP),
}
"""That this gate alone never ran warns on this step, or halts it at 0."""


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("standing", STANDINGS)
@pytest.mark.parametrize("gate", Milestone)
def test_each_step_by_each_standing_of_each_gate(gate: Milestone, standing: str, step: str, setting: Setting) -> None:
    scripted = Remembering()
    for minute, other in enumerate(one for one in Milestone if one is not gate):
        scripted.published(minute, {other: "pass"})
    for minute, word in enumerate(STANDINGS[standing], 10):
        scripted.published(minute, {gate: word})
    scripted.published(30, {}, verdict="fail", to_percent=100.0)  # a refusal says nothing of any gate
    found = answered(scripted, setting, *STEPS[step])
    fired = FIRES.get(step, [])
    at_step = set() if fired else {Code.NO_GATE_AT_STEP}

    if standing == "failed" and setting != "off" and (step, gate) in FAILED:
        assert (found.verdict, found.action) == (VerdictLevel.FAIL, Action.HALT)
        assert found.halt_at_percent == FAILED[step, gate]
        assert codes(found) == {Code.GATE_FAILED}
        for said in (gate, "abc123", "receipts-agent", "2026-11-20T00:10"):
            assert said in found.reasons[0].message
        assert (found.gates, scripted.asked) == ([], []), "no judge is asked"
    elif standing == "none" and setting == "block" and (step, gate) in MISSING:
        assert (found.verdict, found.action) == (VerdictLevel.FAIL, Action.HALT)
        assert found.halt_at_percent == 0
        assert codes(found) == {Code.GATE_MISSING}
        assert (found.gates, scripted.asked) == ([], [])
    elif standing == "none" and setting == "warn" and (step, gate) in MISSING:
        assert (found.verdict, found.action) == (VerdictLevel.WARN, Action.PROCEED)
        assert codes(found) == {Code.GATE_MISSING, *at_step}
        assert [one.milestone for one in found.gates] == fired
    else:
        assert (found.verdict, found.action, found.halt_at_percent) == (VerdictLevel.PASS, Action.PROCEED, None)
        assert codes(found) == at_step
        assert [one.milestone for one in found.gates] == fired, "a gate that failed runs again"


@pytest.mark.parametrize("setting", ["warn", "block"])
def test_a_version_above_0_with_a_failed_pre_ramp_gets_out_by_going_to_0_and_asking_again(setting: Setting) -> None:
    scripted = Remembering()
    scripted.published(1, {"pre_merge": "pass"})
    scripted.published(2, {"pre_ramp": "pass"})
    scripted.published(3, {"pre_ramp": "fail"}, experiment_id="another experiment")
    for at, to in ((5, 5), (5, 50), (50, 100), (100, 100)):
        found = answered(scripted, setting, at, to)
        assert (codes(found), found.halt_at_percent) == ({Code.GATE_FAILED}, 0)
    assert answered(scripted, setting, 5, 0).action is Action.PROCEED
    again = answered(scripted, setting, 0, 5)
    assert [(one.milestone, one.verdict) for one in again.gates] == [(PRE_RAMP, VerdictLevel.PASS)]
    scripted.published(4, {"pre_ramp": "pass"})
    assert answered(scripted, setting, 5, 50).verdict is VerdictLevel.PASS


def test_while_no_registry_is_loaded_a_standing_failure_halts_too() -> None:
    scripted = Remembering()
    scripted.published(1, {"pre_ramp": "fail"})
    found = asyncio.run(answer(requested(from_percent=1, to_percent=99), None, ports_of(scripted), NOW))
    assert (found.verdict, codes(found)) == (VerdictLevel.FAIL, {Code.GATE_FAILED})


GATES = st.dictionaries(
    st.sampled_from(["pre_merge", "pre_ramp", "pre_full"]), st.sampled_from(["pass", "warn", "fail"])
)


@given(
    st.lists(st.tuples(st.integers(0, 8), GATES, st.sampled_from(["e-1", "e-2"])), max_size=6),
    st.sampled_from([(0, 0), (0, 5), (0, 100), (1, 1), (5, 50), (1, 99), (50, 100), (100, 100)]),
    st.sampled_from(SETTINGS[1:]),
    st.sampled_from([0.2, 1.0]),
)
def test_no_version_with_a_failed_pre_ramp_walks_on_unless_that_gate_ran_now_and_did_not_fail(
    before: list[tuple[int, dict[str, str], str]], step: tuple[float, float], setting: Setting, score: float
) -> None:
    """In whatever order verdicts are read, and of whatever experiments they are."""
    scripted = Remembering(scores={"ux_quality": score})
    for number, (minute, gates, experiment) in enumerate(before):
        scripted.published(minute, gates, request_id=f"r{number}", experiment_id=experiment)
    last = max((minute for minute, gates, _ in before if "pre_ramp" in gates), default=None)
    fails = any(minute == last and gates.get("pre_ramp") == "fail" for minute, gates, _ in before)
    passed = last is not None and not fails
    found = answered(scripted, setting, *step)
    ran = {one.milestone: one.verdict for one in found.gates}
    if fails and found.action is Action.PROCEED and step != (0, 0):
        assert ran.get(PRE_RAMP) in (VerdictLevel.PASS, VerdictLevel.WARN)
    if found.action is Action.HALT:
        assert found.halt_at_percent == (step[0] if passed else 0)


HOPELESS: dict[str, Any] = {
    "eval_gates": {"pre_ramp": [], "pre_full": ["no such judge"]},
    "requested_at": "2020-01-01T00:00:00Z",
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        HOPELESS,
        {"deadline_seconds": 0},
        {"requested_at": "yesterday"},
        {"eval_gates": None},
        {"vertical": "no such"},
    ],
)
@pytest.mark.parametrize(("at", "to"), [(50, 0), (100, 50), (0.5, 0)])
def test_a_readable_step_down_passes_before_and_instead_of_every_other_rule(
    at: float, to: float, changes: dict[str, Any], loaded: bool, setting: Setting
) -> None:
    """PC5 §5.9: what takes users off a version waits for no deadline, no registry, no judge and no gate."""
    scripted = Remembering()
    for one in Milestone:
        scripted.published(1, {one: "fail"})
    request = requested(from_percent=at, to_percent=to, **changes)
    known = of(setting) if loaded else None
    answers = RampAnswers(lambda: known, ports_of(scripted))
    found = asyncio.run(answer(request, known, answers.ports, NOW))
    broken = asyncio.run(answers.broken(request, "a defect", Moment("2026-11-21T12:00:05Z", 0.1)))
    published = asyncio.run(answers.last(request, found, NOW))
    for made in (found, broken, published):
        assert (made.verdict, made.action) == (VerdictLevel.PASS, Action.PROCEED)
        assert (made.milestone, made.gates, made.halt_at_percent) == (None, [], None)
        assert [reason.code for reason in made.reasons] == [Code.NO_GATE_AT_STEP]
        assert (made.agent_version, made.from_percent, made.to_percent) == ("abc123", at, to)
    assert found.verdict_id == broken.verdict_id


@pytest.mark.parametrize(("passed", "halt"), [(True, 50), (False, 0)])
def test_every_verdict_that_halts_says_by_the_history_where(passed: bool, halt: float) -> None:
    """A gate that fails, a late request, an invalid one, a judge that does not exist, no registry, a defect of ours."""
    scripted = Remembering(scores={"ux_quality": 0.2})
    scripted.published(1, {"pre_ramp": "pass"})
    if not passed:
        scripted.published(2, {"pre_ramp": "fail"})

    def made(loaded: Registry | None = None, **changes: Any) -> Verdict:
        request = requested(**{"from_percent": 50, "to_percent": 100, **changes})
        return asyncio.run(answer(request, loaded, ports_of(scripted), NOW))

    answers = RampAnswers(lambda: None, ports_of(scripted))
    found = [
        made(of("off")),
        made(of("off"), deadline_seconds=0),
        made(of("off"), eval_gates={"pre_full": ["no such judge"]}),
        made(of("off"), to_percent=101),
        made(None),
        asyncio.run(answers.broken(requested(from_percent=50, to_percent=60), "why", Moment("now", 0.1))),
    ]
    assert [one.action for one in found] == [Action.HALT] * len(found)
    assert [one.halt_at_percent for one in found] == [halt] * len(found)


def test_of_an_invalid_request_whose_ids_can_not_be_read_nothing_is_known() -> None:
    scripted = Remembering()
    scripted.published(1, {"pre_ramp": "pass"})
    for bad in ({"agent_id": ""}, {"agent_version": 7}):
        found = answered(scripted, "warn", 50, 100, **bad)
        assert (codes(found), found.halt_at_percent) == ({Code.INVALID_REQUEST}, 0)


NEVER = Stand()
Enforced = Literal["off", "warn", "block"]


def enforced(word: Enforced) -> Registry:
    return replace(registry(), gates=registry().gates.model_copy(update={"preceding_gate": word}))


@pytest.mark.parametrize(("at", "to"), [(5, 50), (1, 99.999), (0.001, 0.002), (50, 100), (99, 100)])
def test_a_later_step_asks_for_a_standing_pass_of_pre_ramp(at: float, to: float) -> None:
    scripted = Scripted(stands=NEVER)
    found = verdict(scripted, from_percent=at, to_percent=to)
    assert scripted.before[0] is PRE_RAMP
    assert (found.verdict, found.action) == (VerdictLevel.WARN, Action.PROCEED)
    assert found.milestone is (PRE_FULL if to == 100 else None)
    assert codes(found) == {Code.GATE_MISSING} | (set() if to == 100 else {Code.NO_GATE_AT_STEP})
    assert found.reasons[0].code is Code.GATE_MISSING
    for told in ("pre_ramp", "abc123", "receipts-agent", "has no verdict"):
        assert told in found.reasons[0].message


@pytest.mark.parametrize("to", [5, 100])
def test_the_first_step_asks_for_a_standing_pass_of_pre_merge(to: float) -> None:
    """Also where it jumps to 100 %, which fires pre_ramp itself."""
    scripted = Scripted(stands=NEVER)
    found = verdict(scripted, to_percent=to)
    assert scripted.before[0] is PRE_MERGE
    assert (found.verdict, codes(found)) == (VerdictLevel.WARN, {Code.GATE_MISSING})
    assert [gate.verdict for gate in found.gates] == [VerdictLevel.PASS] * len(found.gates), "what gates say stays"
    assert len(found.gates) == (1 if to == 5 else 2)


@pytest.mark.parametrize(("at", "to"), [(0, 5), (0, 100), (5, 50), (50, 100)])
def test_with_a_standing_pass_nothing_is_missing(at: float, to: float) -> None:
    found = verdict(from_percent=at, to_percent=to)
    assert (found.verdict, Code.GATE_MISSING in codes(found)) == (VerdictLevel.PASS, False)


@pytest.mark.parametrize(("at", "to"), [(0, 0), (5, 5), (100, 100)])
def test_a_step_that_goes_nowhere_misses_no_gate(at: float, to: float) -> None:
    assert verdict(Scripted(stands=NEVER), from_percent=at, to_percent=to).verdict is VerdictLevel.PASS


@pytest.mark.parametrize(("at", "to"), [(0, 5), (0, 100), (5, 50), (50, 100)])
def test_where_the_manifest_blocks_a_version_that_never_passed_goes_to_0_and_no_judge_is_asked(
    at: float, to: float
) -> None:
    scripted = Scripted(stands=NEVER)
    found = verdict(scripted, enforced("block"), from_percent=at, to_percent=to)
    assert (found.verdict, found.action, found.halt_at_percent) == (VerdictLevel.FAIL, Action.HALT, 0.0)
    assert Code.GATE_MISSING in codes(found)
    assert (scripted.asked, found.gates) == ([], [])


def test_where_the_manifest_says_off_nothing_is_missing() -> None:
    found = verdict(Scripted(stands=NEVER), enforced("off"), from_percent=5, to_percent=50)
    assert (found.verdict, codes(found)) == (VerdictLevel.PASS, {Code.NO_GATE_AT_STEP})


def test_a_missing_gate_that_only_warns_is_no_reason_of_a_failure() -> None:
    """It decided nothing; what failed is reported alone, as where nothing is missing."""
    found = verdict(Scripted(stands=NEVER, scores={"ux_quality": 0.1}), from_percent=50, to_percent=100)
    assert (found.verdict, found.halt_at_percent) == (VerdictLevel.FAIL, 0.0), "pre_ramp never passed"
    assert codes(found) == {Code.FLOOR_BREACH}
    down = verdict(Scripted(stands=NEVER, down=True))
    assert (down.verdict, codes(down)) == (VerdictLevel.FAIL, {Code.JUDGE_UNAVAILABLE})


def test_shipped_is_a_warning_also_while_no_registry_is_loaded() -> None:
    assert registry().gates.preceding_gate == "warn"
    found = verdict(Scripted(stands=NEVER), from_percent=5, to_percent=50)
    assert found.verdict is VerdictLevel.WARN
