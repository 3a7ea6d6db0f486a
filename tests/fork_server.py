"""Starts `rampgate …` and the stand-ins in processes forked from one that has imported everything.

A worker's imports cost seconds of a core, and a test run starts hundreds of workers. The parent runs as
`python -m tests.fork_server SOCKET`, has one thread, and forks for each request; the child is a process like any other:
a session, an environment, a folder, standard streams and an exit of its own. Tests that measure a start, or what it
imports, use `subprocess` instead.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from runpy import run_module
from typing import IO, Any
from unittest.mock import patch

import typer
from typer.core import TyperGroup
from typer.main import get_command

from rampgate.local.services.process import ChildProcess
from tests.root import ROOT

FORKED = (
    "rampgate", "rampgate.local.model", "rampgate.local.opik", "rampgate.local.prepared",
    "rampgate.local.services.broker",
)  # fmt: skip
"""The modules whose processes come from the fork server."""
IMPORTED = (
    "boto3", "confluent_kafka", "jinja2", "markdown_it", "rampgate.checks.standing", "rampgate.ci_gate.respond",
    "rampgate.cli", "rampgate.gate.run", "rampgate.local.model.server", "rampgate.local.opik.server", "rampgate.logs",
    "rampgate.settings_sources", "rampgate.suite.candidates.entry_point", "rampgate.suite.pull_request.gate",
    "rampgate.suite.report.runs", "rampgate.suite.run_command", "rampgate.suite.spec_files", "rampgate.worker.feed",
    "rampgate.worker.process", "rampgate.worker.sweep", "re2", "scipy.special", "uvloop",
)  # fmt: skip
PR_SET_PDEATHSIG = 1
"""Linux's number of the request that the kernel kill a process with its parent."""
SHARED = "TESTS_FORK_SERVER"
"""The environment's variable with the address of a whole test run's fork server."""
LONGEST_REQUEST = 1 << 20
LOOK_SECONDS = 1.0
"""From one look at whether the test run still lives to the next, where its end shows in no other way."""


PROGRAM = """#!PYTHON -SE
import json, os, signal, socket, sys
line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
line.connect("ADDRESS")
socket.send_fds(line, [json.dumps(["rampgate", sys.argv[1:], dict(os.environ), os.getcwd()]).encode()], [1, 2])
pid = int(line.recv(64))
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int(line.recv(64))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class Forked:
    """A process of the fork server, with `subprocess.Popen`'s ways to look at it and to end it."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        out: IO[bytes],
        err: IO[bytes],
        *,
        module: str = "rampgate",
        folder: Path = ROOT,
    ) -> None:
        """Runs `rampgate ARGUMENTS`, or `python -m module ARGUMENTS`."""
        request = [module, list(arguments), dict(environment), str(folder)]
        # Two messages come on it: the new process's id, then its exit code.
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_REQUEST)
        self._line.connect(address())
        socket.send_fds(self._line, [json.dumps(request).encode()], [out.fileno(), err.fileno()])
        self.pid = int(self._told())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, below zero for the signal that ended it; None while it runs."""
        if self.returncode is None and select.select([self._line], [], [], 0)[0]:
            self._ended()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("rampgate", timeout or 0.0)
            self._ended()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def _ended(self) -> None:
        self.returncode = int(self._told())
        self._line.close()

    def _told(self) -> bytes:
        told = self._line.recv(64)
        assert told, "the fork server is gone"
        return told


def ran(
    *words: object,
    module: str = "rampgate",
    environment: Mapping[str, str] | None = None,
    folder: Path = ROOT,
    seconds: float = 280.0,
) -> subprocess.CompletedProcess[str]:
    """Runs `python -m module WORDS` to its end, as `subprocess.run` would: with this process's environment unless
    another is given."""
    arguments = [str(word) for word in words]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = Forked(
            arguments, os.environ if environment is None else environment, out, err, module=module, folder=folder
        )
        try:
            code = process.wait(seconds)
        finally:
            process.kill()
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode())
    return subprocess.CompletedProcess([module, *arguments], code, *said)


@cache
def address() -> str:
    """Where the fork server listens: that of the whole test run, else one of this process, which ends with it."""
    if SHARED in os.environ:
        return os.environ[SHARED]
    place = str(Path(tempfile.mkdtemp(prefix="rampgate-fork-")) / "server")
    names = {name: value for name, value in os.environ.items() if not name.startswith("RAMPGATE_")}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(place)
        listener.listen(64)  # who asks before everything is imported waits
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", str(listener.fileno())],
            stdin=subprocess.PIPE,
            env=names,
            cwd=ROOT,
            start_new_session=True,
            pass_fds=[listener.fileno()],
        )

    def close() -> None:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(10)

    atexit.register(close)
    return place


def share() -> None:
    """Starts the fork server of a test run whose tests run in several processes, before these."""
    os.environ[SHARED] = address()


def program() -> str:
    """A program for scripts that call `rampgate`: what it is called with runs in a process of the fork server, with its
    streams, environment and folder, and ends with it."""
    return PROGRAM.replace("PYTHON", sys.executable).replace("ADDRESS", address())


@contextmanager
def warm_children() -> Iterator[None]:
    """Every `ChildProcess` of this process that is a `rampgate` or a stand-in comes from the fork server."""
    cold = ChildProcess._begin

    def begin(child: ChildProcess, environment: Mapping[str, str], log: IO[bytes]) -> Any:
        program, *arguments = child.command
        module = "rampgate"
        if program == sys.executable and arguments[0] == "-m":
            _, module, *arguments = arguments
        elif Path(program).name != "rampgate":
            return cold(child, environment, log)
        if module not in FORKED:
            return cold(child, environment, log)
        return Forked(arguments, environment, log, log, module=module, folder=child.folder)

    with patch.object(ChildProcess, "_begin", begin):
        yield


def keep_commands() -> None:
    """Builds a group of commands once in this process and those that it forks: typer takes 0.1 s of a core for it."""
    kept = cache(get_command)
    for place in ("typer.main.get_command", "typer.testing._get_command"):
        patch(place, kept).start()


def serve(listener: socket.socket) -> tuple[str, list[str]]:
    """Fork for each request until the test run ends. Returns, in each child, the module to run and its arguments."""
    owner, this = os.getppid(), os.getpid()
    for name in IMPORTED:
        import_module(name)
    keep_commands()
    group = typer.main.get_command(import_module("rampgate.cli").app)
    assert isinstance(group, TyperGroup)
    list(group.commands.values())  # each is built, with its module, as it is asked for
    gc.collect()
    gc.freeze()  # so that a child's collections look through none of it, and copy nothing
    woken, wake = os.pipe()  # the end of a child is one byte
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    running: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([0, listener, woken], [], [], LOOK_SECONDS)
        if woken in readable:
            os.read(woken, 1 << 12)
        if listener in readable:
            line, _ = listener.accept()
            request, streams, _, _ = socket.recv_fds(line, LONGEST_REQUEST, 2)
            module, arguments, environment, folder = json.loads(request)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for other in (woken, wake):
                    os.close(other)
                for held in (listener, line, *running.values()):
                    held.close()
                _die_with(this)
                _become(environment, folder, streams)
                return module, arguments
            for stream in streams:
                os.close(stream)
            line.send(b"%d" % pid)
            running[pid] = line
        for pid in list(running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                line = running.pop(pid)
                with suppress(OSError):  # the test may not ask any more
                    line.send(b"%d" % os.waitstatus_to_exitcode(status))
                line.close()
        if 0 in readable or os.getppid() != owner:
            for pid in running:
                os.kill(pid, signal.SIGKILL)
            os._exit(0)


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the kernel was told
        os._exit(1)


def _become(environment: Mapping[str, str], folder: str, streams: Sequence[int]) -> None:
    """Make of the forked copy what `subprocess` would have made: session, environment, folder, streams."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (streams[0], 1), (streams[1], 2)):
        os.dup2(source, target)
    for one in {nothing, *streams}:
        os.close(one)


def _leave(code: int) -> None:
    """End this process as Python would, without taking apart all that the fork server imported, which takes longer than
    most commands do. Returns where what was written can't be flushed."""
    threading._shutdown()
    atexit._run_exitfuncs()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


if __name__ == "__main__":
    name, words = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv = [name, *words]
    code = None
    try:
        if name == "rampgate":
            import_module("rampgate.cli").main()
        else:
            run_module(name, run_name="__main__")
    except SystemExit as ended:
        code = ended.code
    if code is None or isinstance(code, int):
        _leave(code or 0)
    sys.exit(code)
