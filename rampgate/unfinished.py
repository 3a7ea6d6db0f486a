"""Keeps the answers of a run that has not ended, so that a killed one goes on where it was and asks nothing twice.

They stand beside what the run makes, in a file of its own for each set of inputs: judges with their versions, items,
model, what is asked for. It holds hashes and scores, and no text. A run that ends takes its file away: the next one
reaches the model, whatever is kept, and so does one that begins half a day later.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from glob import escape
from pathlib import Path

from evalcore.registry.judge import digest
from evalcore.scoring.cache import MemoryScoreCache, ScoreCache

SUFFIX = ".unfinished"
LONGEST = 12 * 3_600.0
"""Seconds after which a run that did not end is forgotten: a hosted model may be another one by then."""


@dataclass
class Part:
    """The answers of one part of a run, such as its second round. A ScoreCache."""

    name: str
    file: int | None
    held: dict[str, str] = field(default_factory=dict)

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return [said.encode() if (said := self.held.get(key)) is not None else None for key in keys]

    async def put(self, key: str, value: bytes) -> bytes | None:
        if (earlier := self.held.get(key)) is not None:
            return earlier.encode()
        self.held[key] = value.decode()
        if self.file is not None:
            try:
                _append(self.file, f"{json.dumps([self.name, key, value.decode()])}\n".encode())
            except OSError as error:
                # The run itself goes on. What comes later is not kept either: what is kept has no gap.
                self.file = None
                sys.stderr.write(f"no more is kept for a run that goes on after this one: {error.strerror or error}\n")
        return None


class Unfinished:
    """One run's file. Without one, where none can be written or another run has it, answers are kept for no one.

    `began`: when the run did, in seconds, also where it was killed since then.
    """

    def __init__(
        self,
        began: float,
        path: Path | None = None,
        file: int | None = None,
        held: dict[str, dict[str, str]] | None = None,
    ) -> None:
        self.began, self._path, self._file, self._held = began, path, file, held or {}

    @property
    def answers(self) -> int:
        """How many answers there are, an earlier run's too."""
        return sum(len(part) for part in self._held.values())

    @property
    def name(self) -> str:
        """The run's: another one has another, and the same one has the same after a kill."""
        return digest([str(self._path), self.began, None if self._file is not None else os.getpid()])

    def beside(self, kind: str) -> Path | None:
        """A place for what the run makes meanwhile, which is forgotten with it; None where nothing is kept."""
        return self._path.with_suffix(f".{kind}{SUFFIX}") if self._path is not None else None

    def begin_anew(self) -> None:
        """Forget the earlier run's answers: what it made is not there."""
        self._held.clear()
        if self._file is not None:
            self.began = time.time()
            _begin(self._file, self.began)

    def part(self, name: str) -> ScoreCache:
        if self._file is None:
            return MemoryScoreCache()
        return Part(name, self._file, self._held.setdefault(name, {}))


@contextmanager
def unfinished(
    beside: Path | None, *inputs: object, now: Callable[[], float] = time.time, what: str = "answers"
) -> Iterator[Unfinished]:
    """The answers that a killed run with the same inputs left beside the file, for this one to go on with. They are
    taken away when the context ends without an error. `what` they are called."""
    opened = _opened(beside, digest(list(inputs)), now) if beside is not None else None
    if opened is None:
        yield Unfinished(now())
        return
    path, file, began = opened
    try:
        try:
            held, began = _read(file, began, now())
        except OSError as error:
            _told(path, error)
            yield Unfinished(now())
            return
        work = Unfinished(began, path, file, held)
        if work.answers:
            at = datetime.fromtimestamp(began, UTC).isoformat(timespec="minutes")
            sys.stderr.write(
                f"goes on with {work.answers} {what} of a run that began at {at} and did not end; "
                f"to begin again delete {path}\n"
            )
        try:
            yield work
        except BaseException:
            if not work.answers:
                path.unlink(missing_ok=True)
            raise
        path.unlink(missing_ok=True)
    finally:
        os.close(file)


def _opened(beside: Path, inputs: str, now: Callable[[], float]) -> tuple[Path, int, float] | None:
    """The run's file, which is this process's alone; None where there can be none, which stderr says."""
    path = beside.with_name(f".{beside.name}.{inputs[:12]}{SUFFIX}")
    try:
        for other in path.parent.glob(f".{escape(beside.name)}.*{SUFFIX}"):
            if other.stat().st_mtime < now() - LONGEST:
                other.unlink(missing_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        _told(path, error)
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        sys.stderr.write(f"{path}: another run asks the same, and goes on by itself\n")
        return None
    return path, file, now()


def _read(file: int, began: float, now: float) -> tuple[dict[str, dict[str, str]], float]:
    """What the file has, and when its run began. A line that a kill cut off is left out; a file that is too old or no
    run's is emptied."""
    with os.fdopen(os.dup(file), "rb") as reader:
        reader.seek(0)
        head, *lines = reader.read().split(b"\n")
    known = _number(head)
    if known is None or not now - LONGEST <= known <= now:
        _begin(file, began)
        return {}, began
    held: dict[str, dict[str, str]] = {}
    for line in lines:
        try:
            part, key, value = json.loads(line)
        except ValueError:
            continue
        held.setdefault(part, {})[key] = value
    _append(file, b"\n")  # what a kill cut off stays a line of its own
    return held, known


def _begin(file: int, began: float) -> None:
    os.ftruncate(file, 0)
    _append(file, f"{began!r}\n".encode())


def _append(file: int, content: bytes) -> None:
    """Write all of it: a disk that is nearly full takes a part, and says so at the next. Raises OSError."""
    while content:
        content = content[os.write(file, content) :]


def _told(path: Path, error: OSError) -> None:
    sys.stderr.write(f"{path}: can't be written, so a run that is killed begins again: {error.strerror or error}\n")


def _number(head: bytes) -> float | None:
    try:
        return float(head)
    except ValueError:
        return None
