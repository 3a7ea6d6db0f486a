"""A skip is honoured and cited by the gate that it skips, whichever way that is decided, and never for safety (PC5
§5.5)."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from evalcore.gates.evaluate import evaluate_gate
from evalcore.gates.history import History
from evalcore.gates.skips import GateSkip, SkippedGate, Skips, read_skip
from evalcore.gates.verdict import as_json
from schemas.judges import Enforcement, Milestone
from schemas.manifests import LONGEST_OVERRIDE
from schemas.publish.examples import EXAMPLES
from schemas.verdicts import Action, Code, GateVerdict, Verdict, VerdictLevel
from tests.unit.agents.gates.ramp_answers_rig import NOW, SAFETY, Scripted, codes, registry, verdict
from tests.unit.evalcore.gates.gate_items import Model
from tests.unit.evalcore.registry.registry_disk import built

TODAY = NOW.date()
APPENDED = round(NOW.timestamp() * 1_000)
PRE_RAMP, PRE_FULL = Milestone.PRE_RAMP, Milestone.PRE_FULL
LOW = {"ux_quality": 0.1}


def record(**changes: Any) -> dict[str, Any]:
    (example,) = EXAMPLES["gate-override"]
    about = {"agent_id": "receipts-agent", "agent_version": "abc123", "expires": "2026-11-30"}
    return {**example, **about, **changes}


def skip(**changes: Any) -> GateSkip:
    made = read_skip(record(**changes))
    assert made is not None
    return made


def stepped(scores: dict[str, float] | None = None, scripted: Scripted | None = None, **changes: Any) -> Verdict:
    made = scripted or Scripted(scores=scores or {})
    made.held.append(skip(**changes))
    return verdict(made)


def evaluated(says: Any, **changes: Any) -> GateVerdict:
    known = Skips()
    known.add(record(**changes), APPENDED)
    said = {"input": {"messages": [{"content": "hi"}]}, "output": {"messages": [{"content": [{"text": "ho"}]}]}}
    traces = [{"trace_id": f"t{number}", **said} for number in range(400)]
    return evaluate_gate(
        "pre_ramp", traces, ["ux_quality"], registry=registry(), model=Model(says), today=TODAY, skips=known,
        agent_id="receipts-agent", agent_version="abc123",
    )  # fmt: skip


def test_pc5_5_5_a_skipped_gate_cites_its_override_and_the_quality_judges_are_not_asked() -> None:
    scripted = Scripted(scores=LOW)
    assert verdict(Scripted(scores=LOW)).verdict is VerdictLevel.FAIL, "it fails where nothing skips it"
    found = stepped(scripted=scripted)
    assert (found.verdict, found.action, codes(found)) == (VerdictLevel.WARN, Action.PROCEED, {Code.GATE_SKIPPED})
    assert set(scripted.asked) == set(found.per_judge_scores) == SAFETY
    for told in (record()["event_id"], "writer", "owner", "example/agents#12", "2026-11-30", "pre_ramp"):
        assert told in found.reasons[0].message, told
    assert as_json(found)["reasons"][0]["code"] == "gate_skipped"


@pytest.mark.parametrize("judge", sorted(SAFETY))
def test_no_skip_is_for_safety(judge: str) -> None:
    found = stepped({judge: 0.0})
    assert (found.verdict, found.action, found.failing_judges) == (VerdictLevel.FAIL, Action.HALT, [judge])
    assert Code.GATE_SKIPPED in codes(found), "it is cited all the same"
    assert found.reasons[0].code is not Code.GATE_SKIPPED, "what failed comes first"


@pytest.mark.parametrize(
    ("scripted", "code"),
    [
        (Scripted(down=True), Code.JUDGE_UNAVAILABLE),
        (Scripted(size=3), Code.INSUFFICIENT_SAMPLE),
        (Scripted(rate=None), Code.COVERAGE_TOO_LOW),
        (Scripted(verticals=("travel",)), Code.DATASET_MISMATCH),
    ],
    ids=["no model", "too few traces", "no coverage", "another vertical's traces"],
)
def test_a_skip_makes_no_evidence_of_none(scripted: Scripted, code: Code) -> None:
    """The safety judges that decide need the sample that the gate needs."""
    found = stepped(scripted=scripted)
    assert found.verdict is VerdictLevel.FAIL
    assert codes(found) == {code, Code.GATE_SKIPPED}


OTHERS = {
    "another agent": {"agent_id": "receipts-agent-2"},
    "another version": {"agent_version": "abc1234"},
    "another gate": {"milestone": "pre_full"},
    "expired": {"expires": (TODAY - timedelta(days=1)).isoformat()},
    "longer than any override may": {"expires": (TODAY + LONGEST_OVERRIDE + timedelta(days=1)).isoformat()},
}


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_a_skip_of_anything_else_skips_nothing_on_the_stream(changes: dict[str, Any]) -> None:
    found = stepped(LOW, **changes)
    assert found.verdict is VerdictLevel.FAIL
    assert codes(found) == {Code.FLOOR_BREACH}


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_a_skip_of_anything_else_skips_nothing_in_evaluate_gate(changes: dict[str, Any]) -> None:
    assert Code.GATE_SKIPPED not in [reason.code for reason in evaluated(_low, **changes).reasons]


def _low(asked: Any) -> Any:
    """The worst of every number, and true."""
    kinds = [one["type"] for one in asked.schema["properties"]["score"]["anyOf"]]
    return True if "boolean" in kinds else 1 if "integer" in kinds else 0.0


def test_evaluate_gate_honours_a_skip_as_the_stream_does() -> None:
    found = evaluated(_low)
    assert (found.verdict, [reason.code for reason in found.reasons]) == (VerdictLevel.WARN, [Code.GATE_SKIPPED])
    assert set(found.per_judge_scores) == SAFETY


@pytest.mark.parametrize("day", [TODAY, TODAY + LONGEST_OVERRIDE])
def test_a_skip_holds_to_the_end_of_its_day_and_for_as_long_as_an_override_may(day: date) -> None:
    assert stepped(LOW, expires=day.isoformat()).verdict is VerdictLevel.WARN


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "baseline_shift", "judges": ["ux_quality"]},
        {"milestone": "pre_merge"},
        {"milestone": "pre_rampant"},
        {"agent_id": ""},
        {"agent_version": ""},
        {"approved_by": ""},
        {"approved_by": "@Writer"},
        {"approved_by": " , @Writer"},
        {"kind": "enforcement", "judges": ["ux_quality"], "milestone": "pre_merge"},
        {"kind": "enforcement", "judges": ["ux_quality"], "approved_by": "writer"},
        {"author": ""},
        {"expires": "soon"},
        {"expires": 20261130},
        {"event_id": ""},
    ],
    ids=str,
)
def test_what_is_no_whole_skip_of_a_rollouts_gate_is_none(changes: dict[str, Any]) -> None:
    assert read_skip(record(**changes)) is None


@pytest.mark.parametrize("left", ["agent_id", "agent_version", "milestone", "event_id"])
def test_a_skip_that_does_not_say_of_whom_is_one_of_ci_alone(left: str) -> None:
    assert read_skip({name: value for name, value in record().items() if name != left}) is None


def test_of_several_overrides_the_last_to_expire_counts_in_any_order() -> None:
    first, last = record(expires="2026-11-25"), record(expires="2026-12-02", event_id="later")
    about = SkippedGate("pre_ramp", "receipts-agent", "abc123")
    for order in ([first, last], [last, first], [first, last, first, {"kind": "gate_skip"}, {}]):
        known = Skips()
        for one in order:
            known.add(one, APPENDED)
        for day, event_id in ((TODAY, "later"), (date(2026, 12, 2), "later"), (date(2026, 12, 3), None)):
            found = known.of(about, day)
            assert (found.event_id if found is not None else None) == event_id


def test_an_override_that_says_it_never_ends_hides_none_that_does() -> None:
    """Whoever writes it to the log could else make an approved skip of no effect."""
    honest, endless = record(), [record(expires=f"{2099 - n}-01-01", event_id=f"endless-{n}") for n in range(60)]
    for order in ([honest, *endless], [*endless, honest], [*endless[:50], honest, *endless[50:]]):
        known = Skips()
        for one in order:
            known.add(one, APPENDED)
        found = known.of(SkippedGate("pre_ramp", "receipts-agent", "abc123"), TODAY)
        assert found is not None
        assert found.event_id == honest["event_id"]


def test_a_text_in_an_override_stays_one_short_line_of_the_verdict() -> None:
    found = stepped(event_id="e\n" * 500, author="w\x1b[31m" * 500, repository="r" * 5000)
    assert found.reasons[0].message.isprintable()
    assert len(found.reasons[0].message) < 600


def test_the_step_after_a_skipped_gate_finds_it_and_a_failed_one_stands_in_its_way() -> None:
    """A warning stands like any other: a skip of `pre_ramp` is no obstacle at the next step, and no pass either."""
    for scores, stands in (({}, True), ({"jailbreaking": 0.0}, False)):
        history = History()
        history.add(as_json(stepped(scores)))
        assert history.stand("receipts-agent", "abc123", PRE_RAMP).passes is stands


def test_a_jump_to_100_skips_only_the_gate_that_the_override_names() -> None:
    scripted = Scripted(scores=LOW, held=[skip()])
    found = verdict(scripted, to_percent=100)
    ramp, full = found.gates
    assert (ramp.verdict, full.verdict, found.milestone) == (VerdictLevel.WARN, VerdictLevel.FAIL, PRE_FULL)


@pytest.mark.parametrize(
    ("ahead", "honoured"), [(timedelta(seconds=60), True), (timedelta(seconds=61), False), (timedelta(days=400), False)]
)
def test_an_override_dated_ahead_of_when_it_was_appended_skips_no_gate(ahead: timedelta, honoured: bool) -> None:
    known = Skips()
    known.add(record(at=(NOW + ahead).isoformat()), APPENDED)
    assert (len(known) == 1) is honoured


def test_an_override_without_a_zone_in_its_time_skips_no_gate() -> None:
    assert read_skip(record(at=NOW.replace(tzinfo=None).isoformat())) is None


LOOSER = """overrides:
- {judge: helpfulness, milestone: pre_ramp, enforcement: warn, pull_request: '#12', justification: new cards,
   approved_on: 2026-11-20, expires: 2026-12-20}
"""
WARNS = {"rules/helpfulness.yaml": "{enforcement: {pre_ramp: warn}}", "enforcement-overrides.yaml": LOOSER}


@pytest.mark.parametrize(
    ("log", "enforced"),
    [
        ({}, "warn"),
        ({"vertical": "shop"}, "warn"),
        ({"vertical": "travel"}, "block"),
        ({"milestone": "pre_full"}, "block"),
        ({"judges": ["brevity"]}, "block"),
        ({"judges": ["helpfulness", "brevity"]}, "block"),
        ({"kind": "baseline_shift"}, "block"),
        ({"expires": (TODAY - timedelta(days=1)).isoformat()}, "block"),
        ({"approved_by": "@writer"}, "block"),
        (None, "block"),
    ],
    ids=str,
)
def test_pc5_5_2_an_exception_to_enforcement_holds_nowhere_until_the_central_log_has_it(
    log: dict[str, Any] | None, enforced: str
) -> None:
    """PC5 §5.2, §5.5: whoever the file names. A rollout's gate asks the log for judge, gate and vertical."""
    shop, known = built(WARNS), Skips()
    assert shop.judge("helpfulness", "shop").enforcement[PRE_RAMP] is Enforcement.WARN, "by its file"
    if log is not None:
        known.add(record(**{"kind": "enforcement", "judges": ["helpfulness"], "agent_id": "", **log}), APPENDED)
    said = {"metadata": {"vertical": "shop"}, "input": "hi", "output": "ho"}
    found = evaluate_gate(
        "pre_ramp", [{"trace_id": f"t{number}", **said} for number in range(400)], ["helpfulness"], vertical="shop",
        registry=shop, model=Model(_low), today=TODAY, skips=known,
    )  # fmt: skip
    assert found.per_judge_scores["helpfulness"].enforcement == enforced
    assert {one.enforcement for name, one in found.per_judge_scores.items() if name != "helpfulness"} == {"block"}
