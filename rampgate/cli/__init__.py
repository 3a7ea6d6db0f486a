"""The command line `rampgate` (contracts §5): one module for each group of commands; `main` is the entry point.

These modules declare options and import nothing else, so that `--help` answers at once. What a command does is in
`rampgate.cli.jobs` or below, imported when the command runs.
"""

from __future__ import annotations

import gc
import sys

import typer

from rampgate.cli import (
    calibrate,
    check,
    datasets,
    dead_letters,
    export,
    gate,
    local,
    manifest,
    optimize,
    overrides,
    processes,
    queries,
    rules,
    suite,
    traces,
    triage,
    vertical,
)
from rampgate.console import Failure, failure_text

app = typer.Typer(
    name="rampgate",
    help="Decides, with evidence, whether an LLM agent may take the next step of its rollout.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # the help is printed without rich, whose import takes longer than all of the rest
    pretty_exceptions_enable=False,
)


@app.callback()
def rampgate() -> None:
    """Every command takes --help; those that answer take --json."""


_JUDGES = (
    rules,
    manifest,
    vertical,
    gate,
    overrides,
    check,
    calibrate,
    optimize,
    datasets,
    suite,
    traces,
    export,
    triage,
)
for group in (local, processes, dead_letters, queries, *_JUDGES):
    group.register(app)
# Without a default, typer reads an absent --help with pydantic, whose import takes longer than all the rest.
app.info.context_settings = {
    "default_map": {"help": False, **{str(group.name): {"help": False} for group in app.registered_groups}}
}


def main() -> None:
    """Run a command: exit code 0 done or valid, 1 a check found something, 2 bad input or a part out of reach."""
    gc.set_threshold(50_000, 20, 50)  # imports make many objects and no garbage: they took a quarter as long again
    try:
        app(standalone_mode=True)
    except Failure as error:
        sys.stderr.write(failure_text(error))
        sys.exit(2)
