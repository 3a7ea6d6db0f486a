"""Who agrees to an override, and for how long: what the host of the repository says, never what its author wrote (PC5
§5.5)."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from evalcore.gates.overrides import (
    AGREED,
    LOOSER,
    SKIP,
    Held,
    Plan,
    PullRequest,
    accepted,
    excepted,
    plan,
    read_block,
    unapproved,
)
from schemas.judges import Milestone
from schemas.manifests import LONGEST_OVERRIDE, Override
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.rampgate.ci_gate.github_api import APPROVED, PULL

TODAY = date(2026, 11, 21)
TICK = f"- [x] {AGREED}"
REGISTRY = built()


def said(justification: str = "known", expires: object = "2026-12-23", **more: str) -> str:
    fields = "".join(f"{name}: {value}\n" for name, value in more.items())
    fields += f"justification: {justification}\nexpires: {expires}\n"
    return f"```eval-skip-justification\nmilestones: [pre_ramp]\n{fields}```\n\n{TICK}\n"


def planned(description: str, pull: PullRequest) -> Plan:
    asked = replace(pull, description=description, labels=("eval-skip-pre-ramp",))
    return plan(["prompts/a.xml"], today=TODAY, pull=asked)


def refusals(description: str, pull: PullRequest) -> list[str]:
    """Why the skip does not hold; nothing where it does."""
    made = planned(description, pull)
    assert (made.skipped == []) is bool(made.wrong)
    return made.wrong


def shifted(pull: PullRequest) -> Held:
    block = said().replace("eval-skip-justification", "accept-baseline-shift")
    text = block.replace("milestones: [pre_ramp]", "judges: [brevity]")
    return accepted(replace(pull, description=text), REGISTRY, TODAY)


def later(minutes: int) -> datetime:
    return APPROVED.at + timedelta(minutes=minutes)


MERGED = replace(PULL, merged_as="c" * 40, merged_at=later(10))


def test_pc5_5_5_an_override_is_approved_by_the_review_that_the_branch_requires() -> None:
    """PC5 §5.5: before the merge no gate of a rollout is left out, and none needs have reviewed it yet; with the merge
    its reviewers are who approved, whomever its author names."""
    for waiting in (PULL, replace(PULL, approvals=())):
        made = planned(said(approved_by="'@friend'"), waiting)
        assert (made.wrong, made.gates) == ([], tuple(Milestone)), "it waits for the merge"
        shifts, wrong = shifted(waiting)
        assert shifts, wrong
    second = replace(APPROVED, by="second", at=later(5))
    made = planned(said(approved_by="'@friend'"), replace(MERGED, approvals=(APPROVED, second)))
    assert (made.wrong, made.gates) == ([], (Milestone.PRE_MERGE, Milestone.PRE_FULL))
    assert made.skipped[0]["approved_by"] == "@owner, @second"


@pytest.mark.parametrize("base", [PULL, MERGED], ids=["before the merge", "merged"])
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"reviews_required": 0}, "branch main merges without an approving review"),
        ({"author": "owner"}, "is the author"),
        ({"author": "OWNER"}, "is the author"),
        ({"approvals": (replace(APPROVED, commit="0" * 40),)}, "approved commit 000000000000"),
        ({"edited_at": later(1), "edited_by": "writer"}, "edited after @owner had approved"),
        ({"edited_at": later(1)}, "edited after @owner had approved"),
        ({"merged_at": later(10), "merged_as": "c" * 40, "approvals": ()}, "it was merged without an approval"),
        ({"merged_at": later(-1), "merged_as": "c" * 40}, "@owner approved after the merge"),
    ],
)
def test_an_author_ticks_no_reviewers_box(base: PullRequest, changes: dict[str, Any], why: str) -> None:
    """The tick stands in the author's own text; only another person's review, of this commit and this description, and
    before the merge, makes an override of it."""
    pull = replace(base, **changes)
    (wrong,) = refusals(said(), pull)
    assert why in wrong
    found, against = shifted(pull)
    assert found == []
    assert why in "; ".join(against)


def test_one_reviewer_of_what_stands_is_enough_and_the_others_are_not_named() -> None:
    stale = replace(APPROVED, by="early", commit="0" * 40)
    made = planned(said(), replace(MERGED, approvals=(stale, APPROVED)))
    assert (made.wrong, made.skipped[0]["approved_by"]) == ([], "@owner")


def test_a_reviewer_may_edit_the_description_after_approving() -> None:
    """The tick is such an edit. One that came before the approval is what was approved, whoever made it."""
    assert refusals(said(), replace(MERGED, edited_at=later(1), edited_by="Owner")) == []
    assert refusals(said(), replace(MERGED, edited_at=later(-1), edited_by="writer")) == []


EXCEPTION = Override.model_validate(
    {"judge": "ux-quality", "milestone": "pre_ramp", "enforcement": "warn", "pull_request": "#12", "justification": "x",
     "approved_on": "2026-11-20", "expires": "2026-12-20", "vertical": "receipts"}
)  # fmt: skip


def test_pc5_5_2_an_exception_to_enforcement_takes_a_label_and_a_spec_owners_review() -> None:
    """PC5 §5.2: label, spec-owner sign-off and the audit's entry, in which the reviewers of the merge approve."""
    pull = replace(MERGED, labels=(LOOSER,))
    ((entry,), wrong) = excepted([EXCEPTION], pull)
    assert wrong == []
    assert entry == {
        "judges": ["ux_quality"], "milestone": "pre_ramp", "vertical": "receipts", "approved_by": "@owner",
        "justification": "x", "expires": date(2026, 12, 20),
    }  # fmt: skip
    for changes, why in (
        ({"labels": ()}, "no label eval-enforcement-override"),
        ({"owners_required": False}, "without a review of code owners"),
        ({"reviews_required": 0}, "merges without an approving review"),
        ({"approvals": ()}, "merged without an approval"),
    ):
        found, (told,) = excepted([EXCEPTION], replace(pull, **changes))
        assert found == []
        assert why in told
    assert excepted([], replace(pull, labels=(), reviews_required=0)) == ([], [])


@pytest.mark.parametrize("text", ['"\u200b"', "'\u200b\u2060'", '"…"', "'   '"])
def test_a_justification_can_be_read(text: str) -> None:
    assert any("justification is empty" in wrong for wrong in refusals(said(text), PULL))


def test_an_override_holds_for_a_quarter_at_most() -> None:
    assert refusals(said(expires=TODAY + LONGEST_OVERRIDE), PULL) == []
    for day in (TODAY + LONGEST_OVERRIDE + timedelta(days=1), "2099-01-01", "9999-12-31"):
        (wrong,) = refusals(said(expires=day), PULL)
        assert "92 days at most" in wrong


def test_a_few_lines_of_aliases_take_no_memory() -> None:
    """476 bytes that stood for 3 GB of text: the block is read as configuration files are, without aliases."""
    names = "abcdefghij"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in pairwise(names)]
    bomb = "\n".join([*lines, "justification: *j", "expires: *j"])
    tracemalloc.start()
    try:
        block, wrong = read_block(SKIP, f"```{SKIP}\n{bomb}\n```\n\n{TICK}", TODAY, "milestones")
        text = f"```accept-baseline-shift\n{bomb}\n```\n\n{TICK}"
        shifts, _ = accepted(replace(PULL, description=text), REGISTRY, TODAY)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert block == {}
    assert "aliases are not allowed" in " ".join(wrong)
    assert shifts == []
    assert most < 5_000_000


def test_a_time_of_day_and_zone_make_no_difference() -> None:
    assert unapproved(replace(MERGED, edited_at=datetime(2026, 11, 20, 9, 12, 43, tzinfo=UTC))) == []
