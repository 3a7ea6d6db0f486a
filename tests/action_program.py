"""An action beside a program, as a workflow's runner has them: the program is this repository's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fork_server import program
from tests.root import ROOT

ACTIONS = ROOT / ".github" / "actions"
ACTION = ACTIONS / "gate"
KEPT = {"PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV"}
"""What a step has of this process's environment."""
EXPRESSION = re.compile(r"\$\{\{ ([\w.-]+) \}\}")


def executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def programs(folder: Path) -> None:
    """Puts this process's Python and a `rampgate` of the fork server where scripts look for them."""
    binaries = folder / ".venv" / "bin"
    binaries.mkdir(parents=True)
    executable(binaries / "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    executable(binaries / "rampgate", program())


def action_beside_a_program(folder: Path, given: Path = ACTION) -> Path:
    """Returns the folder of a copy of the action, the gate's or the one given, whose program runs in processes of the
    fork server."""
    action = folder / ".github" / "actions" / given.name
    action.mkdir(parents=True)
    (folder / "Makefile").write_text("setup: ;\n")
    programs(folder)
    for file in given.iterdir():
        (action / file.name).write_bytes(file.read_bytes())
    (folder / ".ci").mkdir()
    (folder / ".ci" / "kafka_login").write_bytes((ROOT / ".ci" / "kafka_login").read_bytes())
    return action


def contexts(action: Mapping[str, Any], given: Mapping[str, str], folder: Path, graphql: str) -> dict[str, str]:
    """What an action's expressions stand for: its inputs as given or by default, its folder, and GitHub."""
    known = {f"inputs.{name}": given.get(name, one.get("default", "")) for name, one in action["inputs"].items()}
    return known | {
        "github.action_path": str(folder), "github.repository": "example/agents", "github.graphql_url": graphql,
        "github.ref_name": "main",
    }  # fmt: skip


def step_environment(step: Mapping[str, Any], known: Mapping[str, str], runner: Mapping[str, str]) -> dict[str, str]:
    """A step's variables: some of this process, those of its runner, and its own."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT} | {"PYTHONPATH": str(ROOT)}
    own = {name: EXPRESSION.sub(lambda found: known[found[1]], value) for name, value in step["env"].items()}
    return {**kept, **runner, **own}


def step_run(step: Mapping[str, Any], environment: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a step's commands as a runner does."""
    return subprocess.run(
        [step["shell"], "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
