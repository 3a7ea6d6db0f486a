"""What we write about a workflow bears our seal; without it no field of it counts (the agent writes to the topic)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.remediation.sealing import ADDED, ANSWERS, FIELDS, SEAL, TRACES, Form, Seals, TraceForms

KEY, OLD = "k" * 16, "o" * 16
SEALS = Seals.of(TRACES, KEY, None)
FORMS = TraceForms(SEALS, {"remediation": frozenset({"shop"})})
BARE: dict[str, Any] = {
    "trace_id": "0190a5d8-1111-7000-8000-000000000001",
    "response_id": "r1",
    "ended_at": 1_790_000_000.5,
    "output": "fixed it",
    "metadata": {"vertical": "remediation", "agent_version": "v1"},
    "proposal": {"namespace": "shop", "name": "oom"},
}
COMPLETED = SEALS.sealed(
    BARE
    | {
        "output": "# Summary",
        "proposal_results": {"analysis": [{"é": 1.25}]},
        "proposal_phase": "Completed",
        "proposal_steps": {"analysis": "ran"},
        "proposal_missing": [],
    }
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_trace_that_names_a_workflow_waits_where_its_vertical_completes_them() -> None:
    assert FORMS.open(BARE) == (Form.BARE, BARE, False)


@pytest.mark.parametrize("vertical", ["receipts", None, 7])
def test_in_another_vertical_it_is_judged_as_it_came(vertical: object) -> None:
    trace = BARE | {"metadata": {"vertical": vertical}}

    assert FORMS.open(trace) == (Form.PLAIN, trace, False)
    assert FORMS.open(trace | {"metadata": None}).form is Form.PLAIN


@pytest.mark.parametrize("named", ["oom", [], {}, {"namespace": 3}])
def test_what_names_no_workflow_that_can_be_asked_for_waits_too(named: object) -> None:
    assert FORMS.open(BARE | {"proposal": named}).form is Form.BARE


def test_without_a_workflow_a_trace_is_plain() -> None:
    assert FORMS.open(BARE | {"proposal": None}).form is Form.PLAIN


def test_what_we_sealed_is_completed_also_after_its_way_through_the_topic() -> None:
    came = orjson.loads(orjson.dumps(COMPLETED))

    assert FORMS.open(came) == (Form.COMPLETED, COMPLETED, False)
    assert TraceForms(SEALS).open(came).form is Form.COMPLETED


@pytest.mark.parametrize("field", sorted({*COMPLETED} - {SEAL}))
def test_an_edit_of_any_field_breaks_the_seal(field: str) -> None:
    for edited in (COMPLETED | {field: "other"}, {name: COMPLETED[name] for name in COMPLETED if name != field}):
        opened = FORMS.open(edited)
        assert opened.form is not Form.COMPLETED
        assert opened.forged
        assert ADDED.isdisjoint(opened.record)


def test_a_version_that_takes_another_s_evidence_for_its_own_breaks_the_seal() -> None:
    assert FORMS.open(COMPLETED | {"metadata": {**BARE["metadata"], "agent_version": "v2"}}).form is Form.BARE


def test_another_trace_s_seal_does_not_hold() -> None:
    forged = BARE | {"trace_id": "other"} | {name: COMPLETED[name] for name in (*FIELDS, SEAL)}

    assert FORMS.open(forged) == (Form.BARE, BARE | {"trace_id": "other"}, True)


@pytest.mark.parametrize("seal", [None, "", "0" * 64, "é", 7, ["x"]])
def test_forged_fields_are_dropped_from_plain_and_bare_traces(seal: object) -> None:
    plain = {name: value for name, value in BARE.items() if name != "proposal"}
    for trace, form in ((BARE, Form.BARE), (plain, Form.PLAIN)):
        assert FORMS.open(trace | {"proposal_phase": "Completed", SEAL: seal}) == (form, trace, True)


def test_a_replaced_key_is_taken_while_it_is_named() -> None:
    assert Seals.of(TRACES, OLD, KEY).hold(COMPLETED)
    assert Seals.of(TRACES, OLD, KEY).sealed(BARE) == Seals.of(TRACES, OLD).sealed(BARE)
    assert not Seals.of(TRACES, OLD).hold(COMPLETED)
    assert TraceForms(Seals.of(TRACES, OLD), FORMS.namespaces).open(COMPLETED).form is Form.BARE


def test_without_a_key_nothing_holds_and_nothing_is_sealed() -> None:
    none = Seals.of(TRACES, None, "")

    assert not none.hold(COMPLETED)
    assert not none.hold(BARE | {SEAL: ""})
    with pytest.raises(LookupError, match="RAMPGATE_SEAL_KEY"):
        none.sealed(BARE)


def test_the_seal_of_an_answer_holds_on_no_trace() -> None:
    assert not SEALS.hold(Seals.of(ANSWERS, KEY).sealed(BARE))


def test_what_is_nested_too_deep_is_not_sealed() -> None:
    deep: object = []
    for _ in range(2_000):
        deep = [deep]

    assert FORMS.open(COMPLETED | {"input": deep}).forged


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_a_seal_holds_after_json_whatever_the_record_and_the_order_of_its_keys(record: dict[str, object]) -> None:
    came = orjson.loads(orjson.dumps(dict(reversed(SEALS.sealed(record).items()))))

    assert SEALS.hold(came)
    assert not SEALS.hold(came | {"one more": 1})
