"""`rampgate …` run to its end, in this process or in one of its own: starting one costs seconds of a core."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.console import Failure
from rampgate.settings import SettingsError
from tests.fork_server import ran


@dataclass(frozen=True)
class Ran:
    """A command that ended."""

    code: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def in_process_of_its_own(environment: dict[str, str], *arguments: str, module: str = "rampgate") -> Ran:
    done = ran(*arguments, module=module, environment=environment, seconds=90)
    return Ran(done.returncode, done.stdout.encode(), done.stderr)


def letters_in_this_process(environment: dict[str, str], *arguments: str) -> Ran:
    """`rampgate dead-letters …` as `main` runs it: failures end with exit code 2."""
    policy = asyncio.get_event_loop_policy()
    try:
        with patch("rampgate.logs.configure_logs"):
            result = CliRunner().invoke(app, ["dead-letters", *arguments], env=environment)
    finally:
        asyncio.set_event_loop_policy(policy)
    if isinstance(result.exception, (Failure, SettingsError)):
        return Ran(2, result.stdout_bytes, result.stderr + str(result.exception))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout_bytes, result.stderr)
