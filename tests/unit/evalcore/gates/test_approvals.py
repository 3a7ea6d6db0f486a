"""Who agrees to an override, and for how long: what the host of the repository says, never what its author wrote (PC5
§5.5)."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from evalcore.gates.overrides import AGREED, Approval, PullRequest, accepted, read_block, unapproved
from evalcore.gates.planning import BLOCK, plan
from schemas.judges import Milestone
from schemas.manifests import LONGEST_OVERRIDE
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.rampgate.ci_gate.github_api import APPROVED, HEAD, PULL

TODAY = date(2026, 11, 21)
TICK = f"- [x] {AGREED}"
REGISTRY = built()


def said(approved_by: str = "'@owner'", justification: str = "known", expires: object = "2026-12-23") -> str:
    fields = f"approved_by: {approved_by}\njustification: {justification}\nexpires: {expires}\n"
    return f"```eval-skip-justification\nmilestones: [pre_ramp]\n{fields}```\n\n{TICK}\n"


def refusals(description: str, pull: PullRequest | None) -> tuple[str, ...]:
    """Why the skip does not hold; nothing where it does."""
    made = plan(["prompts/a.xml"], ["eval-skip-pre-ramp"], description, today=TODAY, pull=pull)
    assert (Milestone.PRE_RAMP in made.gates) is (made.skipped == ()) is bool(made.wrong)
    return made.wrong


def later(minutes: int) -> datetime:
    return APPROVED.at + timedelta(minutes=minutes)


@pytest.mark.parametrize("name", ["'@owner'", "owner", "'@Owner'", "OWNER"])
def test_an_override_holds_where_who_is_named_approved_what_stands(name: str) -> None:
    assert refusals(said(name), PULL) == ()


@pytest.mark.parametrize(
    ("pull", "why"),
    [
        (None, "nobody was asked"),
        (replace(PULL, author="owner"), "is the author"),
        (replace(PULL, author="OWNER"), "is the author"),
        (replace(PULL, approvals=()), "no approval by @owner stands"),
        (replace(PULL, approvals=(replace(APPROVED, by="another"),)), "no approval by @owner stands"),
        (replace(PULL, approvals=(replace(APPROVED, commit="0" * 40),)), "approved commit 000000000000"),
        (replace(PULL, edited_at=later(1), edited_by="writer"), "edited after @owner had approved"),
        (replace(PULL, edited_at=later(1)), "edited after @owner had approved"),
    ],
)
def test_an_author_ticks_no_reviewers_box(pull: PullRequest | None, why: str) -> None:
    """The tick and the name stand in the author's own text; only another person's approval, of this commit and this
    description, makes an override of them."""
    (wrong,) = refusals(said(), pull)
    assert why in wrong
    shift = (
        said()
        .replace("eval-skip-justification", "accept-baseline-shift")
        .replace("milestones: [pre_ramp]", "judges: [brevity]")
    )
    found, against = accepted(shift, REGISTRY, TODAY, pull)
    assert found is None
    assert why in "; ".join(against)


def test_a_reviewer_may_edit_the_description_after_approving() -> None:
    """The tick is such an edit. One that came before the approval is what was approved, whoever made it."""
    assert refusals(said(), replace(PULL, edited_at=later(1), edited_by="Owner")) == ()
    assert refusals(said(), replace(PULL, edited_at=later(-1), edited_by="writer")) == ()


@pytest.mark.parametrize(
    "name",
    [
        '"\u200b"',
        '"\u2060"',
        '"@\u200bowner"',
        '"own\u200der"',
        '"@оwner"',
        '"@owner and @other"',
        '"@team/owner"',
        "'@'",
        "[owner]",
    ],
)
def test_who_approved_is_one_person_by_the_name_on_github(name: str) -> None:
    """No look-alikes (a Cyrillic о), and no marks that nobody sees."""
    everybody = replace(
        PULL, approvals=(APPROVED, Approval("\u200b", HEAD, APPROVED.at), Approval("оwner", HEAD, APPROVED.at))
    )
    assert refusals(said(name), everybody)


@pytest.mark.parametrize("text", ['"\u200b"', "'\u200b\u2060'", '"…"', "'   '"])
def test_a_justification_can_be_read(text: str) -> None:
    assert any("justification is empty" in wrong for wrong in refusals(said(justification=text), PULL))


def test_an_override_holds_for_a_quarter_at_most() -> None:
    assert refusals(said(expires=TODAY + LONGEST_OVERRIDE), PULL) == ()
    for day in (TODAY + LONGEST_OVERRIDE + timedelta(days=1), "2099-01-01", "9999-12-31"):
        (wrong,) = refusals(said(expires=day), PULL)
        assert "92 days at most" in wrong


def test_a_few_lines_of_aliases_take_no_memory() -> None:
    """476 bytes that stood for 3 GB of text: the block is read as configuration files are, without aliases."""
    names = "abcdefghij"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in pairwise(names)]
    bomb = "\n".join([*lines, "approved_by: *j", "justification: *j", "expires: *j"])
    tracemalloc.start()
    try:
        block, wrong = read_block(BLOCK, f"```{BLOCK}\n{bomb}\n```\n\n{TICK}", TODAY, "milestones")
        shift = accepted(f"```accept-baseline-shift\n{bomb}\n```\n\n{TICK}", REGISTRY, TODAY, PULL)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert block == {}
    assert "aliases are not allowed" in " ".join(wrong)
    assert shift[0] is None
    assert most < 5_000_000


def test_a_time_of_day_and_zone_make_no_difference() -> None:
    found = unapproved(
        BLOCK, {"approved_by": "owner"}, replace(PULL, edited_at=datetime(2026, 11, 20, 9, 12, 43, tzinfo=UTC))
    )
    assert found == []
