"""What every command shares: settings with flags, output in one of two forms, failures with one exit code.

Options that several commands have, in one wording.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import orjson
import typer


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout")]
ConfigsOption = Annotated[
    Path | None, typer.Option("--configs", help="The registry's folder; default: RAMPGATE_CONFIGS, else configs")
]
VerticalOption = Annotated[str | None, typer.Option("--vertical", help="Only this vertical; default: all registered")]
FormatOption = Annotated[
    Format, typer.Option("--format", help="github: annotations on stderr, also beside the document of --json")
]
MetricsOption = Annotated[
    Path | None, typer.Option("--metrics-file", help="Leave the metrics there, for a textfile collector")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask")]
KafkaOption = Annotated[str | None, typer.Option("--kafka", help="Brokers, comma-separated")]
RedisOption = Annotated[str | None, typer.Option("--redis", help="Redis URL")]
OpikOption = Annotated[str | None, typer.Option("--opik", help="Opik URL")]


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
