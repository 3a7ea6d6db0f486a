"""`rampgate datasets list` and `show`: the golden sets that the manifest names, and those in Opik (PC5 §2, §5.6)."""

from __future__ import annotations

from typing import Annotated

import typer

from rampgate.options import ConfigsOption, JsonOption, OpikOption, VerticalOption

group = typer.Typer(help="The datasets that gates judge on (PC5 §5.6).", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="datasets")


@group.callback()
def datasets() -> None:
    """Only reads: a dataset is its vertical's own."""


@group.command("list")
def list_command(
    vertical: VerticalOption = None,
    as_json: JsonOption = False,
    opik: OpikOption = None,
    configs: ConfigsOption = None,
) -> None:
    """Show the platform's golden set and each vertical's: what the manifest wants of it and what Opik holds.

    Exit code 1 if Opik holds another version or size, or too few categories, 2 if it can't be read.

    Example: rampgate datasets list --vertical receipts --json
    """
    from rampgate.cli.jobs.registry.datasets import list_datasets
    from rampgate.settings_sources import load_settings

    raise typer.Exit(list_datasets(load_settings({"configs": configs, "opik": opik}), vertical, as_json))


@group.command("show")
def show_command(
    name: Annotated[str, typer.Argument(help="The dataset's name in the manifest")],
    as_json: JsonOption = False,
    opik: OpikOption = None,
    configs: ConfigsOption = None,
) -> None:
    """Show one golden set: what the manifest wants of it, and how many items of each category Opik holds.

    Exit code 1 if Opik holds another version or size, or too few categories, 2 if it can't be read.

    Example: rampgate datasets show consumer-agent-eval --json
    """
    from rampgate.cli.jobs.registry.datasets import show_dataset
    from rampgate.settings_sources import load_settings

    raise typer.Exit(show_dataset(load_settings({"configs": configs, "opik": opik}), name, as_json))
