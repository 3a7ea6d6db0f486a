"""A run in two jobs: one runs the candidate's code and has no key, the other has the judges' and runs no such code.
What the first says is the candidate's word: it can't pass for another configuration's or another case's answer. A file
of answers keeps of a failure why it is one, and whether it may pass."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalcore.scoring.calls import Spend
from evalcore.scoring.items import Failed
from rampgate.local.model.server import Running
from rampgate.suite.generation import Generated
from rampgate.suite.runs.answer_files import Head, read_answers, write_answers
from tests.unit.rampgate.suite.suite_commands import lines, ran, refused
from tests.unit.rampgate.suite.suite_folders import asked, case, written

JUDGED: dict[str, Any] = {"judges": ["helpfulness"], "score": "helpfulness"}
CASES = [case(number) for number in range(6)]


def generated(path: Path) -> Path:
    """The file of answers of the suite's candidate, made on a store that the other job does not have."""
    file = path.with_name("answers.jsonl")
    ran(path, "--generate", file, "--store", path.with_name("untrusted.db"))
    return file


def changed(file: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    change(rows)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


@pytest.mark.parametrize("half", ["--score", "--generate"])
def test_answers_go_to_and_come_from_a_regular_file(folder: Path, half: str) -> None:
    """A pipe that no one writes to would be waited for without end."""
    pipe = folder.parent / "pipe"
    os.mkfifo(pipe)
    told = refused(written(folder), half, pipe)
    assert told.startswith(f"{half} {pipe}: is no regular file")


def test_results_take_no_devices_place(folder: Path) -> None:
    """A file is replaced whole: who names a device or a pipe would have a file there."""
    pipe = folder.parent / "pipe"
    os.mkfifo(pipe)
    assert refused(written(folder), "--out", pipe).startswith(f"--out {pipe}: is no regular file")
    assert pipe.is_fifo()


def test_one_job_answers_and_the_other_scores_without_the_candidates_code(folder: Path, model: Running) -> None:
    prompt_alone = {"entry": "agent:answer", "parts": {"prompt": {"files": ["prompt.md"]}}}
    path = written(folder, CASES, candidate=prompt_alone, **JUDGED)
    whole = ran(path, "--store", folder / "whole.db")
    judged = model.model.requests.total()
    file = generated(path)
    assert model.model.requests.total() == judged, "who makes answers asks no judge"
    answered = len(asked(folder))
    (folder / "agent.py").unlink()
    scored = ran(path, "--score", file)
    assert len(asked(folder)) == answered
    told = ("case_id", "sample", "scores", "output", "versions")
    assert [[row[name] for name in told] for row in lines(scored)] == [
        [row[name] for name in told] for row in lines(whole)
    ]
    assert all(len(row["trace"]["hash"]) == 64 for row in lines(scored))


def test_answers_of_another_configuration_are_refused(folder: Path) -> None:
    path = written(folder, CASES, **JUDGED)
    file = generated(path)
    (folder / "prompt.md").write_text("another one\n")
    assert "answers.jsonl:1: configuration: the answers are of" in refused(path, "--score", file)
    other = json.loads(file.read_text().splitlines()[0])["configuration"]

    def claims(rows: list[dict[str, Any]]) -> None:
        rows[0]["configuration"] = ran(path, "--plan")["configuration"]

    assert other != ran(path, "--plan")["configuration"]
    assert "answers.jsonl:2: key: it is not that of" in refused(path, "--score", changed(file, claims))


def swapped(rows: list[dict[str, Any]]) -> None:
    rows[1]["case_id"], rows[2]["case_id"] = rows[2]["case_id"], rows[1]["case_id"]


def unknown(rows: list[dict[str, Any]]) -> None:
    rows[1]["key"] = "0" * 64


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (swapped, ":2: key: it is not that of sample 1"),
        (unknown, ":2: key: it is not that of sample 1"),
        (lambda rows: rows.append(rows[1]), ":14: key: sample 1 of 'c0' stands there twice"),
        (lambda rows: rows[1].update(score=5), ":2: score: "),
        (lambda rows: rows[1].update(answer={"text": "x"}), ":2: answer: "),
        (lambda rows: rows[1].update(latency_ms=-1), ":2: latency_ms: "),
        (lambda rows: rows.clear(), ":1: configuration: "),
    ],
)
def test_a_file_that_was_tampered_with_is_refused_by_its_line(
    folder: Path, change: Callable[[list[dict[str, Any]]], object], told: str
) -> None:
    path = written(folder, CASES)
    assert told in refused(path, "--score", changed(generated(path), change))


def test_a_case_that_the_file_leaves_out_is_the_agents_error(folder: Path) -> None:
    """Else a candidate would drop the cases that it fails."""
    path = written(folder, CASES)
    file = changed(generated(path), lambda rows: rows.pop(1))
    found = ran(path, "--score", file)
    assert found["answers"]["failed"] == 1
    (row,) = [row for row in lines(found) if "error" in row]
    assert (row["case_id"], row["sample"]) == ("c0", 1)


def test_cases_that_ask_the_same_each_have_their_answer(folder: Path) -> None:
    path = written(folder, [case(0), case(1, input=case(0)["input"])])
    found = ran(path, "--score", generated(path))
    assert [row["case_id"] for row in lines(found) if "error" not in row] == ["c0", "c1"] * 2


def test_no_answer_of_a_file_is_reused_by_another_run(folder: Path) -> None:
    """A branch's code may say anything under main's configuration."""
    path = written(folder, CASES)
    file = generated(path)
    ran(path, "--score", changed(file, lambda rows: rows[1]["answer"].update(output="bad")), code=0)
    before = len(asked(folder))
    assert ran(path)["answers"] == {"asked": 12, "kept": 0, "failed": 0}
    assert len(asked(folder)) == before + 12


def test_an_option_of_an_earlier_release_is_refused_by_name_with_what_does_its_work(folder: Path) -> None:
    path = written(folder, CASES)
    for words, said in (
        (("--only", "generate"), "--only: is no option any more; give --generate FILE, or --score FILE"),
        (("--base=main",), "--base: is no option any more; the baseline's commit is that of its stored run"),
        (("--let-go", "c0"), "--let-go: is no option any more; name the case in main's suite file"),
    ):
        assert said in refused(path, *words)


def test_of_a_proposal_comes_the_candidate_and_nothing_that_decides(folder: Path) -> None:
    """Its cases, checks and score are passed over, its parts make the configuration, and its code answers."""
    path = written(folder, CASES)
    theirs = written(folder.with_name("proposed"), CASES[:1], checks={"is_good": {"regex": "."}})
    (theirs.parent / "prompt.md").write_text("bad\n")
    proposed, file = ("--proposed", theirs.parent), folder / "answers.jsonl"
    made = ran(path, "--generate", file, *proposed)
    assert made["cases"] == len(CASES)
    assert not (theirs.parent / ".rampgate").exists()
    assert made["configuration"] == ran(theirs, "--plan")["configuration"] != ran(path, "--plan")["configuration"]
    assert (asked(folder), len(asked(theirs.parent))) == ([], 2 * len(CASES))
    found = ran(path, "--score", file, *proposed)
    assert {row["scores"]["is_good"] for row in lines(found)} == {0.0}
    assert len(lines(found)) == 2 * len(CASES)
    theirs.write_text("suite: [")
    assert "proposed/suite.yaml" in refused(path, "--plan", *proposed)


def test_a_proposals_suite_is_no_link_to_a_file_elsewhere(folder: Path) -> None:
    """An error would tell what stands there to whoever reads the log."""
    path = written(folder, CASES)
    theirs = written(folder.with_name("proposed"), CASES)
    elsewhere = folder.with_name("elsewhere.yaml")
    theirs.rename(elsewhere)
    elsewhere.write_text("candidate: {entry: not-to-be-told, parts: {}}\n")
    theirs.symlink_to(elsewhere)
    said = refused(path, "--plan", "--proposed", theirs.parent)
    assert "proposed/suite.yaml: is no file of that folder" in said
    assert "not-to-be-told" not in said


def test_a_failure_that_may_pass_may_still_pass_where_it_is_scored(tmp_path: Path) -> None:
    head, path = Head(configuration="a" * 64), tmp_path / "answers.jsonl"
    answers = [Failed("answers 503", may_pass=True), Failed("crashed"), {"output": "yes"}]
    found = [Generated(f"c{number}", 1, answer) for number, answer in enumerate(answers)]
    keys = {(one.case_id, 1): f"{number}" * 64 for number, one in enumerate(found)}
    write_answers(path, head, keys, found, Spend())
    assert [read_answers(path, head, keys)[place].answer for place in keys] == answers
