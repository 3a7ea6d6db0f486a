"""How commands speak: one JSON document or text on stdout, annotations on stderr, and one class of failure.

The commands, the gate's reports and the local stack all write through it. It imports the standard library only: every
command loads it, `rampgate --help` too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import Any, TypeVar

ANNOTATIONS_PER_LEVEL = 10
"""GitHub shows this many annotations of a level for each step of a job and drops the rest silently."""
LONGEST_MESSAGE = 2_000
"""Characters of one annotation or finding."""

T = TypeVar("T")


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


class Failure(Exception):
    """Ends a command with exit code 2; the message names what is wrong and what to do."""


class BadQuery(ValueError):
    """A query that can't be answered as it was asked: `reason` says why, `parameter` which part of it is wrong, if one
    is. Its text names the parameter as HTTP does."""

    def __init__(self, reason: str, parameter: str = "") -> None:
        super().__init__(f"{parameter}: {reason}" if parameter else reason)
        self.reason, self.parameter = reason, parameter

    def as_option(self) -> str:
        """The text for the command line, where the parameter is an option."""
        return f"--{self.parameter.replace('_', '-')}: {self.reason}" if self.parameter else self.reason


def run(job: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a command's coroutine on the fast event loop."""
    import asyncio

    import uvloop

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    return asyncio.run(job())


def print_json(document: Any) -> None:
    """Write the one JSON document of a command with `--json`."""
    import orjson

    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode() + "\n")


def plain(text: object, limit: int = 200) -> str:
    """The text for a terminal, at most `limit` characters: no markup and no control characters of its own."""
    from rich.markup import escape

    from schemas.dead_letters import clean

    return escape(clean(str(text), limit))


def escape_message(text: str) -> str:
    """Escape the message of a GitHub workflow command, so that nothing in it begins a command of its own."""
    return text[:LONGEST_MESSAGE].replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape a property of a GitHub workflow command."""
    return escape_message(text).replace(":", "%3A").replace(",", "%2C")
