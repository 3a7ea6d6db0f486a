"""`rampgate manifest validate / resolve / show / sync` (contracts §5)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rampgate.console import Format
from rampgate.options import (
    ConfigsOption,
    DryRunOption,
    FormatOption,
    JsonOption,
    MetricsOption,
    OpikOption,
    VerticalOption,
    YesOption,
)

manifest = typer.Typer(
    help="The evaluation manifest: which judges fire on which category, and what they have to score.",
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    app.add_typer(manifest, name="manifest")


@manifest.command("validate")
def validate_command(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A manifest, checked with the rule files beside it, else with the registry's; a source file of it; "
            "or a registry's folder. Default: the registry's manifest and all its sources"
        ),
    ] = None,
    format: FormatOption = Format.TEXT,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
    configs: ConfigsOption = None,
) -> None:
    """Show every finding of the manifest, with place, rule and remedy. Exit code 1 for an error.

    A manifest that differs from its sources is a warning here: you may keep it by hand.

    Example: rampgate manifest validate --format github
    """
    from rampgate.cli.jobs.registry.manifest import validate

    raise typer.Exit(validate(path, configs, format, as_json, metrics_file))


@manifest.command("resolve")
def resolve_command(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if the file is out of date")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a manifest that was edited by hand")] = False,
    format: FormatOption = Format.TEXT,
    as_json: JsonOption = False,
    configs: ConfigsOption = None,
) -> None:
    """Write the manifest that manifest-base.yaml, the prompt components and the verticals' files declare.

    It shows a hand edit and does not overwrite it. Exit code 1 for a hand edit, or an error in the sources.

    Example: rampgate manifest resolve --check
    """
    from rampgate.cli.jobs.registry.manifest import resolve

    raise typer.Exit(resolve(configs, check, force, format, as_json))


@manifest.command("show")
def show_command(
    vertical: Annotated[str | None, typer.Option("--vertical", help="As this vertical sees it")] = None,
    category: Annotated[
        str | None, typer.Option("--category", help="Its judges only, as GET /eval-config answers")
    ] = None,
    as_json: JsonOption = False,
    configs: ConfigsOption = None,
) -> None:
    """Show the manifest as the registry serves it: the judges of each category, safety judges too, and thresholds.

    Example: rampgate manifest show --vertical receipts --category receipt_scan
    """
    from rampgate.cli.jobs.registry.manifest import show

    show(vertical, category, configs, as_json)


@manifest.command("sync")
def sync_command(
    vertical: VerticalOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    opik: OpikOption = None,
    metrics_file: MetricsOption = None,
    configs: ConfigsOption = None,
) -> None:
    """Bring a changed manifest to Opik by `rules sync` of all judges, whose copies there carry its thresholds.

    It compares the dataset with the one in Opik (version, items, categories) and never writes it; a difference is a
    warning. Exit codes are those of `rules sync`.

    Example: rampgate manifest sync --vertical receipts --yes
    """
    from rampgate.cli.jobs.registry.manifest import sync
    from rampgate.cli.jobs.registry.rules import SyncAsked
    from rampgate.settings_sources import load_settings

    settings = load_settings({"configs": configs, "opik": opik})
    raise typer.Exit(sync(settings, SyncAsked(vertical, None, yes, dry_run, as_json, metrics_file)))
