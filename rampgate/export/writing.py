"""Writes an export's lines: to stdout page by page, or to a file that appears whole (contracts §5).

Meanwhile the file's lines stand beside it, and a note after each page says how far they are good. The same command goes
on behind the last good page of an export that was killed: in its window, under its name, and nothing is doubled.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import orjson

from evalcore.scoring.cache import MemoryScoreCache, ScoreCache
from rampgate.export.lines import encoded
from rampgate.files import replacing
from rampgate.unfinished import Unfinished, unfinished

PAGES: Final = "pages"


class Unread(Exception):
    """No one reads stdout any more."""


@dataclass
class Written:
    """What was exported so far, by this process or by a killed one before it, of a window that ends at `until_ms`.

    `name`: the export's, the same after a kill. `seen`: the response of each line. `after`: the trace behind which to
    resume; `record`: the hash of the last page's audit record.
    """

    name: str
    until_ms: int
    write: Callable[[bytes], object]
    notes: ScoreCache = field(default_factory=MemoryScoreCache)
    lines: int = 0
    pages: int = 0
    without_text: int = 0
    after: str = ""
    record: str = ""
    seen: set[str] = field(default_factory=set)
    _digest: Any = field(default_factory=hashlib.sha256)
    _bytes: int = 0

    @property
    def sha256(self) -> str:
        return str(self._digest.hexdigest())

    async def add(
        self, lines: Sequence[dict[str, Any]], *, after: str = "", without_text: int = 0, record: str = ""
    ) -> None:
        """Write a page of lines, of which the audit has a record, and then the note that they are there."""
        content = encoded(lines)
        self.write(content)
        self._count(content, len(lines))
        self.pages += 1
        self.without_text += without_text
        self.after, self.record = after, record
        note = {
            "bytes": self._bytes, "sha256": self.sha256, "lines": self.lines, "without_text": self.without_text,
            "after": after, "record": record,
        }  # fmt: skip
        await self.notes.put(str(self.pages), orjson.dumps(note))

    async def go_on(self, file: IO[bytes]) -> bool:
        """Take over the lines that stand in the file, as far as the last note has them; what is behind them is cut off.
        False where the file is not what the note says."""
        note = None
        while (found := (await self.notes.get_many([str(self.pages + 1)]))[0]) is not None:
            note, self.pages = orjson.loads(found), self.pages + 1
        file.seek(0)
        while note is not None and self._bytes < note["bytes"] and (line := file.readline()):
            self._count(line, 1)
            self.seen.add(orjson.loads(line)["response_id"])
        good = note is None or (self._bytes, self.sha256) == (note["bytes"], note["sha256"])
        if good and note is not None:
            self.without_text, self.after, self.record = note["without_text"], note["after"], note["record"]
        file.truncate(self._bytes if good else 0)
        file.seek(0, os.SEEK_END)
        return good

    def _count(self, content: bytes, lines: int) -> None:
        self._digest.update(content)
        self._bytes += len(content)
        self.lines += lines


def to_stdout(name: str, until_ms: int) -> Written:
    """Lines go to stdout, and nothing of them is kept. Raises Unread when no one reads them any more."""

    def write(content: bytes) -> None:
        try:
            sys.stdout.write(content.decode())
            sys.stdout.flush()
        except BrokenPipeError as error:
            # What is left in its buffer goes nowhere, in silence, when the interpreter ends.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
            raise Unread from error

    return Written(name, until_ms, write)


@asynccontextmanager
async def to_file(output: Path, *inputs: object) -> AsyncIterator[Written]:
    """Lines go to a file, which is there when the context ends well. When it does not, they are kept for the next
    export with the same `inputs`. `output` is no link. Raises OSError."""
    with unfinished(output, *inputs, what="pages of lines") as work:
        held = work.beside("lines")
        with replacing(output, held) as file:
            written = await _begun(work, file)
            try:
                yield written
            except BaseException:
                _left(output, held, written)
                raise


async def _begun(work: Unfinished, file: IO[bytes]) -> Written:
    """What is there of a killed export, else the beginning of one."""

    def write(content: bytes) -> None:
        file.write(content)
        file.flush()

    def begun() -> Written:
        return Written(work.name, int(work.began * 1000), write, work.part(PAGES))

    written = begun()
    try:
        if await written.go_on(file):
            return written
    except (orjson.JSONDecodeError, KeyError, TypeError):
        file.truncate(0)
        file.seek(0)
    sys.stderr.write("the lines that an earlier export noted are not there, so this one begins again\n")
    work.begin_anew()
    return begun()


def _left(output: Path, held: Path | None, written: Written) -> None:
    if held is None:
        return
    if written.lines == 0:
        held.unlink(missing_ok=True)
    else:
        sys.stderr.write(
            f"{output}: {written.lines:,} lines are kept beside it for half a day; the same command goes on there\n"
        )
