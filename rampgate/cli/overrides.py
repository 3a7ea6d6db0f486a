"""`rampgate overrides report`: the central log of overrides of gates, by quarter (PC5 §5.5; contracts §5)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rampgate.cli.options import JsonOption, KafkaOption

group = typer.Typer(help="Overrides of gates: who allowed what (PC5 §5.5).", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="overrides")


@group.command("report")
def report_command(
    quarter: Annotated[str, typer.Option(metavar="Q", help="such as 2026-Q4")],
    audit: Annotated[
        list[Path] | None, typer.Option(help="read this file of an audit, once or more, and not the topic")
    ] = None,
    kafka: KafkaOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the overrides of a quarter, each once, and who asked for and allowed how many.

    Example: rampgate overrides report --quarter 2026-Q4
    """
    from rampgate.cli.jobs.override_report import show

    show(quarter, audit or [], kafka, as_json=as_json)
