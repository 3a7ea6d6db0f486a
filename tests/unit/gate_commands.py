"""`rampgate gate run` as tests call it, in their own process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import stamina.instrumentation
from gate_rig import Rig, local_model
from typer.testing import CliRunner, Result

from rampgate.cli import app, gate_run_job
from rampgate.cli.common import Failure

R = TypeVar("R", bound=Rig)


def commanded(made: Callable[[Path, str], R], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[R]:
    """A fixture's rig: commands find its registry and its model, leave logging as it is and retry without a word."""
    with local_model() as model:
        rig = made(folder, model.url)
        for name, value in rig.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(gate_run_job, "configure_logs", lambda level, form: None)
        stamina.instrumentation.set_on_retry_hooks([])
        yield rig
        stamina.instrumentation.set_on_retry_hooks(None)


def ran(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["gate", "run", *map(str, arguments)])


def verdict(*arguments: object, code: int = 0) -> dict[str, Any]:
    """The document of a command that ends with this code."""
    done = ran(*arguments, "--json")
    assert done.exit_code == code, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def gate(rig: Rig, *arguments: object, code: int = 0) -> dict[str, Any]:
    """The verdict on the rig's outputs."""
    return verdict("--dataset", rig.dataset, "--outputs", rig.outputs, *arguments, code=code)


def refused(*arguments: object) -> str:
    """What a command that ends with exit code 2 says."""
    done = ran(*arguments)
    assert isinstance(done.exception, Failure), done.output
    return str(done.exception)


def codes(found: dict[str, Any]) -> set[str]:
    return {reason["code"] for reason in found["reasons"]}
