"""Reads workflows and actions of this repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml


def load(path: Path) -> Any:
    """The file with each scalar as the text it is: `on` is a word here, not a truth value."""
    return yaml.BaseLoader(path.read_text()).get_single_data()


def assert_of_githubs_form(folder: Path) -> None:
    """An action: no expression stands in its bash, its scripts parse, and GitHub's schema takes it."""
    steps = load(folder / "action.yml")["runs"]["steps"]
    assert not [step["run"] for step in steps if "${{" in step.get("run", "")]
    for script in folder.glob("*.sh"):
        subprocess.run(["bash", "-n", str(script)], check=True, timeout=60)
    form = ["--builtin-schema", "vendor.github-actions", str(folder / "action.yml")]
    command = [sys.executable, "-m", "check_jsonschema", *form]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
