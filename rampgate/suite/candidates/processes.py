"""Starts a candidate's processes: with few variables of the environment, and what it prints kept to its end.

A process is killed with its group and with all that descends from it, in whichever session: each has a mark in its
environment. That keeps accidents apart, and a candidate from our keys in the environment; it is no wall against one
that attacks: in CI the job that runs a pull request's code has no key at all.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ALLOWED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that a candidate gets unasked."""
OURS: Final = "RAMPGATE_"
PATIENCE: Final = 2.0
"""Seconds for a process to end whose channel is closed."""
KEPT: Final = 4_000
"""Bytes of what a candidate printed last."""
MARK: Final = "CANDIDATE_PROCESS"
"""The variable by which what a process has started is found, also where it left the group and lost its parent."""
ROUNDS: Final = 20
"""Looks for what is left: it may start more while it is ended."""


def environment(named: Iterable[str] = ()) -> dict[str, str]:
    """Returns the variables that are allowed to all and those named. Raises ValueError for one of ours."""
    wanted = [*ALLOWED, *named]
    ours = sorted(name for name in wanted if name.startswith(OURS))
    if ours:
        raise ValueError(f"{ours[0]}: a candidate gets none of our settings; take it out of `environment`")
    return {name: os.environ[name] for name in wanted if name in os.environ}


@dataclass
class Started:
    """A running process. `printed` is the end of what it wrote to its outputs, but for the one that it answers on.

    Its pipes are ours, so that no child of its own that holds one open keeps us waiting.
    """

    process: subprocess.Popen[bytes]
    input: asyncio.StreamWriter | None = None
    output: asyncio.StreamReader | None = None
    printed: bytearray = field(default_factory=bytearray)
    pipes: list[asyncio.BaseTransport] = field(default_factory=list)
    reading: asyncio.Task[None] | None = None
    mark: str = ""

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    async def kill(self) -> None:
        """Return once the process and all that descends from it has ended, and nothing of it is left open."""
        await asyncio.to_thread(self._end)
        for pipe in self.pipes:
            pipe.close()
        if self.reading is not None:
            self.reading.cancel()
            await asyncio.gather(self.reading, return_exceptions=True)

    def _end(self) -> None:
        killed = set[int]()
        for round_ in range(ROUNDS):
            ended, mark = self.ended, f"{MARK}={self.mark}".encode()
            left = _descendants(self.process.pid if not ended else None, mark)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            for one in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(one, signal.SIGKILL)
            self.process.wait()
            killed.update(left)
            if ended and not left and not any(map(_runs, killed)):
                return
            time.sleep(round_ * 0.01)  # a busy machine takes its time to end what was killed

    async def code(self) -> int | None:
        """Its exit code, soon after its channel was closed; None where it goes on all the same."""
        try:
            return await asyncio.to_thread(self.process.wait, PATIENCE)
        except subprocess.TimeoutExpired:
            return None

    async def ending(self) -> str:
        """Says how it ended and what it printed last, once it has, or that it goes on without us."""
        code = await self.code()
        if code is None:
            return "its process closed the channel and goes on"
        if self.reading is not None:
            await asyncio.wait([self.reading], timeout=PATIENCE)
        how = f"ended with {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
        last = bytes(self.printed).decode(errors="replace").strip()
        return f"its process {how}" + (f"; it printed last:\n{last}" if last else "")


async def start(
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    passed: Sequence[int] = (),
    *,
    answers: bool = False,
) -> Started:
    """Start a process in a group of its own, with a mark in its environment. One that `answers` is asked on its input
    and answers on its output; else what it prints there is kept as well. Raises OSError where it can't be started."""
    pipes = [os.pipe() for _ in range(3 if answers else 1)]
    printed, *channel = pipes
    ours = [printed[0], *((channel[0][1], channel[1][0]) if answers else ())]
    outputs = (channel[0][0], channel[1][1], printed[1]) if answers else (subprocess.DEVNULL, printed[1], printed[1])
    mark = uuid.uuid4().hex
    try:
        started = Started(_begun(command, folder, {**variables, MARK: mark}, passed, outputs), mark=mark)
    except BaseException:
        for mine in ours:
            os.close(mine)
        raise
    finally:
        for end in {end for pipe in pipes for end in pipe} - set(ours):
            os.close(end)
    try:
        started.reading = asyncio.create_task(_keep_last(await _reader(started, printed[0]), started.printed))
        if answers:
            started.input = await _writer(started, channel[0][1])
            started.output = await _reader(started, channel[1][0])
    except BaseException:
        await started.kill()
        raise
    return started


def _descendants(root: int | None, mark: bytes) -> list[int]:
    """The running processes that descend from `root`, or have the mark. Where the system has no /proc, none."""
    children: dict[int, list[int]] = {}
    found, ended = set[int](), set[int]()
    for one in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (one / "stat").read_bytes().rpartition(b")")[2].split()[:2]
            children.setdefault(int(parent), []).append(int(one.name))
            if state in (b"Z", b"X"):
                ended.add(int(one.name))
            elif mark in (one / "environ").read_bytes().split(b"\0"):
                found.add(int(one.name))
        except OSError:
            continue  # it has ended, or is another user's
    waiting = [root] if root is not None else []
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting += below
    return sorted(found - ended - {root})


def _runs(one: int) -> bool:
    try:
        return Path("/proc", str(one), "stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def _begun(
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    passed: Sequence[int],
    three: tuple[int, int, int],
) -> subprocess.Popen[bytes]:
    """The process. It blocks for some milliseconds: in a thread, one who gives up meanwhile would leave it behind."""
    stdin, stdout, stderr = three
    return subprocess.Popen(
        command, cwd=folder, env=variables, pass_fds=passed, start_new_session=True,
        stdin=stdin, stdout=stdout, stderr=stderr,
    )  # fmt: skip


async def _reader(started: Started, end: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(end, "rb"))
    started.pipes.append(pipe)
    return reader


async def _writer(started: Started, end: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    pipe, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(end, "wb"))
    started.pipes.append(pipe)
    return asyncio.StreamWriter(pipe, protocol, None, loop)


async def _keep_last(stream: asyncio.StreamReader, kept: bytearray) -> None:
    while part := await stream.read(65_536):
        kept += part
        del kept[:-KEPT]
