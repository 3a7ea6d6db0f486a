"""Runs a child process with a log file, a health check and signals, which never outlives its owner."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from rampgate.local.services.janitor import JANITOR

Probe = Callable[[], bool]
_POLL_SECONDS = 0.03
_LOG_LINES = 15


class ServiceUnavailable(RuntimeError):
    """A service can't start or has ended; the message says which one, why, and what to do about it."""

    def __init__(self, service: str, reason: str, remedy: str) -> None:
        super().__init__(f"{service} is unavailable: {reason}\n  remedy: {remedy}")
        self.service = service
        self.reason = reason
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[ServiceUnavailable], tuple[str, str, str]]:
        return type(self), (self.service, self.reason, self.remedy)


class ChildProcess:
    """One command that can be started again and again in the same folder, logging to `<folder>/<name>.log`."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        remedy: str = "read the log above; if the port was taken, start again",
    ) -> None:
        self.name = name
        self.command = list(command)
        self.folder = folder
        self.log_file = folder / f"{name}.log"
        self._environment = dict(environment or {})
        self._remedy = remedy
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """None unless it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def running(self) -> bool:
        return self.pid is not None

    def start(self) -> None:
        """Start the process without waiting (see `wait_ready`). Leaves a running one alone."""
        if self.running:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            self._process = self._begin({**os.environ, **self._environment}, log)
        JANITOR.watch(f"pid {self._process.pid}")

    def _begin(self, environment: Mapping[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the command in a session of its own: a Ctrl-C in the terminal must reach us first, not the services."""
        return subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env=environment,
            start_new_session=True,
        )

    def wait_ready(self, probe: Probe, timeout: float) -> None:
        """Block until `probe` returns True. An OSError of the probe means "not yet".

        Raises ServiceUnavailable with the log's tail when the process ends or `timeout` seconds have passed.
        """
        began = time.monotonic()
        while True:
            if not self.running:
                code = self._process.returncode if self._process is not None else None
                raise self._unavailable("was never started" if code is None else f"ended with exit code {code}")
            try:
                if probe():
                    return
            except OSError:
                pass
            if time.monotonic() - began > timeout:
                raise self._unavailable(f"not ready after {timeout:g} s")
            time.sleep(_POLL_SECONDS)

    def log_tail(self, lines: int = _LOG_LINES) -> str:
        try:
            return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def stop(self, grace: float = 10.0) -> None:
        """Send TERM, and KILL after `grace` seconds. Does nothing when it isn't running."""
        self.resume()  # a stopped process doesn't see TERM
        self._end(signal.SIGTERM, grace)

    def kill(self) -> None:
        """Send SIGKILL, like a crash; return when the process has ended."""
        self._end(signal.SIGKILL, 10.0)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _end(self, number: signal.Signals, grace: float) -> None:
        process = self._process
        if process is None:
            return
        self._signal(number)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            process.wait()
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # what the service itself may have started
        JANITOR.release(f"pid {process.pid}")

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)  # does nothing once the process has been reaped

    def _unavailable(self, reason: str) -> ServiceUnavailable:
        log = "\n".join(f"    {line}" for line in self.log_tail().splitlines())
        return ServiceUnavailable(
            self.name, f"{reason}; the end of {self.log_file}:\n{log or '    (empty)'}", self._remedy
        )
