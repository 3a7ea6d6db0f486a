"""`rampgate gate run` as tests call it, in their own process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import stamina.instrumentation
from typer.testing import CliRunner, Result

from rampgate.cli import app
from rampgate.console import Failure
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.evalcore.registry.registry_reloading import nothing_serves
from tests.unit.rampgate.ci_gate.gate_rig import Rig, local_model


@contextmanager
def commands(environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """They find what the environment names, on the registry's day, leave logging as it is and retry without a word.
    What they set for the whole process is as before when it ends."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    nothing_serves(monkeypatch)
    monkeypatch.setattr("evalcore.registry.disk.today", lambda: TODAY)
    monkeypatch.setattr("rampgate.logs.configure_logs", lambda level, form: None)
    loops = asyncio.get_event_loop_policy()
    stamina.instrumentation.set_on_retry_hooks([])
    try:
        yield
    finally:
        stamina.instrumentation.set_on_retry_hooks(None)
        asyncio.set_event_loop_policy(loops)


def commanded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """A fixture's rig, whose registry and model commands find."""
    with local_model() as model:
        rig = Rig(folder, model.url)
        with commands(rig.environment, monkeypatch):
            yield rig


def ran(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["gate", "run", *map(str, arguments)])


def verdict(*arguments: object, code: int = 0) -> dict[str, Any]:
    """The document of a command that ends with this code."""
    done = ran(*arguments, "--json")
    assert done.exit_code == code, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def on_outputs(rig: Rig) -> tuple[object, ...]:
    return ("--dataset", rig.dataset, "--outputs", rig.outputs)


def gate(rig: Rig, *arguments: object, code: int = 0) -> dict[str, Any]:
    """The verdict on the rig's outputs."""
    return verdict(*on_outputs(rig), *arguments, code=code)


def refused(*arguments: object) -> str:
    """What a command that ends with exit code 2 says."""
    done = ran(*arguments)
    assert isinstance(done.exception, Failure), done.output
    return str(done.exception)


def codes(found: dict[str, Any]) -> set[str]:
    return {reason["code"] for reason in found["reasons"]}
