"""`python -m tests.unit.rampgate.calibration.killed WORDS…`: the command again and again, each time killed, to its end.

Of each step of the round a run is killed right before, and one right after, the first file that it renames into its
place, the second, and so on to the document. Each run is a process of its own, forked from one that has imported
everything. Prints how many were killed. The product has no such switch.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

IMPORTED = ("httpx", "rampgate.calibration.cycle", "rampgate.cli.calibrate", "scipy.special", "scipy.stats")
MOST = 200


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

    seen, real = 0, Path.replace

    def counted(self: Path, target: Path) -> Path:
        nonlocal seen
        seen += 1
        if (seen, when) == (number, "before"):
            os.kill(os.getpid(), signal.SIGKILL)
        found = real(self, target)
        if (seen, when) == (number, "after"):
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    with patch.object(Path, "replace", counted), patch.object(sys, "argv", ["rampgate", *words]):
        main()


def document() -> bytes:
    """The round's document as it is; empty before there is one."""
    return b"".join(path.read_bytes() for path in Path("specs").rglob("cycle.json"))


def to_its_end(words: list[str]) -> int:
    kills, number, code = 0, 1, 0
    while kills < MOST:
        known = document()
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
    sys.exit(to_its_end(sys.argv[1:]))
