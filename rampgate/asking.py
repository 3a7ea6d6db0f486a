"""Asks judges' model outside a gate, past all kept answers: the checks of the judges themselves, and calibrations.

A round is answered again by the model: nothing remembers the one before, and the shared cache is not among its ports.
The run shows its progress and cost, and goes on where a killed one was (`rampgate.unfinished`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from evalcore.judges.evaluator import Task
from evalcore.judges.kinds import needs_model
from evalcore.registry.judge import Judge, digest
from evalcore.registry.registry import Registry, UnknownJudge
from evalcore.scoring.answers import Judgement
from evalcore.scoring.calls import Spend
from evalcore.scoring.items import Item
from evalcore.scoring.runner import Scorer
from rampgate.console import Failure
from rampgate.judging import scorer_of
from rampgate.progress import Progress
from rampgate.settings import Settings
from rampgate.unfinished import Unfinished, unfinished

NO_MODEL = "no judges' model is configured: set RAMPGATE_MODEL_URL"


def judges_named(registry: Registry, names: Sequence[str], vertical: str | None = None) -> list[Judge]:
    """The judges that `--judge` names, as the vertical sees them; all without a name. Raises Failure for one that is
    not registered."""
    try:
        return [registry.judge(name, vertical) for name in dict.fromkeys(names)] or list(registry.all(vertical))
    except UnknownJudge as error:
        raise Failure(f"--judge: {error}") from error


def asked_judges(judges: Sequence[Judge]) -> list[Judge]:
    """Those that ask a model. Others are code, which answers alike each time."""
    return [judge for judge in judges if judge.fires and needs_model(judge)]


class Asking:
    """Judges' model, for as long as a run lasts. `spend` counts its questions and what they cost."""

    def __init__(self, what: str, scorer: Scorer, work: Unfinished, spend: Spend) -> None:
        self._what, self._scorer, self._work, self.spend = what, scorer, work, spend

    def source(self, judges: Sequence[Judge]) -> str:
        """Where these judges' models are."""
        return ", ".join(dict.fromkeys(self._scorer.source(judge.rule.model) for judge in judges))

    async def ask(self, tasks: Sequence[Task], round_name: str) -> list[Judgement]:
        """Judgements in the order of the tasks. Rounds of other names are asked again; one of the same name goes on
        with what it has."""
        self._scorer.forget(self._work.part(round_name))
        return await self._scorer.score(self._what, tasks, spend=self.spend)


@asynccontextmanager
async def asking(
    settings: Settings,
    what: str,
    judges: Sequence[Judge],
    items: Sequence[Item],
    *inputs: object,
    beside: Path | None = None,
    total: int = 0,
) -> AsyncIterator[Asking]:
    """Yields the judges' model. `total` is how many questions there will be, where that is known. Answers of a run that
    is killed stand `beside` that file for the next one with the same judges, items and other `inputs`. Raises Failure
    without a model."""
    spend = Spend()
    spend.expected = total
    known = [what, settings.model_url, [(one.id, one.version) for one in judges], [digest(one.source) for one in items]]
    async with scorer_of(settings) as scorer:
        if scorer is None:
            raise Failure(NO_MODEL)
        with unfinished(beside, known, *inputs) as work, Progress(what, unit="questions", spend=spend):
            yield Asking(what, scorer, work, spend)
