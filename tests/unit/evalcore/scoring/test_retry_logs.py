"""A retry of a call to a judges' model is told through `logging` where evalcore is used as a library: stdout is the
caller's (contracts §5, "one JSON document on stdout, nothing else there")."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.root import ROOT

CALLER = """
import asyncio, json, sys
import structlog
from evalcore.judges.evaluator import Prompt
from evalcore.scoring.calls import CallFailed, Failure, Reply
from evalcore.scoring.model_caller import CallLimits
from evalcore import evaluate_gate

class Busy:
    calls = 0

    def source(self, model):
        return "test"

    async def complete(self, asked):
        Busy.calls += 1
        if Busy.calls <= 2:
            raise CallFailed(Failure.UNAVAILABLE, "busy")
        return Reply(json.dumps({"score": True, "reason": ""}))

if sys.argv[1] == "configured":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
limits = CallLimits(first_pause=0.001, longest_pause=0.001, jitter=0.0)
items = [{"input": "a", "output": "b", "metadata": {"id": "1", "category": "general_qa"}}]
evaluate_gate("pre_merge", items, ["jailbreaking"], model=Busy(), limits=limits)
print(json.dumps({"calls": Busy.calls}))
"""


def ran(how: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", CALLER, how], capture_output=True, text=True, cwd=ROOT, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_retry_in_library_use_is_a_log_record_and_nothing_on_stdout() -> None:
    done = ran("library")
    assert json.loads(done.stdout)["calls"] > 2
    assert "retry" in done.stderr.lower()


def test_who_has_configured_structlog_is_told_there() -> None:
    done = ran("configured")
    assert json.loads(done.stdout)["calls"] > 2
    assert "stamina.retry_scheduled" in done.stderr
