"""Writes what commands say: one JSON document or text on stdout; and the errors of commands.

The commands, the gate's reports and the local stack write through it. It imports the standard library only at its head,
because every command loads it, `rampgate --help` too.
"""

from __future__ import annotations

import gc
import getpass
import sys
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any, TypeVar

COLLECTING = (700, 10, 10)
"""Python's own thresholds of garbage collection."""
LONGEST_MESSAGE = 2_000
"""Characters of one annotation or finding."""

T = TypeVar("T")


class Failure(Exception):
    """Ends a command with exit code 2; the message names what is wrong and what to do."""


class BadQuery(ValueError):
    """A query with a wrong parameter, or one that can't be answered: `reason` says why. The text names the parameter as
    HTTP does."""

    def __init__(self, reason: str, parameter: str = "") -> None:
        super().__init__(f"{parameter}: {reason}" if parameter else reason)
        self.reason, self.parameter = reason, parameter

    def as_option(self) -> str:
        """The text for the command line, where the parameter is an option."""
        return f"--{self.parameter.replace('_', '-')}: {self.reason}" if self.parameter else self.reason


@cache
def _collect_again() -> None:
    """Leaves out what was imported, which stays: `rampgate.cli.main` put collecting off for it."""
    gc.freeze()
    gc.set_threshold(*COLLECTING)


def run(job: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a command's coroutine on the fast event loop."""
    import asyncio

    import uvloop

    _collect_again()
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    return asyncio.run(job())


def user() -> str:
    """The name of the user who runs this command, for what is audited."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def json_text(document: Any) -> str:
    """The one JSON document of a command, as `--json` prints it."""
    import orjson

    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode() + "\n"


def print_json(document: Any) -> None:
    sys.stdout.write(json_text(document))


def plain(text: object, limit: int = 200) -> str:
    """The text for a terminal, at most `limit` characters: no markup and no control characters of its own."""
    from rich.markup import escape

    return escape(_inert(str(text), limit))


def failure_text(error: object) -> str:
    """A failure as it is printed. Each of its lines begins with our name, so that no text in it, which may be a
    stranger's, begins a workflow command, and none has control characters of its own."""
    lines = str(error).splitlines() or [""]
    return "".join(f"rampgate: {_inert(line, LONGEST_MESSAGE)}\n" for line in lines)


def _inert(line: str, limit: int) -> str:
    """The line without what a CI runner takes for a command: `::` where it begins, and `##[` anywhere."""
    from schemas.dead_letters import clean

    text = clean(line, limit).replace("##[", "# #[")
    return f": {text.lstrip()[1:]}" if text.lstrip().startswith("::") else text
