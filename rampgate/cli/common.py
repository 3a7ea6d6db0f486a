"""What every command shares: settings with flags, output in one of two forms, failures with one exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import orjson

T = TypeVar("T")


class Failure(Exception):
    """Ends a command with exit code 2; the message names what is wrong and what to do."""


def run(job: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a command's coroutine on the fast event loop."""
    import uvloop

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    return asyncio.run(job())


def print_json(document: Any) -> None:
    """The one JSON document of a command with `--json`."""
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode() + "\n")
