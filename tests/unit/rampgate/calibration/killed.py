"""`python -m tests.unit.rampgate.calibration.killed STEP WORDS…`: the command again and again, each time killed, until
that step is done, and once more to its end.

Of each step of the round a run is killed right before, and one right after, the first file that it renames into its
place or thing that it makes in Opik, the second, and so on to the document. Each run is a process of its own, forked
from one that has imported everything. Its reads are audited nowhere. Prints how many were killed. The product has no
such switch.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

IMPORTED = ("httpx", "rampgate.calibration.cycle", "rampgate.calibration.command", "scipy.special", "scipy.stats")
MOST = 200
MADE = ("feedback-definitions", "annotation-queues")


class Silent:
    """The audit's producer."""

    async def send(self, messages: Any) -> None:
        pass

    async def close(self) -> None:
        pass


def ended(when: str, number: int, words: list[str]) -> int:
    """The exit code of a run that is killed at a rename, below zero for the signal that ended it."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 3
    try:
        _run(when, number, words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    finally:
        os._exit(code)


def _run(when: str, number: int, words: list[str]) -> None:
    from rampgate.cli import main
    from streams.opik.client import OpikClient

    seen, real, real_send = 0, Path.replace, OpikClient.send

    def killed(now: str) -> None:
        if (seen, when) == (number, now):
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(self: Path, target: Path) -> Path:
        nonlocal seen
        seen += 1
        killed("before")
        found = real(self, target)
        killed("after")
        return found

    async def sent(self: OpikClient, method: str, path: str, *more: Any, **named: Any) -> bytes:
        nonlocal seen
        if method == "GET" or not path.startswith(MADE):
            return await real_send(self, method, path, *more, **named)
        seen += 1
        killed("before")
        found = await real_send(self, method, path, *more, **named)
        killed("after")
        return found

    with (
        patch.object(Path, "replace", counted),
        patch.object(OpikClient, "send", sent),
        patch("rampgate.wiring.Producer", lambda access: Silent()),
        patch.object(sys, "argv", ["rampgate", *words]),
    ):
        main()


def document() -> bytes:
    """The round's document as it is; empty before there is one."""
    return b"".join(path.read_bytes() for path in Path("specs").rglob("cycle.json"))


def done(step: str) -> bool:
    steps = json.loads(document() or b"{}").get("steps", {})
    return bool(steps.get(step, {}).get("state") == "done")


def to_its_end(step: str, words: list[str]) -> int:
    kills, number, code = 0, 1, 0
    while kills < MOST:
        known = document()
        if done(step):
            code = ended("never", 0, words)
            break
        for when in ("before", "after"):
            code = ended(when, number, words)
            if code != -signal.SIGKILL:
                break
            kills += 1
        if code != -signal.SIGKILL:
            break
        number = 1 if document() != known else number + 1
    sys.stderr.write(f"killed {kills} times\n")
    return code


if __name__ == "__main__":
    for name in IMPORTED:
        import_module(name)
    sys.exit(to_its_end(sys.argv[1], sys.argv[2:]))
