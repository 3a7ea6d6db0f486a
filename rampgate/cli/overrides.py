"""`rampgate overrides report` and `publish`: the central log of overrides of gates (PC5 §5.5; contracts §5)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rampgate.options import JsonOption, KafkaOption

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
    from rampgate.overrides import show

    show(quarter, audit or [], kafka, as_json=as_json)


@group.command("publish")
def publish_command(
    audit: Annotated[Path, typer.Argument(metavar="FILE", help="an audit: overrides, JSON Lines")],
    kafka: KafkaOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send the overrides of an audit to the central log; one that it has already counts once.

    So that the step with Kafka's password is another than the one that reads a pull request. Exit code 2 if the log
    does not have them all: none of them holds then.

    Example: rampgate overrides publish audit.jsonl
    """
    from rampgate.console import print_json
    from rampgate.overrides import publish_file

    count = publish_file(audit, kafka)
    print_json({"published": count}) if as_json else typer.echo(f"{count} overrides are in the central log")
