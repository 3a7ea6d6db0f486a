"""`rampgate spec` as tests call it, in their own process, in a copy of a demo, with the judges' stand-in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rampgate.cli import app
from rampgate.console import Failure
from rampgate.local.model.server import Running
from tests.root import ROOT
from tests.unit.rampgate.ci_gate.gate_commands import commands
from tests.unit.rampgate.ci_gate.gate_rig import Rig

SPEC = "agentci_spec.yaml"
RULE = (
    "First qualify the question: where it is about something other than AgentCI, decline at once, without any search "
    "at all.\n"
)
"""What the playbook adds to the prompt."""


@contextmanager
def demo(name: str, root: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of a demo without baselines, in which commands run; its simulated model takes no time."""
    folder = root / name
    shutil.copytree(ROOT / "examples" / name, folder, ignore=shutil.ignore_patterns("baselines", ".rampgate"))
    (folder / ".git").mkdir()  # the root of a repository, which annotations name files from
    change(folder, 'pace: {value: "1"}', 'pace: {value: "0"}', strict=False)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    with commands(Rig(root / "registry", model.url).environment, monkeypatch):
        yield folder


def change(folder: Path, old: str, new: str, file: str = SPEC, *, strict: bool = True) -> None:
    text = (folder / file).read_text()
    assert not strict or old in text
    (folder / file).write_text(text.replace(old, new))


def fix_prompt(folder: Path) -> None:
    with (folder / "prompt.md").open("a") as prompt:
        prompt.write(RULE)


def ran(*arguments: object, code: int = 0) -> Result:
    """What a command of the group ends with."""
    done = CliRunner().invoke(app, ["spec", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == code, done.output
    return done


def told(*arguments: object, code: int = 0) -> dict[str, Any]:
    """The document that a command prints."""
    found: dict[str, Any] = json.loads(ran(*arguments, "--json", code=code).stdout)
    return found


def refused(*arguments: object) -> str:
    """Why a command ends with exit code 2."""
    done = CliRunner().invoke(app, ["spec", *map(str, arguments)])
    assert isinstance(done.exception, Failure), done.output
    return str(done.exception)


def layers(found: dict[str, Any], name: str) -> list[str]:
    """The statuses of a query's three layers."""
    (one,) = (one for one in found["results"] if one["id"] == name)
    return [one[layer]["status"] for layer in ("correctness", "path", "cost")]
