"""`rampgate manifest validate / resolve / show / sync` (contracts §5)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rampgate.cli.options import (
    ConfigsOption,
    DryRunOption,
    FormatOption,
    JsonOption,
    MetricsOption,
    OpikOption,
    VerticalOption,
    YesOption,
)
from rampgate.console import Format

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
            help="A manifest, seen with the rule files beside it, else with the registry's; a file it is made of; or a "
            "registry's folder. Default: the registry's manifest and all it is made of"
        ),
    ] = None,
    format: FormatOption = Format.TEXT,
    as_json: JsonOption = False,
    configs: ConfigsOption = None,
) -> None:
    """Every finding of the manifest, with place, rule and remedy. Exit code 1 if one of them is an error.

    A manifest that is not what its sources give is a warning here: it may be kept by hand.

    Example: rampgate manifest validate --format github
    """
    from rampgate.cli.jobs.manifest import validate

    raise typer.Exit(validate(path, configs, format, as_json))


@manifest.command("resolve")
def resolve_command(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if the file is not as it would be written")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a manifest that was edited by hand")] = False,
    format: FormatOption = Format.TEXT,
    as_json: JsonOption = False,
    configs: ConfigsOption = None,
) -> None:
    """Write the manifest that manifest-base.yaml, the prompt components and the verticals' files declare.

    A hand edit is shown and not overwritten. Exit code 1 if it is refused, or if what is declared holds an error.

    Example: rampgate manifest resolve --check
    """
    from rampgate.cli.jobs.manifest import resolve

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
    """The manifest as the registry serves it: what fires on each category, safety judges too, and its thresholds.

    Example: rampgate manifest show --vertical receipts --category receipt_scan
    """
    from rampgate.cli.jobs.manifest import show

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
    """Bring a changed manifest to Opik, whose copies of the judges carry its thresholds: `rules sync` of all judges.

    Its dataset is compared with the one in Opik - version, items, categories - and never written; what differs is a
    warning. Exit codes as of `rules sync`.

    Example: rampgate manifest sync --vertical receipts --yes
    """
    from rampgate.cli.jobs.manifest import sync
    from rampgate.cli.jobs.rules import SyncAsked
    from rampgate.settings import load_settings

    settings = load_settings({"configs": configs, "opik": opik})
    raise typer.Exit(sync(settings, SyncAsked(vertical, None, yes, dry_run, as_json, metrics_file)))
