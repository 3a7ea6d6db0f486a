"""How the front door speaks: one JSON document or text on stdout, annotations on stderr, and one class of failure.

It lies below the commands, the gate's reports and the local stack, which all write to the same terminal.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import Any, TypeVar

import orjson
from rich.markup import escape

from schemas.dead_letters import clean

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


def run(job: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a command's coroutine on the fast event loop."""
    import uvloop

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    return asyncio.run(job())


def print_json(document: Any) -> None:
    """Write the one JSON document of a command with `--json`."""
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode() + "\n")


def plain(text: object, limit: int = 200) -> str:
    """The text for a terminal, at most `limit` characters: no markup and no control characters of its own."""
    return escape(clean(str(text), limit))


def escape_message(text: str) -> str:
    """Escape the message of a GitHub workflow command, so that nothing in it begins a command of its own."""
    return text[:LONGEST_MESSAGE].replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape a property of a GitHub workflow command."""
    return escape_message(text).replace(":", "%3A").replace(",", "%2C")
