"""An answer, or a file that a proposal brings, ends no run and keeps none busy for ever. A proposal's suite is what
stands in its own checkout: no link makes main's candidate answer for it (issue 32, line 16)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalcore.suite.checks import Checker
from rampgate.ci_gate.inputs import read_outputs
from rampgate.input_files import BadFile
from schemas.checks.suite import Check
from streams.gates.candidate import CandidateClient
from tests.root import ROOT
from tests.unit.rampgate.registry.git_folders import git
from tests.unit.rampgate.suite.suite_commands import document, ended, failure
from tests.unit.rampgate.suite.suite_folders import case, suite, written

NESTED = 300
"""Levels: JSON is read to a thousand, and written to some 250."""
PATIENCE = 20.0
"""Seconds; without the bound these would run until they are killed."""
AGENT = f"""
import json, sys


def answer(case):
    deep = "good"
    for _ in range({NESTED} if "deep" in case["input"] else 0):
        deep = [deep]
    return {{"output": deep}}


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
"""
PARTS = {"prompt": {"files": ["prompt.md"]}}
WAYS = [{"entry": "agent:answer", "python": sys.executable}, {"command": [sys.executable, "agent.py"]}]


@pytest.mark.parametrize("way", WAYS, ids=["function", "command"])
def test_an_answer_that_is_nested_too_deep_fails_its_case_alone(folder: Path, way: dict[str, Any]) -> None:
    cases = [case(1, input="deep"), *(case(number) for number in range(2, 6))]
    path = written(folder, cases, AGENT, samples=1, candidate={**way, "parts": PARTS})
    done = ended("run", path, "--label", "main", "--json")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    found = json.loads(done.stdout)
    rows = [json.loads(line) for line in Path(found["results"]).read_text().splitlines()]
    assert {row["case_id"]: row["scores"]["is_good"] for row in rows if "error" not in row} == dict.fromkeys(
        ("c2", "c3", "c4", "c5"), 1.0
    )
    (failed,) = [row for row in rows if "error" in row]
    assert failed["case_id"] == "c1"
    assert "nested" in failed["error"]


class Deep:
    """A candidate over HTTP."""

    async def post(self, url: str, *, content: bytes, headers: Any) -> Any:
        class Answer:
            status_code, headers = 200, dict[str, str]()
            content = b'{"output": ' + b"[" * NESTED + b"]" * NESTED + b"}"

        return Answer


async def test_a_gates_candidate_that_answers_so_gave_no_answer() -> None:
    answer = await CandidateClient(Deep(), "http://nowhere").answer({"input": "q"})
    assert "nested" in str(getattr(answer, "why", "it was taken"))


def test_a_line_of_a_file_that_is_nested_so_deep_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "outputs.jsonl"
    file.write_text('{"id": "a", "output": "fine"}\n{"id": "b", "output": ' + "[" * NESTED + "]" * NESTED + "}\n")
    with pytest.raises(BadFile, match=r"outputs\.jsonl:2: .*nested"):
        read_outputs(file)


@pytest.mark.parametrize("what", ["cases.jsonl", "shape.json", "suite.yaml"])
def test_what_is_no_file_is_refused_where_it_would_be_waited_for(tmp_path: Path, what: str) -> None:
    path = written(tmp_path, checks={"is_good": {"json_schema": "shape.json"}})
    (tmp_path / "shape.json").write_text("{}")
    (tmp_path / what).unlink()
    os.mkfifo(tmp_path / what)
    done = subprocess.run(
        [sys.executable, "-m", "rampgate", "suite", "run", str(path)],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"{what}: is no regular file" in done.stderr


SLOW = r"^(\w+\s?)*$"


def test_a_schemas_pattern_that_backtracks_keeps_no_run_busy() -> None:
    """As an answer that is made for it would."""
    program = f"""
from evalcore.suite.checks import Checker
from schemas.checks.suite import Check

checker = Checker(Check.model_validate({{"json_schema": "s.json"}}), {{"properties": {{"a": {{"pattern": {SLOW!r}}}}}}})
for text in ("some plain words", "x" * 60 + "!"):
    print(checker.check({{"output": {{"a": text}}}}).score)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.stdout.split() == ["1.0", "0.0"], done.stderr


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"items": {"pattern": "(?=a)"}}, "RE2 does not take it"),
        ({"patternProperties": {SLOW: {}}}, "patternProperties is not taken"),
        ({"properties": {"pattern": {"type": "string"}}}, None),
    ],
    ids=["a pattern that RE2 refuses", "patterns of names", "a property called pattern"],
)
def test_a_pattern_that_re2_does_not_run_is_refused_before_anything_runs(schema: Any, why: str | None) -> None:
    check = Check.model_validate({"json_schema": "s.json"})
    if why is None:
        assert Checker(check, schema).check({"output": {"pattern": "x"}}).score == 1.0
        return
    with pytest.raises(ValueError, match=why):
        Checker(check, schema)


CASES = [case(number) for number in range(12)]


@pytest.fixture
def checkouts(folder: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Main's suite, which passed, and a checkout of a proposal without one."""
    main = written(folder, CASES)
    document("run", main, "--label", "main")
    proposed = tmp_path / "proposed"
    proposed.mkdir()
    git(proposed, "init", "--quiet")
    return main, proposed


def said(main: Path, proposed: Path) -> str:
    return failure("run", main, "--proposed", proposed)


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
    done = ended("run", main, "--proposed", there, "--json")
    assert done.exit_code == 0, done.output
