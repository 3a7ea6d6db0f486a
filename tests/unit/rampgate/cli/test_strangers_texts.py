"""What a failure says may quote a stranger: a pull request's file, its names, its links. Nothing of it is a command to
the runner whose log it stands in, and nothing moves a terminal's cursor."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rampgate.console import plain
from rampgate.report.github import annotation
from tests.unit.rampgate.checks.score_commands import said
from tests.unit.rampgate.suite.suite_folders import written

BAD = (
    "\n::error::pwned",
    "\r::add-mask::x",
    "\n  ::stop-commands::t",
    "##[error]pwned",
    "\x1b[2J\x1b[31m",
    "\x85::error::x",
)
EVIL = "x" + "".join(BAD)


def told(words: list[str]) -> str:
    """What the command writes, which ends with exit code 2."""
    code, out, err = said(*words)
    assert code == 2
    return out + err


def holds_no_command(text: str) -> None:
    assert text.strip()
    for line in text.splitlines():
        assert not line.lstrip().startswith("::"), text
    assert "##[" not in text
    assert all(mark.isprintable() or mark == "\n" for mark in text), repr(text)


def a_field(folder: Path) -> list[str]:
    (folder / "scores.jsonl").write_text(
        json.dumps({"judge_id": "j", "item_id": "a", EVIL: 1, "score": {EVIL: 1}}) + "\n"
    )
    return ["check", "drift", str(folder / "scores.jsonl"), str(folder / "scores.jsonl")]


def a_doubled_name(folder: Path) -> list[str]:
    name = json.dumps(EVIL)
    (folder / "items.jsonl").write_text(f'{{"id": "a", "input": "q", {name}: 1, {name}: 2}}\n')
    return ["gate", "run", "--milestone", "pre_ramp", "--traces", str(folder / "items.jsonl")]


def a_path(folder: Path) -> list[str]:
    return ["suite", "run", str(folder / EVIL)]


def a_links_target(folder: Path) -> list[str]:
    target = folder / EVIL
    target.write_text("good\n")
    suite = written(folder / "suite")
    (folder / "suite" / "prompt.md").unlink()
    (folder / "suite" / "prompt.md").symlink_to(target)
    return ["suite", "run", str(suite)]


def a_text_of_a_suites_file(folder: Path) -> list[str]:
    return ["suite", "run", str(written(folder / "suite", safety=[EVIL]))]


@pytest.mark.parametrize("way", [a_field, a_doubled_name, a_path, a_links_target, a_text_of_a_suites_file])
def test_no_failure_begins_a_workflow_command(
    way: Callable[[Path], list[str]],
    tmp_path: Path,
) -> None:
    holds_no_command(told(way(tmp_path)))


def test_what_is_shown_of_a_text_begins_no_command_either() -> None:
    for bad in BAD:
        holds_no_command(plain(f"::error::x{bad}") + "\n" + plain(bad.strip() + "."))


def test_an_annotation_has_no_control_characters_of_its_own() -> None:
    made = annotation("error", {"title": EVIL}, EVIL)
    assert made.startswith("::error title=")
    assert made.isprintable()
