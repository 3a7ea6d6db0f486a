"""Asks judges again and again about the same items, and says how much each disagrees with itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from evalcore.judges.evaluator import Task
from evalcore.registry import disk
from evalcore.registry.files import NOISE
from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Judgement, Scored, Unscored
from evalcore.scoring.assignments import assign, task_of, unscorable
from evalcore.scoring.items import Item
from evalcore.stats.retest import Retest, retest
from rampgate.asking import asked_judges, asking, judges_named
from rampgate.console import Failure, plain
from rampgate.files import replace_file
from rampgate.settings import Settings
from schemas.judges import Noise, NoiseFile, ScoreType, judge_id

HEAD = """\
# yaml-language-server: $schema=../docs/schemas/judge-noise.json
# How much each judge disagrees with itself: `rampgate check noise --write` measures it. Verdicts tell by it what a
# sample could have seen, and how often a clean candidate passes (docs/judging.md).
"""
FEWEST = 0.9
"""The share of a judge's answers that have to be scores. What fails is not chosen by chance."""
Asking = Callable[[Sequence[Task]], Awaitable[Sequence[Judgement]]]


@dataclass(frozen=True)
class Measured:
    """One judge's noise; `noise` is None where `why` says why it is unknown."""

    judge: Judge
    noise: Noise | None
    unscored: int
    why: str = ""

    def document(self) -> dict[str, Any]:
        about = {"judge_id": self.judge.id, "judge_version": self.judge.version, "unscored": self.unscored}
        noise = self.noise.model_dump(mode="json", exclude={"judge", "judge_version"}) if self.noise else {}
        return {**about, **noise, "reason": self.why}


async def measure(asking: Sequence[Asking], judges: Sequence[Judge], items: Sequence[Item]) -> list[Measured]:
    """Returns each judge's noise over its items, of which each of `asking` gives one answer.

    A failing answer is not confirmed here: a single one's noise is measured.
    """
    single = [replace(judge, rule=judge.rule.model_copy(update={"confirmation": None})) for judge in judges]
    pairs = [(judge, item) for judge, item in assign(single, items) if not unscorable(judge, item)]
    rounds = [await ask([task_of(judge, item) for judge, item in pairs]) for ask in asking]
    told = list(zip(pairs, zip(*rounds, strict=True), strict=True)) if pairs else []
    return [
        _of(judge, [said for (asked, _), said in told if asked.id == judge.id], len(asking)) for judge in judges
    ]  # fmt: skip


def write_noise(path: Path, entries: Sequence[Noise]) -> Path:
    """Put the entries in the place of those of the same judges, and write the file whole. Raises Failure."""
    try:
        before = NoiseFile.model_validate(yaml.safe_load(path.read_text()) or {}).measured if path.exists() else []
        ours = {judge_id(one.judge) for one in entries}
        kept = [one for one in before if judge_id(one.judge) not in ours]
        whole = NoiseFile(measured=sorted([*kept, *entries], key=lambda one: one.judge))
        content = whole.model_dump(mode="python", exclude_none=True)
        replace_file(path, HEAD + yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise Failure(f"{path}: can't be written: {plain(error)}") from error
    return path


async def measured(settings: Settings, judges: Sequence[Judge], items: Sequence[Item], asks: int) -> list[Measured]:
    async with asking(settings, "noise", judges, items, asks, beside=settings.configs / NOISE) as model:

        async def ask(number: int, tasks: Sequence[Task]) -> Sequence[Judgement]:
            model.spend.expected = asks * len(tasks)
            return await model.ask(tasks, f"round {number}")

        return await measure([partial(ask, number) for number in range(asks)], judges, items)


def _of(judge: Judge, said: Sequence[Sequence[Judgement]], asks: int) -> Measured:
    answers = [[one.answer.value for one in item if isinstance(one.answer, Scored)] for item in said]
    missing = [one.answer for item in said for one in item if isinstance(one.answer, Unscored)]
    if len(missing) > (1 - FEWEST) * asks * len(said):
        return Measured(judge, None, len(missing), f"{len(missing)} answers are missing: {missing[0].reason}")
    found = retest(answers, judge.score_type is ScoreType.BOOLEAN)
    if found is None:
        return Measured(judge, None, len(missing), "no item has two scores")
    return Measured(judge, _entry(judge, found, asks), len(missing))


def _entry(judge: Judge, found: Retest, asks: int) -> Noise:
    def ends(interval: tuple[float, float] | None) -> list[float] | None:
        return [round(end, 6) for end in interval] if interval is not None else None

    numbers = {name: round(value, 6) for name, value in asdict(found).items() if isinstance(value, float)}
    return Noise(
        judge=judge.id, judge_version=judge.version, measured_on=disk.today(), items=found.items, asks=asks,
        flip_rate=numbers["flips"], flip_rate_ci95=ends(found.flips_ci95),
        deviation=numbers["deviation"], deviation_ci95=ends(found.deviation_ci95),
        false_alarm_rate=numbers.get("false_alarms"), false_alarm_ci95=ends(found.false_alarms_ci95),
        miss_rate=numbers.get("misses"), correlation=numbers["correlation"],
    )  # fmt: skip


def judges_that_ask(registry: Registry, names: Sequence[str]) -> list[Judge]:
    """The named judges that ask a model; without a name all. Raises Failure."""
    found = asked_judges(judges_named(registry, names))
    if not found:
        raise Failure("no judge asks a model: there is no noise to measure")
    return found
