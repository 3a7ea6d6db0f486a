"""Asks judges about turns with and without planted texts, and says which these move: `rampgate check canaries`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.report.checks import canaries_report

if TYPE_CHECKING:
    from evalcore.canaries.check import Checked
    from evalcore.judges.evaluator import Task
    from evalcore.registry.judge import Judge
    from evalcore.registry.registry import Registry
    from evalcore.scoring.answers import Judgement
    from evalcore.scoring.items import Item
    from rampgate.settings import Settings
    from schemas.checks.canaries import CanaryFile
    from schemas.checks.standing import StandingRecord


@command(canaries_report, flags="standing kafka configs")
def canaries(
    context: Context,
    judge: Annotated[
        list[str] | None, Option(help="only this judge, once or more; default: all that ask a model")
    ] = None,
    items: Annotated[int, Option(min=2, help="turns made up for each judge, half of them bad ones")] = 24,
    dataset: Annotated[
        Path | None, Option(help="your own items in their place, JSON Lines with an `output` each, good and bad")
    ] = None,
    repeats: Annotated[int, Option(min=1, help="times that each question is asked")] = 1,
    seed: Annotated[
        str | None, Option(help="makes turns and planted texts; the same, the same. Default: today's date")
    ] = None,
    publish: Annotated[
        bool, Option("--publish", help="suspend and reinstate by the results: write them to the topic judge-standing")
    ] = False,
) -> Document:
    """Ask judges about the same turns with and without planted instructions, and show which of them these move.

    Each judge is asked at each position that strangers write (input, output, a tool's arguments and result) about texts
    of ten classes. Exit code 1 if one moves beyond its limits (canaries.yaml) or that is unknown, 2 without a model.

    Example: rampgate check canaries --judge ux-quality --seed 2026-W48
    """
    from evalcore.canaries.check import CLASSES, asked
    from evalcore.canaries.shift import ALPHA
    from rampgate.asking import judges_named
    from rampgate.checks.datasets import items_to_judge
    from rampgate.checks.standing import standings
    from rampgate.console import run

    settings = context.settings
    registry = context.registry
    file = read_file(settings.configs, registry)
    wanted = [one for one in judges_named(registry, judge or ()) if judge or one.fires]
    judges = asked(wanted)
    seed = seed or context.today.isoformat()
    turns = items_to_judge(dataset, registry, seed, items)
    results, source = run(partial(_asked, settings, judges, turns, file, seed, repeats))
    if not any(one.found for one in results):
        raise Failure(f"no judge could be asked: {'; '.join(sorted({one.why for one in results})) or 'there is none'}")
    at = datetime.now(UTC).replace(microsecond=0)
    found = [_record(one, at) for one in results]
    for store in standings(context, publish=publish):
        store.add(found)
    fields = {
        "at": at.isoformat(),
        "seed": seed,
        "repeats": repeats,
        "items": len(turns),
        "classes": list(CLASSES),
        "model": source,
        "alpha": ALPHA,
        "config_hash": registry.config_hash,
        "moved_count": sum(one.passed is False for one in results),
        "judges": [one.document() for one in results],
        "skipped": [one.id for one in wanted if one not in judges],
    }
    return Document(fields, 0 if all(one.passed for one in results) else 1)


def _record(one: Checked, at: datetime) -> StandingRecord:
    """What is published of a judge. One that gave no score is undecided: it stays as it stood."""
    from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord

    verdicts = {True: CheckVerdict.PASSED, False: CheckVerdict.SUSPENDED, None: CheckVerdict.UNDECIDED}
    return StandingRecord(
        event_id=str(uuid.uuid4()), judge_id=one.judge.id, judge_version=one.judge.version, at=at,
        model=one.judge.rule.model, reason=CheckedFor.CANARIES, verdict=verdicts[one.passed], message=one.reason,
    )  # fmt: skip


def read_file(configs: Path, registry: Registry) -> CanaryFile:
    """The planted texts and limits of a registry. Raises Failure, which names the file."""
    from evalcore.registry.files import CANARIES

    if registry.canaries is None:
        raise Failure(f"{configs / CANARIES}: no such file: it holds the planted texts and the limits")
    return registry.canaries


async def _asked(
    settings: Settings, judges: Sequence[Judge], items: Sequence[Item], file: CanaryFile, seed: str, repeats: int
) -> tuple[list[Checked], str]:
    from evalcore.canaries.check import check
    from evalcore.registry.files import CANARIES
    from rampgate.asking import asking

    known = (seed, repeats, file.model_dump(mode="json"))
    async with asking(settings, "canaries", judges, items, *known, beside=settings.configs / CANARIES) as model:
        rounds = count()

        async def ask(tasks: Sequence[Task]) -> list[Judgement]:
            return await model.ask(tasks, f"round {next(rounds)}")

        def expect(questions: int) -> None:
            model.spend.expected = questions

        return await check(ask, judges, items, file, seed, repeats, expect), model.source(judges)
