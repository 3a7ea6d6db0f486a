"""`rampgate …` run to its end, in this process or in one of its own: starting one costs seconds of a core."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.cli.jobs import dead_letters
from rampgate.console import Failure
from rampgate.settings import SettingsError
from tests.fault.worker_process import PROGRAM, ROOT


@dataclass(frozen=True)
class Ran:
    """A command that ended."""

    code: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def in_process_of_its_own(environment: dict[str, str], *arguments: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        timeout=90,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def letters_in_this_process(environment: dict[str, str], *arguments: str) -> Ran:
    """`rampgate dead-letters …` as `main` runs it: failures end with exit code 2."""
    policy = asyncio.get_event_loop_policy()
    try:
        with patch.object(dead_letters, "configure_logs"):
            result = CliRunner().invoke(app, ["dead-letters", *arguments], env=environment)
    finally:
        asyncio.set_event_loop_policy(policy)
    if isinstance(result.exception, (Failure, SettingsError)):
        return Ran(2, result.stdout_bytes, result.stderr + str(result.exception))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout_bytes, result.stderr)
