"""A candidate that is a command: one process a case, and whatever it does costs its case alone."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from evalcore.gates.golden import CandidateAnswer
from evalcore.scoring.items import Failed
from rampgate.suite.candidates.command import CommandCandidate

PROGRAM = """
import json, os, signal, sys, time

case = json.load(sys.stdin)
said = case["input"]
if said == "text":
    print("Hello,\\nthere")
elif said == "log":
    print("noise " * 100_000, file=sys.stderr)
    print(json.dumps({"output": "fine", "tool_calls": [{"name": "search"}]}))
elif said == "fail":
    print("no such tool", file=sys.stderr); sys.exit(4)
elif said == "die":
    os.kill(os.getpid(), signal.SIGKILL)
elif said == "hang":
    time.sleep(600)
elif said == "child":
    os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "600")
    time.sleep(600)
elif said == "long":
    print("x" * (5 << 20))
elif said == "bytes":
    sys.stdout.buffer.write(b"\\xff\\xfe")
elif said == "no output":
    print(json.dumps({"answer": "x"}))
elif said == "list":
    print("[1, 2]")
elif said == "metadata":
    print(json.dumps({"output": case["metadata"]["category"]}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "answer.py").write_text(PROGRAM)
    return tmp_path


def asked(folder: Path, said: Any, *, seconds: float = 60.0, words: tuple[str, ...] = ()) -> CandidateAnswer:
    candidate = CommandCandidate(words or (sys.executable, "answer.py"), folder, seconds=seconds)
    return asyncio.run(candidate.answer({"input": said, "metadata": {"category": "sports"}}))


def test_a_text_and_an_object_with_output_are_answers_and_logs_are_not(folder: Path) -> None:
    assert asked(folder, "text") == {"output": "Hello,\nthere\n"}
    assert asked(folder, "list") == {"output": "[1, 2]\n"}
    assert asked(folder, "log") == {"output": "fine", "tool_calls": [{"name": "search"}]}
    assert asked(folder, "metadata") == {"output": "sports"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("fail", "ended with 4; it printed last:\nno such tool"),
        ("die", "was ended by SIGKILL"),
        ("hang", "no answer in 2 s"),
        ("child", "no answer in 2 s"),
        ("long", "more than 4 MB"),
        ("bytes", "no UTF-8"),
        ("no output", "has no output"),
        ("nothing", "has no output"),
    ],
)
def test_what_is_no_answer_says_why(folder: Path, said: str, told: str) -> None:
    answer = asked(folder, said, seconds=2.0 if told == "no answer in 2 s" else 60.0)
    assert isinstance(answer, Failed)
    assert told in answer.why


def test_only_a_failure_to_answer_in_time_may_pass(folder: Path) -> None:
    late, broken = asked(folder, "hang", seconds=0.5), asked(folder, "fail")
    assert isinstance(late, Failed)
    assert isinstance(broken, Failed)
    assert (late.may_pass, broken.may_pass) == (True, False)


def test_one_that_reads_no_input_answers_all_the_same(folder: Path) -> None:
    assert asked(folder, "x" * (1 << 20), words=("echo", "hello")) == {"output": "hello\n"}


def test_a_command_that_is_not_there_is_told(folder: Path) -> None:
    answer = asked(folder, "text", words=("no-such-command",))
    assert isinstance(answer, Failed)
    assert "does not start" in answer.why
