"""Starts `rampgate …` in processes forked from one that has imported everything.

A worker's imports cost seconds of a core, and a test run starts hundreds of workers. The parent runs as
`python -m tests.fork_server SOCKET`, has one thread, and forks for each request; the child is a `rampgate` process like
any other: a session, an environment, standard streams and an exit of its own. Tests that measure a start, or what it
imports, use `subprocess` instead.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO

from tests.root import ROOT

IMPORTED = (
    "boto3", "rampgate.cli", "rampgate.worker.feed", "rampgate.worker.process", "rampgate.worker.sweep",
    "scipy.special", "uvloop",
)  # fmt: skip
LONGEST_REQUEST = 1 << 20


class Forked:
    """A process of the fork server, with `subprocess.Popen`'s ways to look at it and to end it."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], out: IO[bytes], err: IO[bytes]
    ) -> None:
        self._line = _server().ask(arguments, environment, (out.fileno(), err.fileno()))
        self.pid = int(self._line.recv(64))
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
        told = self._line.recv(64)
        assert told, "the fork server is gone"
        self.returncode = int(told)
        self._line.close()


class _Server:
    """The parent, as its clients see it: started at the first request, ended with this process."""

    def __init__(self) -> None:
        self._address = str(Path(tempfile.mkdtemp(prefix="rampgate-fork-")) / "server")
        names = {name: value for name, value in os.environ.items() if not name.startswith("RAMPGATE_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", self._address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=names,
            cwd=ROOT,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", "the fork server does not start"
        atexit.register(self._close)

    def ask(self, arguments: Sequence[str], environment: Mapping[str, str], streams: Sequence[int]) -> socket.socket:
        """A line on which two messages come: the new process's id, then its exit code."""
        line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_REQUEST)
        line.connect(self._address)
        request = json.dumps([list(arguments), dict(environment)]).encode()
        socket.send_fds(line, [request], list(streams))
        return line

    def _close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


_started: list[_Server] = []


def _server() -> _Server:
    if not _started:
        _started.append(_Server())
    return _started[0]


def serve(address: str) -> list[str]:
    """Fork for each request until standard input ends. Returns, in each child, the arguments of its `rampgate`."""
    for name in IMPORTED:
        import_module(name)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    gc.collect()
    gc.freeze()  # so that a child's collections copy nothing
    os.write(1, b"ready\n")
    running: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([0, listener], [], [], 0.02 if running else None)
        if listener in readable:
            line, _ = listener.accept()
            request, streams, _, _ = socket.recv_fds(line, LONGEST_REQUEST, 2)
            arguments, environment = json.loads(request)
            pid = os.fork()
            if pid == 0:
                listener.close()
                for other in (line, *running.values()):
                    other.close()
                _become(environment, streams)
                return [str(one) for one in arguments]
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
        if 0 in readable:
            for pid in running:
                os.kill(pid, signal.SIGKILL)
            os._exit(0)


def _become(environment: Mapping[str, str], streams: Sequence[int]) -> None:
    """Make of the forked copy what `subprocess` would have made: session, environment, streams."""
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (streams[0], 1), (streams[1], 2)):
        os.dup2(source, target)
    for one in {nothing, *streams}:
        os.close(one)
    gc.unfreeze()


if __name__ == "__main__":
    sys.argv = ["rampgate", *serve(sys.argv[1])]
    import_module("rampgate.cli").main()
