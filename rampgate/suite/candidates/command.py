"""Asks a candidate that is a command: one process a case, the case on its input, the answer on its output.

The case is JSON, `{input, metadata}`. The answer is a JSON object with `output`, or a text. What it writes to its error
output is shown where it fails. Exit code 75, EX_TEMPFAIL of sysexits.h, says that the next try may have an answer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from evalcore.gates.golden import CandidateAnswer, question
from evalcore.scoring.http_client import LONGEST_ANSWER
from evalcore.scoring.items import Failed
from rampgate.suite.candidates.processes import Started, environment, start


@dataclass
class CommandCandidate:
    """Runs `words` in `folder` for each case; `variables` are names of the environment that it gets beside the usual
    ones. `beside` goes with each case; `told_variables` are variables with their values. Raises ValueError for a
    variable that a candidate may not have."""

    words: Sequence[str]
    folder: Path
    variables: tuple[str, ...] = ()
    seconds: float = 60.0
    beside: Mapping[str, Any] = field(default_factory=dict)
    told_variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._environment = environment(self.variables) | dict(self.told_variables)

    async def answer(self, item: Mapping[str, Any]) -> CandidateAnswer:
        """The candidate's answer, or why there is none. Raises nothing but CancelledError."""
        try:
            body = orjson.dumps(question(item, self.beside), default=str)
        except orjson.JSONEncodeError as error:
            return Failed(f"the case can't be sent to the candidate: {error}")
        try:
            started = await start(self.words, self.folder, self._environment, answers=True)
        except OSError as error:
            return Failed(f"the candidate does not start: {error}")
        try:
            async with asyncio.timeout(self.seconds):
                return await _answered(started, body)
        except TimeoutError:
            return Failed(f"the candidate gave no answer in {self.seconds:g} s", may_pass=True)
        finally:
            await started.kill()

    async def close(self) -> None:
        """Returns at once: a process ends with its case."""


async def _answered(started: Started, body: bytes) -> CandidateAnswer:
    async with asyncio.TaskGroup() as both:
        both.create_task(_send(started.input, body))
        reading = both.create_task(_read(started.output))
    said = reading.result()
    if len(said) > LONGEST_ANSWER:
        return Failed(f"the candidate's answer has more than {LONGEST_ANSWER >> 20} MB")
    if (code := await started.code()) != 0:
        return Failed(f"the candidate failed: {await started.ending()}", code == os.EX_TEMPFAIL)
    try:
        text = said.decode()
    except UnicodeDecodeError as error:
        return Failed(f"the candidate's answer is no UTF-8: {error}")
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if isinstance(found, dict) and found.get("output") is not None:
        return found
    if isinstance(found, dict) or not text.strip():
        return Failed("the candidate's answer has no output: it prints a text, or a JSON object with `output`")
    return {"output": text}


async def _send(stream: asyncio.StreamWriter | None, body: bytes) -> None:
    """One that does not read its input may end before it is sent."""
    if stream is None:
        return
    try:
        stream.write(body)
        await stream.drain()
        stream.close()
        await stream.wait_closed()
    except ConnectionError:
        return


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    """All of it, or a part of what is too long."""
    said = bytearray()
    while stream is not None and len(said) <= LONGEST_ANSWER and (part := await stream.read(65_536)):
        said += part
    return bytes(said)
