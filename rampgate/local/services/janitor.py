"""Removes temporary folders and processes after their owner has ended, even by SIGKILL.

The owner holds a pipe to a small process in a session of its own, and writes into it what it made and what it removed.
When the pipe closes, that process kills and deletes the rest. This file imports the standard library only, because it
also runs as a script.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

_SWEEP_SECONDS = 20.0


class Janitor:
    """One for each process; starts with the first thing to watch and ends with the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._things: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def watch(self, thing: str) -> None:
        """Watch `pid N` (the leader of a process group) or `folder PATH`."""
        with self._lock:
            if self._owner != os.getpid():  # first use, or a fork: the parent's list isn't ours
                self._owner, self._process, self._things = os.getpid(), None, set()
            self._things.add(thing)
            if self._process is None or self._process.poll() is not None:
                self._process = self._start()
                for known in self._things:
                    self._say("+", known)
            else:
                self._say("+", thing)

    def release(self, thing: str) -> None:
        with self._lock:
            if self._owner != os.getpid() or thing not in self._things:
                return
            self._things.remove(thing)
            self._say("-", thing)
            if not self._things and self._process is not None:
                process, self._process = self._process, None
                if process.stdin is not None:
                    process.stdin.close()
                process.wait(_SWEEP_SECONDS)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def _say(self, sign: str, thing: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(f"{sign}{thing}\n".encode())
            self._process.stdin.flush()
        except OSError:
            self._process = None  # it was killed; the next `watch` starts another with the whole list


JANITOR = Janitor()


def make_folder(prefix: str = "rampgate-") -> Path:
    """Make a temporary folder that is removed when this process ends, or before."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    JANITOR.watch(f"folder {folder}")
    return folder


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():  # else it stays on the list, and is tried again when this process ends
        JANITOR.release(f"folder {folder}")


def main(owner: int) -> None:
    things: set[str] = set()
    rest = b""
    while True:
        ready, _, _ = select.select([0], [], [], 1.0)
        if not ready:
            if os.getppid() != owner:  # a fork of the owner may hold the pipe open after the owner's death
                break
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            thing = line[1:].decode()
            things.add(thing) if line.startswith(b"+") else things.discard(thing)
    _sweep(things)


def _sweep(things: set[str]) -> None:
    for thing in things:
        kind, _, name = thing.partition(" ")
        if kind == "pid":
            with contextlib.suppress(OSError):
                os.killpg(int(name), signal.SIGKILL)
    folders = [thing.partition(" ")[2] for thing in things if thing.startswith("folder ")]
    deadline = time.monotonic() + _SWEEP_SECONDS
    while folders and time.monotonic() < deadline:  # a dying process may still write into its folder
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        folders = [folder for folder in folders if os.path.lexists(folder)]
        time.sleep(0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]))
