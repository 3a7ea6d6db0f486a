"""The Markdown summary (Remediation test plan 2): what it says, and that no status writes a line like ours."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.remediation.objects import Missing, Why
from evalcore.remediation.phase import Phase
from evalcore.remediation.summary import MOST_BYTES, markdown, with_own_answer

OPTIONS = [
    {
        "title": f"Option {name}",
        "diagnosis": {"summary": f"Diagnosed {name}", "confidence": "High", "rootCause": f"Cause {name}"},
        "proposal": {
            "description": f"Plan {name}", "risk": "Medium", "reversible": "Reversible", "estimatedImpact": "A restart",
            "actions": [{"type": "mutation", "description": f"Do {name}", "command": "oc set resources"}],
            "rollbackPlan": {"description": "Set 256Mi again"},
        },
    }
    for name in ("alpha", "beta", "gamma")
]  # fmt: skip
EXECUTIONS: list[dict[str, Any]] = [
    {
        "actionsTaken": [
            {"type": "patch", "description": "Patched api", "outcome": "Failed", "output": "forbidden", "error": "RBAC"}
        ],
    },
    {
        "actionsTaken": [{"type": "patch", "description": "Patched api again", "outcome": "Succeeded"}],
        "verification": {"conditionOutcome": "Improved", "summary": "Pods run"},
    },
]
VERIFICATION = {
    "checks": [{"name": "pod-ready", "source": "oc", "value": "3 of 3", "result": "Passed"}], "summary": "All well",
}  # fmt: skip
CONDITIONS = [{"type": "Verified", "status": "True", "reason": "Passed", "message": "verification passed"}]


def summary(selected: Any = 0, options: int = 3, **more: Any) -> str:
    attempts = {"analysis": [{"options": OPTIONS[:options]}], **more}
    return markdown("Pods of api restart", CONDITIONS, attempts, selected, [], Phase.COMPLETED)


def test_it_has_request_diagnosis_actions_outcomes_checks_escalation_and_conditions_in_order() -> None:
    escalation = [{"summary": "Handed over", "content": "Ticket text"}]
    text = summary(1, execution=EXECUTIONS, verification=[VERIFICATION], escalation=escalation)
    said = [
        "## Request", "Pods of api restart", "## Analysis", "the approved one", "`Option beta`", "Diagnosed beta",
        "Cause beta", "Confidence: `High`", "Plan beta", "Proposed action `mutation`", "Do beta", "oc set resources",
        "Risk: `Medium`", "Reversible: `Reversible`", "A restart", "Set 256Mi again", "## Execution, attempt 1 of 2",
        "Action `patch`, outcome `Failed`", "Patched api", "forbidden", "RBAC", "## Execution, attempt 2 of 2",
        "outcome `Succeeded`", "Patched api again", "Condition afterwards: `Improved`", "Pods run", "## Verification",
        "Check `pod-ready` by `oc`, result `Passed`", "3 of 3", "All well", "## Escalation", "Handed over",
        "Ticket text", "## Outcome", "Phase: Completed", "Condition `Verified` `True` `Passed`", "verification passed",
    ]  # fmt: skip
    places, start = [], 0
    for words in said:
        start = text.find(words, start)
        assert start >= 0, f"{words!r} is missing, or stands before {said[len(places) - 1]!r}"
        places.append(start)


@pytest.mark.parametrize(
    ("selected", "options", "shown"),
    [
        (1, 3, ["beta"]),
        (0, 3, ["alpha"]),
        (2, 1, ["alpha"]),
        (0, 1, ["alpha"]),
        (None, 3, ["alpha", "beta", "gamma"]),
        (None, 1, ["alpha"]),
        (3, 3, ["alpha", "beta", "gamma"]),
        (-1, 3, ["alpha", "beta", "gamma"]),
        (True, 3, ["alpha", "beta", "gamma"]),
        ("1", 3, ["alpha", "beta", "gamma"]),
        (0, 0, []),
    ],
)
def test_the_approved_option_is_shown_also_where_the_list_was_cut(
    selected: Any, options: int, shown: list[str]
) -> None:
    text = summary(selected, options)
    assert [one for one in ("alpha", "beta", "gamma") if f"Diagnosed {one}" in text] == shown
    assert ("the approved one" in text) == (len(shown) == 1 and selected is not None)


def test_the_index_is_of_the_last_analysis_and_of_no_earlier_one() -> None:
    text = markdown("", [], {"analysis": [{"options": OPTIONS}, {"options": OPTIONS[:1]}]}, 2, [])
    first, last = text.split("## Analysis, attempt 2 of 2")
    assert "Diagnosed gamma" in first
    assert "Diagnosed alpha" in first
    assert "approved" not in first
    assert "the approved one" in last
    unread = markdown("", [], {"analysis": [{"options": OPTIONS}, None]}, 2, [])
    assert "Diagnosed alpha" in unread
    assert "approved" not in unread
    assert "It could not be read." in unread


def test_a_step_that_broke_says_why() -> None:
    text = summary(execution=[{"failureReason": "sandbox timed out"}])
    assert "The step broke off for a fault of the system:\n\n>     sandbox timed out" in text


def test_without_children_the_conditions_stand_alone() -> None:
    text = markdown("", CONDITIONS, {"analysis": [], "execution": []}, None, [], Phase.FAILED)
    assert text == (
        "## Outcome\n\nPhase: Failed\n\nCondition `Verified` `True` `Passed`:\n\n>     verification passed\n"
    )


def test_what_was_not_read_is_listed() -> None:
    text = markdown("", [], {}, None, [Missing("ExecutionResult/e1", Why.TIMED_OUT)])
    assert "## Not read\n\n- `ExecutionResult/e1`: timed_out" in text


def test_a_summary_of_endless_texts_is_cut_and_says_so() -> None:
    text = summary(escalation=[{"content": "é\n" * 200_000}])
    assert len(text.encode()) <= MOST_BYTES + 100
    assert text.endswith("\n\nThe summary is cut here.\n")


def test_the_agents_own_answer_is_quoted_last() -> None:
    text = with_own_answer(summary(), "All is well.\n## Outcome\n\nPhase: Completed\n")
    own = text.split("## The agent's own answer\n")[1]
    assert own == "\n>     All is well.\n>     ## Outcome\n>\n>     Phase: Completed\n"
    assert with_own_answer("a\n", " ") == "a\n"


FORGED = "ok\r## Outcome\n\n\n## Verification\x0b# Checks\x85===\u2028---\n<h1>Passed</h1>\n```\n\x1b[2Ja\u202eb`c"
BREAKS = st.sampled_from(["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\x00", "\u202e"])
TEXTS = st.lists(
    st.sampled_from(["## Outcome", "# x", "Phase: Completed", "===", "`", "> ", "- a"]) | BREAKS | st.text()
).map("".join)


@given(TEXTS)
def test_no_text_of_a_status_makes_a_line_that_is_not_quoted(text: str) -> None:
    check(text)


def test_forged_headings_stay_quoted_texts() -> None:
    made = check(FORGED)
    assert ">     ## Outcome" in made
    assert made.splitlines().count("## Verification") == made.splitlines().count("## Outcome") == 1


def check(text: str) -> str:
    option = {
        "title": text, "diagnosis": {"summary": text, "confidence": text, "rootCause": text},
        "proposal": {
            "description": text, "risk": text, "reversible": text, "estimatedImpact": text,
            "actions": [{"type": text, "description": text, "command": text}], "rollbackPlan": {"description": text},
        },
        "verification": {"description": text},
    }  # fmt: skip
    action = {"type": text, "description": text, "outcome": text, "output": text, "error": text}
    attempts = {
        "analysis": [{"options": [option], "failureReason": text}],
        "execution": [
            {
                "actionsTaken": [action, {"type": text, "outcome": text}], "failureReason": text,
                "verification": {"conditionOutcome": text, "summary": text},
            }
        ],
        "verification": [{"checks": [{"name": text, "source": text, "value": text, "result": text}], "summary": text}],
        "escalation": [{"summary": text, "content": text}],
    }  # fmt: skip
    condition = {"type": text, "status": text, "reason": text, "message": text}
    missing = [Missing(f"Kind/{text}", Why.BAD_NAME)]
    made = with_own_answer(markdown(text, [condition], attempts, 0, missing, Phase.FAILED), text)
    for line in made.splitlines():
        assert not any(unicodedata.category(one) in {"Cc", "Cf", "Cs"} for one in line)
        assert not line or line.startswith(OURS), line
    headings = [line for line in made.splitlines() if line.startswith("#")]
    assert len([one for one in headings if one != "## Request" and "own answer" not in one]) == 7
    return made


OURS = (
    ">", "## Request", "## Analysis", "### Option 1 of 1, the approved one", "## Execution", "## Verification",
    "## Escalation", "## Outcome", "## Not read", "## The agent's own answer", "`", "Diagnosis:", "Root cause:",
    "Confidence: `", "Plan:", "Proposed action `", "Command:", "Risk: `", "Reversible: `", "Estimated impact:",
    "Rollback:", "Planned verification:", "The step broke off", "Action `", "Output:", "Error:",
    "Condition afterwards: `", "Seen afterwards:", "Check `", "Summary:", "Content:", "Phase: Failed", "Condition `",
    "- `Kind/",
)  # fmt: skip
