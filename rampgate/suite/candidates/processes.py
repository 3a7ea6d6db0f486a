"""Starts a candidate's processes: with few variables of the environment, no input, and what it prints kept to its end.

A process group of its own is killed whole. That keeps accidents apart, and a candidate from our keys in the
environment; it is no wall against one that attacks: in CI the job that runs a pull request's code has no key at all.
"""

from __future__ import annotations

import asyncio
import os
import signal
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


def environment(named: Iterable[str] = ()) -> dict[str, str]:
    """Returns the variables that are allowed to all and those named. Raises ValueError for one of ours."""
    wanted = [*ALLOWED, *named]
    ours = sorted(name for name in wanted if name.startswith(OURS))
    if ours:
        raise ValueError(f"{ours[0]}: a candidate gets none of our settings; take it out of env")
    return {name: os.environ[name] for name in wanted if name in os.environ}


@dataclass
class Started:
    """A running process. `printed` is the end of what it wrote to its two outputs."""

    process: asyncio.subprocess.Process
    printed: bytearray = field(default_factory=bytearray)
    reading: asyncio.Task[None] | None = None

    async def kill(self) -> None:
        """Return once the whole group has ended."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()
        if self.reading is not None:
            self.reading.cancel()
            with suppress(asyncio.CancelledError):
                await self.reading

    async def ending(self) -> str:
        """Says how it ended and what it printed last, once it has, or that it goes on without us."""
        try:
            code = await asyncio.wait_for(self.process.wait(), PATIENCE)
        except TimeoutError:
            return "its process closed the channel and goes on"
        if self.reading is not None:
            with suppress(TimeoutError):
                # A child of its own may hold the pipe open.
                await asyncio.wait_for(asyncio.shield(self.reading), PATIENCE)
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
    """Start a process in a group of its own. One that `answers` is asked on its input and answers on its output; else
    what it prints there is kept as well. Raises OSError where it can't be started."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=variables,
        stdin=pipe if answers else asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe if answers else asyncio.subprocess.STDOUT,
        pass_fds=tuple(passed),
        start_new_session=True,
    )
    started = Started(process)
    printed = process.stderr if answers else process.stdout
    if printed is not None:
        started.reading = asyncio.create_task(_keep_last(printed, started.printed))
    return started


async def _keep_last(stream: asyncio.StreamReader, kept: bytearray) -> None:
    while part := await stream.read(65_536):
        kept += part
        del kept[:-KEPT]
