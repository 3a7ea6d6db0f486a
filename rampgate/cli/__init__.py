"""The command line `rampgate` (contracts §5). One module per group of commands; `main` is the entry point."""

from __future__ import annotations

import sys

import typer

from rampgate.cli.dead_letters import register as register_dead_letters
from rampgate.cli.feed import register as register_feed
from rampgate.cli.gate import register as register_gate
from rampgate.cli.local import register_demo, register_dev
from rampgate.cli.manifest import register as register_manifest
from rampgate.cli.queries import register as register_queries
from rampgate.cli.refresh import register as register_refresh
from rampgate.cli.rules import register as register_rules
from rampgate.cli.sweep import register as register_sweep
from rampgate.cli.vertical import register as register_vertical
from rampgate.cli.worker import register as register_worker
from rampgate.console import Failure
from rampgate.settings import SettingsError

app = typer.Typer(
    name="rampgate",
    help="Decides, with evidence, whether an LLM agent may take the next step of its rollout.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def rampgate() -> None:
    """Every command takes --help; those that answer take --json."""


for register in (
    register_demo,
    register_dev,
    register_worker,
    register_feed,
    register_sweep,
    register_dead_letters,
    register_queries,
    register_refresh,
    register_rules,
    register_manifest,
    register_vertical,
    register_gate,
):
    register(app)


def main() -> None:
    """Exit code 0 holds or done, 1 a check found something, 2 bad input or a part out of reach."""
    try:
        app(standalone_mode=True)
    except (SettingsError, Failure) as error:
        sys.stderr.write(f"rampgate: {error}\n")
        sys.exit(2)
