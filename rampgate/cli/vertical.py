"""`rampgate vertical scaffold` (contracts §5, PF-9 §5.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rampgate.options import ConfigsOption, JsonOption

vertical = typer.Typer(help="Verticals whose turns this registry judges.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(vertical, name="vertical")


@vertical.command("scaffold")
def scaffold_command(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits, _ and -, such as receipts")],
    project: Annotated[
        str | None, typer.Option("--project", help="The vertical's Opik project; default: NAME-eval")
    ] = None,
    workspace: Annotated[str, typer.Option("--workspace", help="The project's Opik workspace")] = "default",
    sub_agent: Annotated[
        list[str] | None,
        typer.Option("--sub-agent", help="A sub_agent_id of the vertical; default: NAME; again for more"),
    ] = None,
    archetype: Annotated[
        str | None, typer.Option("--archetype", help="The archetype its sub-agents join; default: conversation")
    ] = None,
    category: Annotated[
        list[str] | None, typer.Option("--category", help="A category, new or existing; again for more")
    ] = None,
    inherits_from: Annotated[
        str | None, typer.Option("--inherits-from", help="What new categories inherit from; default: general_qa")
    ] = None,
    judge: Annotated[
        list[str] | None, typer.Option("--judge", help="A quality judge to start with; again for more")
    ] = None,
    ticket: Annotated[str | None, typer.Option("--ticket", help="The seeds' calibration_ref, such as PLT-1234")] = None,
    sample: Annotated[
        Path | None, typer.Option("--from", help="JSON Lines of its traces: says what judges can't read in them")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would write, and write nothing")] = False,
    as_json: JsonOption = False,
    configs: ConfigsOption = None,
) -> None:
    """Write the files a new vertical begins with: already valid, with comments that say what to fill in.

    It keeps existing files. Exit code 1 if all of them exist, if the registry would not be valid with them, or with
    --from if judges can't read all of the traces; with --from it's no fault that all files exist.

    Example: rampgate vertical scaffold receipts --category receipt_scan --category receipt_dispute_flow
    """
    from evalcore.scaffold import Wanted
    from rampgate.cli.jobs.registry.vertical import scaffold

    wanted = Wanted(
        name,
        project,
        workspace,
        tuple(sub_agent or ()),
        archetype,
        tuple(category or ()),
        inherits_from,
        tuple(judge or ()),
        ticket,
    )
    raise typer.Exit(scaffold(wanted, configs, dry_run, as_json, sample))
