"""`python -m rampgate.local.prepared FILE MODULE ARGUMENT...`: imports MODULE while services start, then runs
`rampgate ARGUMENT...` with the environment in FILE.

`rampgate dev` starts its worker and its feed this way: their imports take as long as the services' start, and need no
address. FILE is a JSON object of variables; it appears in one step once the services answer.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from runpy import run_module

LOOK_SECONDS = 0.01


def command(file: Path, module: str, arguments: Sequence[str]) -> list[str]:
    """The command line that prepares, then runs `rampgate` with these arguments."""
    return [sys.executable, "-m", __name__, str(file), module, *arguments]


def release(file: Path, environment: Mapping[str, str]) -> None:
    """Let the prepared process run with these variables on top of its own."""
    whole = file.with_suffix(".part")
    whole.touch(mode=0o600)
    whole.write_text(json.dumps(dict(environment)))
    whole.replace(file)


def main() -> None:
    _, file, module, *arguments = sys.argv
    gc.disable()  # imports make no garbage
    import_module(module)
    gc.enable()
    variables = Path(file)
    while not variables.exists():
        time.sleep(LOOK_SECONDS)
    os.environ.update(json.loads(variables.read_text()))
    sys.argv = ["rampgate", *arguments]
    run_module("rampgate", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
