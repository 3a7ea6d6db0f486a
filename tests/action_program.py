"""An action beside a program, as a workflow's runner has them: the program is this repository's."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.root import ROOT

ACTIONS = ROOT / ".github" / "actions"
ACTION = ACTIONS / "gate"


def action_beside_a_program(folder: Path, given: Path = ACTION) -> Path:
    """Returns the folder of a copy of the action, the gate's or the one given, whose program runs with this interpreter
    and what PYTHONPATH names."""
    binaries, action = folder / ".venv" / "bin", folder / ".github" / "actions" / given.name
    for one in (binaries, action):
        one.mkdir(parents=True)
    (folder / "Makefile").write_text("setup: ;\n")
    for name, call in (("python", ""), ("rampgate", "-m rampgate")):
        (binaries / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
        (binaries / name).chmod(0o755)
    for file in given.iterdir():
        (action / file.name).write_bytes(file.read_bytes())
    (folder / ".ci").mkdir()
    (folder / ".ci" / "kafka_login").write_bytes((ROOT / ".ci" / "kafka_login").read_bytes())
    return action
