"""`rampgate suite run` as tests call it, in their own process, with the small registry and the judges' stand-in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
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


def ran(path: Path, *arguments: object, code: int = 0) -> dict[str, Any]:
    """The document of a run that ends with this code, and passes where there is no baseline and nothing else is
    wrong."""
    done = CliRunner().invoke(app, ["suite", "run", str(path), *map(str, arguments), "--first-run", "--json"])
    assert done.exit_code == code, (done.exception, done.output)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(path: Path, *arguments: object) -> str:
    """What a run that ends with exit code 2 says."""
    done = CliRunner().invoke(app, ["suite", "run", str(path), *map(str, arguments), "--json"])
    assert isinstance(done.exception, Failure), done.output
    return str(done.exception)


def lines(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of the results that a run names."""
    return [json.loads(line) for line in Path(found["results"]).read_text().splitlines()]
