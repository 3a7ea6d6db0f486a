"""`rampgate suite run` as tests call it, in their own process, with the small registry and the judges' stand-in."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.console import Failure
from rampgate.local.model.server import Running
from tests.unit.rampgate.ci_gate.gate_commands import commands
from tests.unit.rampgate.ci_gate.gate_rig import Rig


@contextmanager
def suite_folder(root: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for a suite; commands find the registry beside it, and the model."""
    rig = Rig(root, model.url)
    with commands(rig.environment, monkeypatch):
        yield root / "suite"


def ended(*words: object) -> Result:
    return CliRunner().invoke(app, ["suite", *map(str, words)])


def document(*words: object, codes: Collection[int] = (0,)) -> dict[str, Any]:
    """What `rampgate suite WORDS… --json` answers, which ends with one of these codes."""
    done = ended(*words, "--json")
    assert done.exit_code in codes, (done.exception, done.output)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def failure(*words: object) -> str:
    """What a command that ends with exit code 2 says."""
    done = ended(*words)
    assert isinstance(done.exception, Failure), done.output
    return str(done.exception)


def ran(path: Path, *arguments: object, code: int = 0) -> dict[str, Any]:
    """The document of a run, which passes where there is no baseline and nothing else is wrong."""
    return document("run", path, *arguments, "--first-run", codes=(code,))


def refused(path: Path, *arguments: object) -> str:
    return failure("run", path, *arguments, "--json")


def lines(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of the results that a run names."""
    return [json.loads(line) for line in Path(found["results"]).read_text().splitlines()]
