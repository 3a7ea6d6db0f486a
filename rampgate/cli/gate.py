"""`rampgate gate`: which gates a change triggers, and a gate from CI (PC5 §5.5)."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from rampgate.cli.common import Failure, print_json
from rampgate.cli.gate_run import run_command
from rampgate.cli.options import JsonOption
from rampgate.cli.override_audit import append, plain_entry, read_description

if TYPE_CHECKING:
    from evalcore.gates.planning import Plan

group = typer.Typer(name="gate", help="Gates from CI (PC5 §5.5).", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    group.command("run")(run_command)
    app.add_typer(group)


@group.command("plan")
def plan_command(
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="more changed files")] = None,
    changed: Annotated[list[str] | None, typer.Option(help="a changed file, from the repository's root")] = None,
    label: Annotated[list[str] | None, typer.Option(help="a label of the pull request")] = None,
    description: Annotated[
        Path | None, typer.Option(help="file with the pull request's description; - for stdin")
    ] = None,
    pull_request: Annotated[str, typer.Option(help="its number or address, for the audit")] = "",
    audit: Annotated[Path | None, typer.Option(help="JSON Lines file to which each override is appended")] = None,
    as_json: JsonOption = False,
) -> None:
    """Which gates a change triggers, by the paths it touches, and what its overrides skip.

    An override is a label (eval-skip-pre-ramp, eval-skip-pre-full), a filled-in block eval-skip-justification, the
    reviewer's tick, and an entry in the audit; without all four its gate runs. Exit code 1 if one does not hold.

    Example: rampgate gate plan --changed configs/rules/ux_quality.yaml README.md
    """
    from evalcore.gates.planning import plan

    names = [*(changed or []), *(files or [])]
    if not names:
        raise Failure("say which files changed: rampgate gate plan --changed FILE [FILE]...")
    made = plan(names, label or [], read_description(description), today=datetime.now(UTC).date())
    if made.skipped:
        append(audit, "gate_skip", pull_request, [asdict(skip) for skip in made.skipped])
    for wrong in made.wrong:
        sys.stderr.write(f"override refused: {wrong}\n")
    print_json(_document(made)) if as_json else _show(made)
    raise typer.Exit(1 if made.wrong else 0)


def _document(made: Plan) -> dict[str, Any]:
    return {
        "gates": list(made.gates),
        "files": [{"file": one.file, "rule": one.rule, "gates": list(one.gates)} for one in made.files],
        "skipped": [plain_entry(asdict(skip)) for skip in made.skipped],
        "refused": list(made.wrong),
    }


def _show(made: Plan) -> None:
    table = Table("file", "gates", "rule", box=None)
    for one in made.files:
        table.add_row(one.file, ", ".join(one.gates) or "none", one.rule)
    console = Console(highlight=False, markup=False)
    console.print(table)
    for skip in made.skipped:
        console.print(f"{skip.milestone} is skipped until {skip.expires}: {skip.justification} ({skip.approved_by})")
    console.print(f"gates to run: {', '.join(made.gates) or 'none'}")
