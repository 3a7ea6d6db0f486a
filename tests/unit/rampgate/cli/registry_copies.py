"""Copies of the shipped registry to work on, and the command line run in this process."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.root import ROOT
from tests.unit.rampgate.checks.score_commands import said

HERE = ROOT


def copied(folder: Path) -> Path:
    """The shipped registry in a folder of its own: where its `configs` is."""
    for name in ("rules", "verticals"):
        shutil.copytree(HERE / "configs" / name, folder / "configs" / name)
    for file in (HERE / "configs").glob("*.yaml"):
        shutil.copy(file, folder / "configs" / file.name)
    shutil.copytree(HERE / "specs", folder / "specs")
    shutil.copytree(HERE / "prompts", folder / "prompts")
    return folder / "configs"


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Of stdout, which must be one document and nothing else."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def run(configs: Path, *arguments: str) -> Ran:
    """As `main` runs it: failures end with exit code 2."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    whole = [*arguments[:at], "--configs", str(configs), *arguments[at:]]
    return Ran(*said(*whole, COLUMNS="200"))


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path there."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
