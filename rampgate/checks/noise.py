"""Measures how much each judge disagrees with itself: `rampgate check noise`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Option

from rampgate.command import Context, Document, command
from rampgate.console import run
from rampgate.report.checks import noise_report


@command(noise_report, flags="model configs")
def noise(
    context: Context,
    dataset: Annotated[
        Path | None, Option(help="items, JSON Lines with an `output` each; default: turns made up from --seed")
    ] = None,
    items: Annotated[int, Option(min=2, help="without --dataset: turns to make up, half of them bad ones")] = 40,
    seed: Annotated[str | None, Option(help="makes those turns. Default: today's date")] = None,
    judge: Annotated[
        list[str] | None, Option(help="only this judge, once or more; default: all that ask a model")
    ] = None,
    asks: Annotated[int, Option(min=2, help="times that each judge is asked about each item")] = 5,
    write: Annotated[bool, Option("--write", help="note it in judge-noise.yaml, which gates read")] = False,
) -> Document:
    """Ask judges again and again about the same items, and show how much each disagrees with itself.

    Verdicts say by it how often a clean candidate passes and what fall a sample finds. Exit code 1 if a judge could
    not be measured, 2 without a model.

    Example: rampgate check noise --asks 5 --write
    """
    from evalcore.registry.files import NOISE
    from rampgate.checks.datasets import items_to_judge
    from rampgate.checks.judge_noise import judges_that_ask, measured, write_noise

    settings, registry = context.settings, context.registry
    judges = judges_that_ask(registry, judge or ())
    seed = seed or context.today.isoformat()
    wanted = items_to_judge(dataset, registry, seed, items)
    found = run(partial(measured, settings, judges, wanted, asks))
    file = settings.configs / NOISE
    written = write_noise(file, [one.noise for one in found if one.noise]) if write else None
    fields = {
        "at": context.time.isoformat(timespec="seconds"),
        "seed": None if dataset else seed,
        "asks": asks,
        "items": len(wanted),
        "config_hash": registry.config_hash,
        "judges": [one.document() for one in found],
        "written": str(written) if written else None,
    }
    return Document(fields, 0 if all(one.noise for one in found) else 1)
