"""A forked `rampgate` is a process like one that is started: streams, environment, session, exit code, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from tests.fork_server import SHARED, Forked
from tests.root import ROOT
from tests.waiting import until


def test_its_output_and_exit_code_are_its_own() -> None:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        good = Forked(["--help"], dict(os.environ), out, err)
        assert good.wait(60) == 0
        bad = Forked(["worker"], {"PATH": os.defpath, "RAMPGATE_KAFKA": "no address"}, out, err)
        assert bad.wait(60) == 2
        out.seek(0)
        err.seek(0)
        assert b"Usage" in out.read()
        assert b"no address" in err.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_signals_reach_it_and_show_in_its_code(number: signal.Signals) -> None:
    """A worker whose Kafka is away waits for it until it is told to stop."""
    environment = dict(os.environ) | {"RAMPGATE_KAFKA": "127.0.0.1:1", "RAMPGATE_HTTP": "127.0.0.1:0"}
    with tempfile.TemporaryFile() as out:
        waiting = Forked(["worker"], environment, out, out)
        try:
            until(lambda: b"worker_starting" in os.pread(out.fileno(), 1 << 20, 0), "the worker starts")
            assert os.getsid(waiting.pid) == waiting.pid
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(0.1)
            assert waiting.poll() is None
            waiting.send_signal(number)
            assert waiting.wait(60) == (0 if number == signal.SIGTERM else -signal.SIGKILL)
        finally:
            waiting.kill()
        assert waiting.poll() == waiting.returncode


RUNNER = """
import os, sys
from tests.fork_server import Forked
with open(sys.argv[1], "wb") as out:
    waiting = Forked(["worker"], dict(os.environ), out, out)
print(waiting.pid, flush=True)
waiting.wait()
"""


@pytest.mark.parametrize("killed", ["the test run", "the fork server"])
def test_it_ends_with_the_test_run_that_asked_for_it(killed: str, tmp_path: Path) -> None:
    environment = dict(os.environ) | {"RAMPGATE_KAFKA": "127.0.0.1:1", "RAMPGATE_HTTP": "127.0.0.1:0"}
    environment.pop(SHARED, None)  # it has one of its own
    log = tmp_path / "log"
    command = [sys.executable, "-c", RUNNER, str(log)]
    runner = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=ROOT)
    try:
        assert runner.stdout is not None
        with runner.stdout:
            worker = psutil.Process(int(runner.stdout.readline()))
        server = worker.parent()
        assert server is not None
        until(lambda: "waiting_for_topics" in log.read_text(), "the worker waits for Kafka")
        (runner if killed == "the test run" else server).kill()
        until(lambda: not any(map(alive, (worker, server))), "both are gone", 10.0)
    finally:
        runner.kill()
        runner.wait()


def alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
