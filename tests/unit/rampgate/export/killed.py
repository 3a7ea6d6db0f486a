"""`python -m tests.unit.rampgate.export.killed FOLDER`: an export killed at each of its steps, then run to
its end.

A step is a record's way to the audit topic, the write of a page (whole, and half of it), its note, the rename of the
file and the end of the notes; a process is killed right before it and right after it. Each process is forked from one
that has imported everything. Prints a line of JSON for each kill: what stood there then, and what at the end. The
product has no such switch.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import orjson

from evalcore.selection.where import parse_where
from rampgate.export.audited import audited
from rampgate.export.lines import line
from rampgate.export.writing import Written, to_file
from rampgate.unfinished import Part
from schemas.answers import TurnView
from schemas.verticals import TraceLayout
from streams.kafka.client import Producer
from streams.queries.audit import Audit
from tests.memory_ports import ManualClock
from tests.unit.rampgate.export.session_turns import answered, each, pages_of

MANY, SIZE = 14, 4
NEVER = 0
ALL = parse_where('vertical = "receipts"')
VIEWS = [answered(f"r-{number}", 2 * number + 100 * (number // 3), said=str(number // 3)) for number in range(MANY)]


class Killer:
    """Kills this process at a step, counted from 1."""

    def __init__(self, at: int) -> None:
        self._at, self._steps = at, count(1)

    def step(self, before: Callable[[], object] = lambda: None) -> None:
        if next(self._steps) == self._at:
            before()
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def around(self) -> Iterator[None]:
        self.step()
        yield
        self.step()


class Topic:
    """The audit topic, in a file."""

    def __init__(self, file: Path, killer: Killer) -> None:
        self._file, self._killer = file, killer

    async def send(self, messages: Any) -> None:
        with self._killer.around(), self._file.open("ab") as file:
            file.write(b"".join(value + b"\n" for _, _, value, _ in messages))


async def export(folder: Path, killer: Killer) -> None:
    audit = Audit(cast(Producer, Topic(folder / "topic", killer)), "audit", ManualClock())
    async with to_file(folder / "out.jsonl", "export") as written:
        real = written.write

        def write(content: bytes) -> None:
            killer.step(lambda: real(content[: len(content) // 2]))
            with killer.around():
                real(content)

        written.write = write
        named: dict[str, Any] = {
            "caller": "c", "vertical": "receipts", "query": {"export": written.name}, "limit": None,
            "seen": written.seen, "number": written.pages,
        }  # fmt: skip
        await _turns(written, audit, named)
    (folder / "name").write_text(written.name)


async def _turns(written: Written, audit: Audit, named: dict[str, Any]) -> None:
    async for page in audited(each(pages_of(_behind(written.after), SIZE)), ALL, audit, **named):
        await written.add([line(view, TraceLayout()) for view in page], after=str(page[-1].trace["id"]))


def _behind(after: str) -> list[TurnView]:
    return [view for view in VIEWS if not after or str(view.trace["id"]) < after]


def ended(folder: Path, at: int) -> int:
    """The exit code of a process that exports and is killed at that step, below zero for the signal."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 3
    try:
        _patched(folder, Killer(at))
        code = 0
    finally:
        os._exit(code)


def _patched(folder: Path, killer: Killer) -> None:
    put, replace, unlink = Part.put, Path.replace, Path.unlink

    async def killed_put(self: Part, key: str, value: bytes) -> bytes | None:
        with killer.around():
            return await put(self, key, value)

    def killed_replace(self: Path, target: Path) -> Path:
        with killer.around():
            return replace(self, target)

    def killed_unlink(self: Path, missing_ok: bool = False) -> None:
        with killer.around():
            unlink(self, missing_ok=missing_ok)

    with (
        patch.object(Part, "put", killed_put),
        patch.object(Path, "replace", killed_replace),
        patch.object(Path, "unlink", killed_unlink),
    ):
        asyncio.run(export(folder, killer))


def uncovered(lines: list[dict[str, Any]], records: list[dict[str, Any]], cut: bool) -> int:
    """How many of the lines no record of theirs tells of: a record is a page's, the last of it counts, and pages come
    one after another. `cut`: of the last page a part may be there."""
    last = {record["query"]["page"]: record for record in records}
    at = 0
    for page in sorted(last):
        size, record = 1, last[page]
        while at + size <= len(lines) and _told(lines[at : at + size]) != (
            record["count"], record["response_ids_sha256"],
        ):  # fmt: skip
            size += 1
        if at + size > len(lines):
            at += min(len(lines) - at, record["count"]) if cut and page == max(last) else 0
            break
        at += size
    return len(lines) - at


def _told(lines: list[dict[str, Any]]) -> tuple[int, str]:
    ids = sorted({one["response_id"] for one in lines})
    return len(ids), hashlib.sha256("\n".join(ids).encode()).hexdigest()


def state(folder: Path) -> dict[str, Any]:
    file, held = folder / "out.jsonl", sorted(folder.glob(".out.jsonl.*.lines.unfinished"))
    known = file if file.exists() else held[0] if held else None
    content = known.read_bytes() if known else b""
    whole = content[: content.rfind(b"\n") + 1]
    topic = folder / "topic"
    records = [orjson.loads(one) for one in topic.read_bytes().splitlines()] if topic.exists() else []
    named = folder / "name"
    mine = [one for one in records if not named.exists() or one["query"]["export"] == named.read_text()]
    lines = [orjson.loads(one) for one in whole.splitlines()]
    return {
        "final": file.exists(), "uncovered": uncovered(lines, mine, not file.exists()), "lines": len(lines),
        "names": len({one["query"]["export"] for one in records}),
        "sha256": hashlib.sha256(whole).hexdigest(), "hidden": [path.name for path in folder.glob(".*")],
        "records": len({one["query"]["page"] for one in mine}), "sent": len(records),
    }  # fmt: skip


def main(folder: Path) -> None:
    for at in count():
        place = folder / str(at)
        place.mkdir()
        code = ended(place, at)
        killed = state(place)
        again = ended(place, NEVER) if at != NEVER else code
        print(json.dumps({"at": at, "code": code, "killed": killed, "again": again, "end": state(place)}))
        if at != NEVER and code != -signal.SIGKILL:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
