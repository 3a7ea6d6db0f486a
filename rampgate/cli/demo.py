"""`rampgate demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from rampgate.cli.common import print_json


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    seed: Annotated[int, typer.Option(help="The day's seed; the same seed is the same day")] = 7,
    turns: Annotated[int, typer.Option(min=50, max=100_000, help="Turns of the day")] = 2_000,
    json: Annotated[bool, typer.Option("--json", help="One JSON document at the end, nothing else")] = False,
) -> None:
    """Show a seeded day of traffic pass by, with everything embedded. Needs nothing but Python; takes under a minute.

    Example: rampgate demo --seed 11
    """
    from rampgate.demo.run import Demo
    from rampgate.logs import configure_logs

    configure_logs("warning", "console")
    answer = Demo(seed=seed, turns=turns, quiet=json).run()
    if json:
        print_json(answer)
