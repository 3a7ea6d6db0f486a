"""A file of answers keeps of a failure why it is one, and whether it may pass."""

from __future__ import annotations

from pathlib import Path

from evalcore.gates.golden import Failed
from evalcore.scoring.calls import Spend
from rampgate.suite.generation import Generated
from rampgate.suite.runs.answer_files import Head, read_answers, write_answers


def test_a_failure_that_may_pass_may_still_pass_where_it_is_scored(tmp_path: Path) -> None:
    head, path = Head(configuration="a" * 64), tmp_path / "answers.jsonl"
    answers = [Failed("answers 503", may_pass=True), Failed("crashed"), {"output": "yes"}]
    found = [Generated(f"c{number}", 1, answer) for number, answer in enumerate(answers)]
    keys = {(one.case_id, 1): f"{number}" * 64 for number, one in enumerate(found)}
    write_answers(path, head, keys, found, Spend())
    assert [read_answers(path, head, keys)[place].answer for place in keys] == answers
