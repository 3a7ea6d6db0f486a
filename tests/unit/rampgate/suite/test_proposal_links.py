"""A proposal's suite is what stands in its own checkout: no link makes main's candidate answer for it (issue 32, line
16)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.console import Failure
from tests.unit.rampgate.registry.git_folders import git
from tests.unit.rampgate.suite.suite_folders import case, suite, written

CASES = [case(number) for number in range(12)]


@pytest.fixture
def checkouts(folder: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Main's suite, which passed, and a checkout of a proposal without one."""
    main = written(folder, CASES)
    done = CliRunner().invoke(app, ["suite", "run", str(main), "--label", "main", "--json"])
    assert done.exit_code == 0, done.output
    proposed = tmp_path / "proposed"
    proposed.mkdir()
    git(proposed, "init", "--quiet")
    return main, proposed


def said(main: Path, proposed: Path) -> str:
    done = CliRunner().invoke(app, ["suite", "run", str(main), "--proposed", str(proposed), "--json"])
    assert isinstance(done.exception, Failure), f"it is judged, with exit code {done.exit_code}: {done.output}"
    return str(done.exception)


def test_a_suites_folder_that_is_a_link_is_refused(checkouts: tuple[Path, Path]) -> None:
    main, proposed = checkouts
    (proposed / "desk").symlink_to(main.parent)
    assert "is a link" in said(main, proposed / "desk")


def test_a_folder_above_it_that_is_a_link_is_refused_even_if_it_looks_like_a_checkout(
    checkouts: tuple[Path, Path],
) -> None:
    main, proposed = checkouts
    git(main.parent.parent, "init", "--quiet")
    (proposed / "examples").symlink_to(main.parent.parent)
    assert "is a link" in said(main, proposed / "examples" / main.parent.name)


def test_a_candidate_in_a_folder_outside_the_proposals_checkout_is_refused(checkouts: tuple[Path, Path]) -> None:
    """Its suite file could name main's agent."""
    main, proposed = checkouts
    given: dict[str, Any] = suite()["candidate"] | {"folder": f"../../{main.parent.name}"}
    written(proposed / "desk", CASES, "def answer(case):\n    return 'bad'\n", candidate=given)
    assert "candidate.folder" in said(main, proposed / "desk")


def test_a_proposal_without_a_link_is_judged_where_its_checkout_is_reached_by_one(
    checkouts: tuple[Path, Path], tmp_path: Path
) -> None:
    main, proposed = checkouts
    written(proposed / "desk", CASES)
    (tmp_path / "work").symlink_to(tmp_path)
    there = tmp_path / "work" / "proposed" / "desk"
    done = CliRunner().invoke(app, ["suite", "run", str(main), "--proposed", str(there), "--json"])
    assert done.exit_code == 0, done.output
