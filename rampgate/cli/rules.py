"""`rampgate rules validate / list / diff / sync / create / delete / rollback` (contracts §5)."""

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

rules = typer.Typer(
    help="The judges' rule files: validate, list and compare them, and sync their copies in Opik.",
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    app.add_typer(rules, name="rules")


@rules.command("validate")
def validate_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...", help="Rule files or folders; default: the whole registry", show_default=False
        ),
    ] = None,
    format: FormatOption = Format.TEXT,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
    configs: ConfigsOption = None,
) -> None:
    """Show every finding of the rule files, with place, rule and remedy. A file is checked together with its registry.

    Exit code 0 for warnings only, 1 for an error, 2 for a missing path.

    Example: rampgate rules validate configs/rules/receipts --format github
    """
    from rampgate.cli.jobs.registry.rule_checks import validate

    raise typer.Exit(validate(paths or [], configs, format, as_json, metrics_file))


@rules.command("list")
def list_command(
    vertical: Annotated[str | None, typer.Option("--vertical", help="As this vertical sees them")] = None,
    category: Annotated[str | None, typer.Option("--category", help="Only what fires on this category")] = None,
    judge: Annotated[str | None, typer.Option("--id", help="Only this judge")] = None,
    classification: Annotated[str | None, typer.Option(help="Only this class: safety_refusal or quality")] = None,
    sub_agent: Annotated[str | None, typer.Option(help="Only what scores this sub-agent")] = None,
    as_json: JsonOption = False,
    configs: ConfigsOption = None,
) -> None:
    """List the judges with classification, thresholds, floor, tolerance, provenance and the day they are due.

    Example: rampgate rules list --vertical receipts --category receipt_scan
    """
    from rampgate.cli.jobs.registry.rule_checks import list_judges

    list_judges(vertical, category, (judge, classification, sub_agent), configs, as_json)


@rules.command("diff")
def diff_command(
    ref: Annotated[str, typer.Argument(help="A commit, branch or tag of git")] = "HEAD",
    as_json: JsonOption = False,
    configs: ConfigsOption = None,
) -> None:
    """Compare the files with a version in git, by judges and values instead of lines of text.

    Exit code 0 without a difference, 1 with one. For differences from Opik: rampgate rules sync --dry-run

    Example: rampgate rules diff origin/main
    """
    from rampgate.cli.jobs.registry.rule_checks import diff

    raise typer.Exit(diff(ref, configs, as_json))


@rules.command("sync")
def sync_command(
    vertical: VerticalOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    opik: OpikOption = None,
    metrics_file: MetricsOption = None,
    configs: ConfigsOption = None,
) -> None:
    """Write the judges to each vertical's own Opik project: show a plan first, then write only what differs.

    It deletes nothing, and changes no rule that it did not make. Exit code 1 if a file has an error (nothing is synced)
    or Opik refused a rule (the others are synced), 2 if a vertical's project can't be reached or written.

    Example: rampgate rules sync --vertical receipts --yes
    """
    from rampgate.cli.jobs.registry.rules import SyncAsked, sync_rules
    from rampgate.settings_sources import load_settings

    settings = load_settings({"configs": configs, "opik": opik})
    raise typer.Exit(sync_rules(settings, SyncAsked(vertical, None, yes, dry_run, as_json, metrics_file)))


@rules.command("create")
def create_command(
    name: Annotated[str, typer.Option("--name", help="The judge's id, or its name in the file")],
    file: Annotated[Path, typer.Option("--file", help="Its rule file in the registry, or a vertical's")],
    vertical: VerticalOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    opik: OpikOption = None,
    metrics_file: MetricsOption = None,
) -> None:
    """Sync one rule without asking: create it where it is missing, update it where it differs. PC5's own form.

    It validates the whole registry around the file. Exit code 1 where the rule was not written.

    Example: rampgate rules create --name response_quality --file configs/rules/response_quality.yaml
    """
    from rampgate.cli.jobs.registry.rules import create_rule

    raise typer.Exit(create_rule(name, file, vertical, dry_run, as_json, opik, metrics_file))


@rules.command("delete")
def delete_command(
    name: Annotated[str, typer.Argument(help="The judge's id")],
    vertical: VerticalOption = None,
    audit: Annotated[Path | None, typer.Option(help="JSON Lines file to which each deletion is appended first")] = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    opik: OpikOption = None,
    configs: ConfigsOption = None,
) -> None:
    """Delete from Opik what a sync made of a judge that is no longer in the registry.

    A judge that has a rule file is refused, since gates may need it. Rules that no sync made are left alone.

    Example: rampgate rules delete old_judge --audit audit.jsonl --yes
    """
    from rampgate.cli.jobs.registry.rule_delete import DeleteAsked, delete_rule
    from rampgate.settings_sources import load_settings

    settings = load_settings({"configs": configs, "opik": opik})
    raise typer.Exit(delete_rule(settings, DeleteAsked(name, vertical, audit, yes, dry_run, as_json)))


@rules.command("rollback")
def rollback_command(
    name: Annotated[str, typer.Argument(help="The judge's id")],
    to: Annotated[
        str | None, typer.Option("--to", metavar="REF", help="The version; default: before the last commit about it")
    ] = None,
    vertical: VerticalOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    opik: OpikOption = None,
    metrics_file: MetricsOption = None,
    configs: ConfigsOption = None,
) -> None:
    """Bring a judge's rule files back from git, the central one and every vertical's, and sync that judge.

    It validates before it writes, leaves the files in the working tree for you to commit, and never rewrites history.
    Safe to run again after a failure: it continues where it stopped.

    Example: rampgate rules rollback response_quality --to v1.4.0 --yes
    """
    from rampgate.cli.jobs.registry.rule_rollback import Rollback, roll_back
    from rampgate.settings_sources import load_settings

    settings = load_settings({"configs": configs, "opik": opik})
    raise typer.Exit(roll_back(settings, Rollback(name, to, vertical, yes, dry_run, as_json, metrics_file)))
