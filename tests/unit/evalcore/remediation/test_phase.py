"""The phase of a workflow: a table of all combinations of conditions and spec (Remediation test plan 1)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.remediation.phase import Phase, decided, derive_phase

ANY = object()
TERMINAL_FLAG = ("-", "True", "False", "Unknown")
STEP = ("-", "True", "Unknown", "False", "Retrying")
SPECS: dict[str, Any] = {
    "none": None,
    "analysis": {"request": "r", "analysis": {}},
    "execution": {"request": "r", "analysis": {}, "execution": {}},
    "verification": {"request": "r", "analysis": {}, "execution": {}, "verification": {"agent": "fast"}},
    "verification alone": {"request": "r", "analysis": {}, "verification": {}},
}
LAST = {"none": None, "analysis": 0, "execution": 1, "verification": 2, "verification alone": 2}
"""The step by which a spec's workflow is completed: analysis, execution, verification."""

# Denied, Escalated, EmergencyStopped, whether a step failed for good, the last step's status, the phase.
TABLE: list[tuple[Any, Any, Any, Any, Any, Phase]] = [
    ("True", ANY, ANY, ANY, ANY, Phase.DENIED),
    ("other", "True", ANY, ANY, ANY, Phase.ESCALATED),
    ("other", "Unknown", ANY, ANY, ANY, Phase.IN_PROGRESS),
    ("other", "False", ANY, ANY, ANY, Phase.FAILED),
    ("other", "-", "True", ANY, ANY, Phase.FAILED),
    ("other", "-", "other", True, ANY, Phase.FAILED),
    ("other", "-", "other", False, "True", Phase.COMPLETED),
    ("other", "-", "other", False, "-", Phase.IN_PROGRESS),
    ("other", "-", "other", False, "Unknown", Phase.IN_PROGRESS),
    ("other", "-", "other", False, "Retrying", Phase.IN_PROGRESS),
    ("other", "-", "other", False, "no spec", Phase.IN_PROGRESS),
]


def condition(kind: str, status: str) -> list[dict[str, str]]:
    if status == "-":
        return []
    if status == "Retrying":
        return [{"type": kind, "status": "False", "reason": "RetryingExecution"}]
    return [{"type": kind, "status": status, "reason": "Complete"}]


def test_each_combination_of_conditions_and_spec_has_the_phase_of_its_one_row() -> None:
    rows_used = set()
    combinations = product(TERMINAL_FLAG, TERMINAL_FLAG, TERMINAL_FLAG, STEP, STEP, STEP, SPECS)
    for denied, escalated, stopped, analyzed, executed, verified, spec in combinations:
        steps = (analyzed, executed, verified)
        last = LAST[spec]
        at = (
            "True" if denied == "True" else "other", escalated, "True" if stopped == "True" else "other",
            "False" in steps, "no spec" if last is None else steps[last],
        )  # fmt: skip
        rows = [
            row for row in TABLE if all(wanted is ANY or wanted == is_ for wanted, is_ in zip(row[:5], at, strict=True))
        ]
        assert len(rows) == 1, (at, rows)
        rows_used.add(TABLE.index(rows[0]))
        conditions = [
            *condition("Verified", verified), *condition("Executed", executed), *condition("Analyzed", analyzed),
            *condition("EmergencyStopped", stopped), *condition("Escalated", escalated), *condition("Denied", denied),
        ]  # fmt: skip
        assert derive_phase(conditions, SPECS[spec]) is rows[0][5], (conditions, spec)
    assert rows_used == set(range(len(TABLE)))


def test_all_phases_but_one_are_terminal() -> None:
    assert [phase for phase in Phase if not phase.terminal] == [Phase.IN_PROGRESS]


def test_exhausted_retries_that_wait_for_their_escalation_are_still_in_progress() -> None:
    exhausted = {"type": "Verified", "status": "False", "reason": "RetriesExhausted"}
    assert derive_phase([exhausted], SPECS["verification"]) is Phase.FAILED
    waiting = [exhausted, {"type": "Escalated", "status": "Unknown", "reason": "InProgress"}]
    assert derive_phase(waiting, SPECS["verification"]) is Phase.IN_PROGRESS


def test_a_condition_listed_twice_counts_by_its_first_entry() -> None:
    twice = [*condition("Analyzed", "True"), *condition("Analyzed", "False")]
    assert derive_phase(twice, SPECS["analysis"]) is Phase.COMPLETED


@pytest.mark.parametrize("status", [True, "true", "TRUE", 1, None, ["True"]])
def test_only_the_word_True_is_true(status: Any) -> None:
    assert derive_phase([{"type": "Analyzed", "status": status}], SPECS["analysis"]) is Phase.IN_PROGRESS


def test_the_deciding_condition_is_the_one_that_made_it_terminal() -> None:
    conditions = [*condition("Analyzed", "True"), *condition("Executed", "False"), *condition("Verified", "False")]
    assert decided(conditions, SPECS["verification"]) == (Phase.FAILED, conditions[1])
    assert decided(conditions[:1], SPECS["verification"]) == (Phase.IN_PROGRESS, {})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["True", "False", "Denied"]),
    lambda of: st.lists(of) | st.dictionaries(st.text() | st.sampled_from(["type", "status", "reason"]), of),
)


@given(ANYTHING, ANYTHING)
def test_whatever_conditions_and_spec_hold_there_is_a_phase(conditions: Any, spec: Any) -> None:
    assert decided(conditions, spec)[0] in Phase
