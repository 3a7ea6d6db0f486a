"""Runs `rampgate check canaries`: reads judges and items, asks the model, and reports whom planted texts move."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from evalcore.canaries.check import CLASSES, Checked, asked, check
from evalcore.canaries.shift import ALPHA
from evalcore.judges.evaluator import Task
from evalcore.registry import disk
from evalcore.registry.files import CANARIES
from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry, UnknownJudge
from evalcore.reloading import BrokenRegistry, ReloadingRegistry
from evalcore.scoring.answers import Judgement
from evalcore.scoring.items import Item
from rampgate.asking import NO_MODEL, asking
from rampgate.checks.datasets import items_to_judge
from rampgate.checks.standing import append_standings, publish
from rampgate.console import Failure, plain, print_json, run
from rampgate.logs import configure_logs
from rampgate.settings import Settings
from rampgate.settings_sources import load_settings
from rampgate.tables import make_table
from schemas.checks.canaries import CanaryFile
from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord
from schemas.counting import counted

VERDICTS = {True: CheckVerdict.PASSED, False: CheckVerdict.SUSPENDED, None: CheckVerdict.UNDECIDED}
RESULTS = {True: "holds", False: "moved", None: "undecided"}


@dataclass(frozen=True)
class Options:
    """The options of the command."""

    judges: tuple[str, ...]
    items: int
    dataset: Path | None
    repeats: int
    seed: str | None
    model: str | None
    publish: bool
    standing: Path | None
    kafka: str | None
    configs: Path | None
    as_json: bool


@dataclass(frozen=True)
class CanaryRun:
    """A check that was run. `skipped` are judges that ask no model, so that no text talks to them."""

    results: Sequence[Checked]
    skipped: Sequence[str]
    seed: str
    repeats: int
    items: int
    source: str
    at: str
    config_hash: str

    @property
    def moved(self) -> list[Checked]:
        return [one for one in self.results if one.passed is False]

    def records(self) -> list[StandingRecord]:
        """What is published of it. A judge that gave no score is undecided: it stays as it stood."""
        return [
            StandingRecord(
                event_id=str(uuid.uuid4()),
                judge_id=one.judge.id,
                judge_version=one.judge.version,
                model=one.judge.rule.model,
                reason=CheckedFor.CANARIES,
                verdict=VERDICTS[one.passed],
                message=one.reason,
                at=datetime.fromisoformat(self.at),
            )
            for one in self.results
        ]

    def document(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "seed": self.seed,
            "repeats": self.repeats,
            "items": self.items,
            "classes": list(CLASSES),
            "model": self.source,
            "alpha": ALPHA,
            "config_hash": self.config_hash,
            "moved_count": len(self.moved),
            "judges": [one.document() for one in self.results],
            "skipped": list(self.skipped),
        }


def check_canaries(options: Options) -> int:
    """Run the check, report it and return the exit code. Raises Failure."""
    settings = load_settings({"configs": options.configs, "model_url": options.model, "kafka": options.kafka})
    if settings.model_url is None:
        raise Failure(NO_MODEL)
    configure_logs("error", "console")
    registry = _registry(settings)
    file = read_file(settings.configs, registry)
    wanted = _judges(registry, options.judges)
    judges = asked(wanted)
    seed = options.seed or disk.today().isoformat()
    items = items_to_judge(options.dataset, registry, seed, options.items)
    done = run(partial(_asked, settings, judges, items, file, seed, options.repeats))
    results, source = done
    if not any(one.found for one in results):
        raise Failure(f"no judge could be asked: {'; '.join(sorted({one.why for one in results})) or 'there is none'}")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    skipped = [one.id for one in wanted if one not in judges]
    outcome = CanaryRun(results, skipped, seed, options.repeats, len(items), source, at, registry.config_hash)
    if options.standing is not None:
        append_standings(options.standing, outcome.records())
    if options.publish:
        publish(settings, outcome.records())
    print_json(outcome.document()) if options.as_json else _show(outcome)
    return 0 if all(one.passed for one in results) else 1


def read_file(configs: Path, registry: Registry) -> CanaryFile:
    """The planted texts and limits of a registry. Raises Failure, which names the file."""
    if registry.canaries is None:
        raise Failure(f"{configs / CANARIES}: no such file: it holds the planted texts and the limits")
    return registry.canaries


async def _asked(
    settings: Settings, judges: Sequence[Judge], items: Sequence[Item], file: CanaryFile, seed: str, repeats: int
) -> tuple[list[Checked], str]:
    known = (seed, repeats, file.model_dump(mode="json"))
    async with asking(settings, "canaries", judges, items, *known, beside=settings.configs / CANARIES) as model:
        rounds = count()

        async def ask(tasks: Sequence[Task]) -> list[Judgement]:
            return await model.ask(tasks, f"round {next(rounds)}")

        def expect(questions: int) -> None:
            model.spend.expected = questions

        return await check(ask, judges, items, file, seed, repeats, expect), model.source(judges)


def _registry(settings: Settings) -> Registry:
    try:
        return ReloadingRegistry(settings.configs, ttl=None).current()
    except BrokenRegistry as error:
        raise Failure(f"{error}; `rampgate manifest validate` shows all findings") from error


def _judges(registry: Registry, names: Sequence[str]) -> list[Judge]:
    if not names:
        return [judge for judge in registry.all() if judge.fires]
    try:
        return [registry.judge(name) for name in dict.fromkeys(names)]
    except UnknownJudge as error:
        raise Failure(f"--judge: {error}") from error


def _show(outcome: CanaryRun) -> None:
    from rich.console import Console

    title = f"Canaries, seed {outcome.seed}, {counted(outcome.items, 'item')}, {outcome.source}"
    table = make_table(plain(title), "Judge", "Result", "Why")
    colours = {True: "green", False: "red", None: "yellow"}
    for one in outcome.results:
        result = f"[{colours[one.passed]}]{RESULTS[one.passed]}[/]"
        table.add_row(plain(one.judge.id), result, plain(one.reason, 400))
    console = Console(highlight=False)
    console.print(table)
    if outcome.skipped:
        console.print(plain(f"not asked, since they ask no model: {', '.join(outcome.skipped)}", 2_000))
