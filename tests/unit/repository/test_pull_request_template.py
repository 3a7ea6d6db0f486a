"""The pull-request template holds what a review needs, in a form a program can read (PC5 §5.5, FR-12, NFR-5; PF-9 §5.6,
Decision 18c)."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.root import ROOT

TEXT = (ROOT / ".github" / "pull_request_template.md").read_text()
BLOCK = re.compile(r"^```([a-z-]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OVERRIDE = {"justification": None, "expires": None}
"""And not who approved: its author could write anybody's name."""


def blocks(text: str) -> dict[str, Any]:
    """Fenced blocks by name, each a mapping."""
    return {name: yaml.safe_load(content) for name, content in BLOCK.findall(text)}


def test_the_headings_stand() -> None:
    assert re.findall(r"^## (.+)$", TEXT, re.MULTILINE) == [
        "What changes, and why",
        "Judges and thresholds",
        "Backward compatibility",
        "Gate overrides",
    ]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("eval-skip-justification", {"milestones": [], **OVERRIDE}),
        ("accept-baseline-shift", {"judges": [], **OVERRIDE}),
        (
            "backward-compatibility",
            {"categories": [], "judges": [], "consumers": [], "effect": None, "action": None},
        ),
    ],
)
def test_a_block_has_its_fields_and_nothing_in_them(name: str, fields: dict[str, Any]) -> None:
    assert blocks(TEXT)[name] == fields


def test_there_are_no_other_blocks() -> None:
    assert set(blocks(TEXT)) == {"eval-skip-justification", "accept-baseline-shift", "backward-compatibility"}


def test_a_filled_in_override_says_what_why_and_until_when() -> None:
    filled = TEXT.replace(
        "milestones: []\njustification:\nexpires:",
        "milestones: [pre_ramp]\njustification: |\n  Two\n  lines.\nexpires: 2026-12-23",
    )
    found = blocks(filled)["eval-skip-justification"]
    assert found["milestones"] == ["pre_ramp"]
    assert found["justification"] == "Two\nlines.\n"
    assert found["expires"].isoformat() == "2026-12-23"


@pytest.mark.parametrize("label", ["eval-skip-pre-ramp", "eval-skip-pre-full", "eval-enforcement-override"])
def test_the_labels_of_pc5_are_named(label: str) -> None:
    assert f"`{label}`" in TEXT


def test_the_reviewer_ticks_that_they_agree() -> None:
    assert "- [ ] The reviewer agrees to every override above" in TEXT
    assert not re.search(r"- \[x\]", TEXT), "nothing is ticked beforehand"


def test_pf9_fr5_the_archetypes_whose_judges_change_are_named() -> None:
    """PF-9 FR-5: reviewers see which sub-agents' judges `applies_to` and `filter` select from now on."""
    assert re.search(r"^Archetypes [^\n]*`applies_to`[^\n]*`filter`[^\n]*:$", TEXT, re.MULTILINE)


def test_a_rubric_that_may_change_verdicts_is_declared() -> None:
    """PC5 FR-12: a new baseline, or an explicit acknowledgment."""
    assert "baselines are made again" in TEXT
    assert "prior baselines no longer apply" in TEXT
