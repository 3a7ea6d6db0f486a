"""`rampgate triage list / take / close`: quality regressions that somebody has to look at within a day (PC5 §5.7)."""

from __future__ import annotations

from typing import Annotated

import typer

from rampgate.console import print_json
from rampgate.options import JsonOption, KafkaOption, RedisOption

group = typer.Typer(help="Quality regressions that somebody looks at within a day (PC5 §5.7).", no_args_is_help=True)
ItemArgument = Annotated[str, typer.Argument(metavar="ITEM", help="the item's id")]


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="triage")


@group.command("list")
def list_command(
    everything: Annotated[bool, typer.Option("--all", help="closed items, too")] = False,
    kafka: KafkaOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is to be looked at, by whom and until when, the most urgent first. Exit code 1 if any is overdue.

    Example: rampgate triage list
    """
    from rampgate import triage

    found = triage.listed({"kafka": kafka}, everything)
    print_json(found.document()) if as_json else triage.show_list(found)
    raise typer.Exit(1 if found.overdue else 0)


@group.command("take")
def take_command(
    item: ItemArgument,
    owner: Annotated[str | None, typer.Option(help="who looks; default: you")] = None,
    note: Annotated[str, typer.Option(help="a word for those who read it later")] = "",
    over: Annotated[bool, typer.Option("--over", help="take it from another owner")] = False,
    kafka: KafkaOption = None,
    redis: RedisOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take an item, or give it to somebody. Who did it is kept with it.

    Example: rampgate triage take t-4f0c1b9a7d2e --note "looks like the new prompt"
    """
    from rampgate import triage

    done = triage.take({"kafka": kafka, "redis": redis}, item, owner, note, over=over)
    print_json(done.model_dump(mode="json")) if as_json else triage.show_item(done)


@group.command("close")
def close_command(
    item: ItemArgument,
    decision: Annotated[str, typer.Option(help="agent, judge, false_alarm or accepted: what came of it")],
    note: Annotated[str, typer.Option(help="what was found")],
    kafka: KafkaOption = None,
    redis: RedisOption = None,
    as_json: JsonOption = False,
) -> None:
    """Close an item that has an owner, with what was found. Nothing else closes one.

    Example: rampgate triage close t-4f0c1b9a7d2e --decision agent --note "prompt 12 is rolled back"
    """
    from rampgate import triage

    done = triage.close({"kafka": kafka, "redis": redis}, item, decision, note)
    print_json(done.model_dump(mode="json")) if as_json else triage.show_item(done)
