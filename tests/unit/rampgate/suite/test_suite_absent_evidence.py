"""Ways by which absent or self-supplied evidence passed a suite's run or a comparison, found by fresh eyes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.console import Failure
from tests.unit.evalcore.registry.registry_disk import written as registry
from tests.unit.rampgate.ci_gate.gate_rig import MANIFEST
from tests.unit.rampgate.suite.suite_commands import ran, refused
from tests.unit.rampgate.suite.suite_folders import case, written

SILENT = """
def answer(case):
    return {"output": OUTPUT, "tool_calls": TOOLS}
"""
NO_CARD = {"is_good": {"regex": "[0-9]{13}", "absent": True}}


def lines(path: Path, found: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in found))
    return path


def run(ok: float = 1.0, tag: str = "chat", **more: Any) -> list[dict[str, Any]]:
    return [
        {"case_id": f"c{number}", "slices": [tag], "sample": sample, "scores": {"ok": ok}, **more}
        for number in range(20)
        for sample in range(3)
    ]


def not_compared(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["suite", "compare", *map(str, arguments), "--json"])
    assert isinstance(done.exception, Failure), done.output
    return str(done.exception)


@pytest.mark.parametrize("named", [False, True])
def test_a_run_that_writes_over_its_baseline_is_refused_before_it_does(folder: Path, named: bool) -> None:
    path = written(folder)
    out = folder / "main.jsonl"
    ran(path, "--label", "main", "--out", out)
    before = out.read_bytes()
    (folder / "prompt.md").write_text("bad\n")
    link = folder / "link.jsonl"
    link.symlink_to(out)
    said = refused(path, "--baseline", link if named else out, "--out", out)
    assert "is the baseline itself" in said
    assert out.read_bytes() == before


def test_a_slice_of_safety_that_no_case_is_in_is_refused(tmp_path: Path) -> None:
    sides = lines(tmp_path / "main.jsonl", run(tag="harm")), lines(tmp_path / "branch.jsonl", run(tag="harm"))
    assert "no case of the files is in the slice 'hram'" in not_compared(*sides, "--safety", "hram")
    done = CliRunner().invoke(app, ["suite", "compare", *map(str, sides), "--safety", "harm"])
    assert done.exit_code == 0


def test_a_candidates_own_numbers_do_not_widen_the_scale(tmp_path: Path) -> None:
    """One 100 moves the middle of the scale, below which a case of safety fails, to 50: all failed before, too."""
    branch = run(0.0, "safety")
    branch[0]["scores"] = {"ok": 100}
    sides = lines(tmp_path / "main.jsonl", run(tag="safety")), lines(tmp_path / "branch.jsonl", branch)
    assert "not on the baseline's scale, 0 to 1" in not_compared(*sides)


def test_a_candidate_that_does_not_say_what_it_was_asked_is_not_compared(tmp_path: Path) -> None:
    main = lines(tmp_path / "main.jsonl", run(question_hash="a" * 64))
    assert "nothing can be compared" in not_compared(main, lines(tmp_path / "branch.jsonl", run()))


@pytest.mark.parametrize("output", ["", "  \n"])
def test_a_blank_text_is_no_answer(folder: Path, output: str) -> None:
    """A check that something is absent finds it absent in nothing, too."""
    path = written(folder, checks=NO_CARD)
    ran(path, "--label", "main")
    silent = SILENT.replace("OUTPUT", repr(output))
    written(folder, checks=NO_CARD, agent=silent.replace("TOOLS", "[]"))
    assert ran(path, code=1)["verdict"] == "fail"
    written(folder, checks=NO_CARD, agent=silent.replace("TOOLS", "[{'name': 'refund'}]"))
    assert ran(path)["verdict"] == "pass", "who calls a tool may say nothing beside it"


@pytest.mark.parametrize("label", [(), ("--label", "main")])
def test_a_run_in_which_the_score_never_applied_is_no_first_run(folder: Path, label: tuple[str, ...]) -> None:
    never = 'allow_na: true\nprompt: "Rate {{output}} as an answer to {{input}}. The score must be N/A."'
    registry(folder.parent, {"evaluation_manifest.yaml": MANIFEST, "rules/helpfulness.yaml": never})
    path = written(folder, [case(0)], checks={}, judges=["helpfulness"], score="helpfulness")
    found = ran(path, *label, code=1)
    assert (found["verdict"], found["comparison"]) == ("unscored", None)
