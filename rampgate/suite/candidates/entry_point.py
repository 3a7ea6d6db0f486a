"""Asks a candidate's Python entry point, in processes of its own interpreter (`entry_runner.py`).

A case that hangs, crashes its process or takes too much memory costs itself alone: the next gets a fresh process.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from evalcore.gates.golden import CandidateAnswer, question
from evalcore.scoring.http_client import LONGEST_ANSWER
from evalcore.scoring.items import Failed
from rampgate.suite.candidates.processes import Started, environment, start

RUNNER: Final = Path(__file__).with_name("entry_runner.py")
HIDDEN: Final = ("schemas", "evalcore", "agents", "streams", "rampgate")
"""Our packages. The candidate's interpreter may be ours."""
GIB: Final = 1 << 30


@dataclass
class _Runner:
    started: Started
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def stop(self) -> None:
        # While it runs, what it has started is found as its child, also without an environment. At the end of its
        # cases it would end, and leave that to init.
        try:
            await self.started.kill()
        finally:
            self.writer.close()


class _Lost(Exception):
    """The process can't be used any more."""


@dataclass
class EntryPointCandidate:
    """Asks `entry`, which is `module:function` in `folder`, by its interpreter `python`; `variables` are names of the
    environment that it gets beside the usual ones; `memory` bytes of address space a process may have, 0 without a
    limit; `beside` goes with each case; `told_variables` are variables with their values. A process is started when it
    is needed; one that cannot start fails its case. Raises ValueError for a variable that a candidate may not have."""

    entry: str
    folder: Path
    python: str
    variables: tuple[str, ...] = ()
    seconds: float = 60.0
    start_seconds: float = 60.0
    memory: int = 4 * GIB
    beside: Mapping[str, Any] = field(default_factory=dict)
    told_variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._environment = environment(self.variables) | dict(self.told_variables)
        self._idle: list[_Runner] = []

    async def answer(self, item: Mapping[str, Any]) -> CandidateAnswer:
        """The candidate's answer, or why there is none. Raises nothing but CancelledError."""
        try:
            body = orjson.dumps(question(item, self.beside), default=str)
        except orjson.JSONEncodeError as error:
            return Failed(f"the case can't be sent to the candidate: {error}")
        if (refused := await self.ready()) is not None:
            return refused
        runner, usable = self._idle.pop(), False
        try:
            answer, usable = await self._asked(runner, body)
        finally:
            if usable:
                self._idle.append(runner)
            else:
                await runner.stop()
        return answer

    async def ready(self) -> Failed | None:
        """Returns once a process waits for a case, so that no answer's time has the start of one; or why none does."""
        try:
            self._idle.append(await self._alive() or await self._started())
        except (_Lost, OSError) as error:
            return Failed(f"the candidate does not start: {error}", isinstance(error, TimeoutError))
        return None

    async def _alive(self) -> _Runner | None:
        """A process that waits for a case; None where there is none. One that ended since its last case is dropped."""
        while self._idle:
            runner = self._idle.pop()
            if not runner.started.ended and not runner.reader.at_eof():
                return runner
            await runner.stop()
        return None

    @property
    def waiting(self) -> list[subprocess.Popen[bytes]]:
        """The processes that wait for a case."""
        return [runner.started.process for runner in self._idle]

    async def close(self) -> None:
        """Ends all processes."""
        while self._idle:
            await self._idle.pop().stop()

    async def _started(self) -> _Runner:
        """A process that is ready. Raises _Lost with the reason where it is not, TimeoutError, OSError."""
        ours, theirs = socket.socketpair()
        command = [self.python, "-I", "-B", str(RUNNER), str(theirs.fileno())]
        try:
            started = await start(command, self.folder, self._environment, (theirs.fileno(),))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        runner = _Runner(started, *await asyncio.open_connection(sock=ours))
        asked = {
            "entry": self.entry,
            "folder": str(self.folder.absolute()),
            "hidden": HIDDEN,
            "memory": self.memory,
        }
        ready = False
        try:
            try:
                async with asyncio.timeout(self.start_seconds):
                    said = await _exchanged(runner, orjson.dumps(asked))
            except TimeoutError:
                raise TimeoutError(f"it was not ready within {self.start_seconds:g} s") from None
            ready = said.get("ready") is True
            if not ready:
                raise _Lost(str(said.get("error") or "it says neither that it is ready nor why not"))
        finally:
            if not ready:
                await runner.stop()
        return runner

    async def _asked(self, runner: _Runner, body: bytes) -> tuple[CandidateAnswer, bool]:
        """The answer, and whether the process can take another case."""
        try:
            async with asyncio.timeout(self.seconds):
                said = await _exchanged(runner, body)
        except TimeoutError:
            return Failed(f"the candidate gave no answer in {self.seconds:g} s", may_pass=True), False
        except _Lost as error:
            return Failed(f"the candidate failed: {error}"), False
        if "error" in said:
            return Failed(f"the candidate failed: {said['error']}", bool(said.get("may_pass"))), not said.get("last")
        answer = said.get("answer")
        if isinstance(answer, str):
            return {"output": answer}, True
        if not isinstance(answer, dict) or answer.get("output") is None:
            return Failed("the candidate's answer has no output: it returns a text, or a dict with `output`"), True
        return answer, True


async def _exchanged(runner: _Runner, body: bytes) -> dict[str, Any]:
    """What the process answers. Raises _Lost where it ends, or answers with what is no frame."""
    try:
        runner.writer.write(struct.pack(">I", len(body)) + body)
        await runner.writer.drain()
        (length,) = struct.unpack(">I", await runner.reader.readexactly(4))
        if length > LONGEST_ANSWER:
            raise _Lost(f"its answer has more than {LONGEST_ANSWER >> 20} MB")
        said = orjson.loads(await runner.reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        raise _Lost(await runner.started.ending()) from None
    except orjson.JSONDecodeError as error:
        raise _Lost(f"its answer can't be read: {error}") from None
    if not isinstance(said, dict):
        raise _Lost("its answer is no object")
    return said
