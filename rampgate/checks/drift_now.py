"""Has judges judge stored outputs again, to compare with their calibration, or captures that baseline (PF-9 FR-13)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry
from rampgate.asking import NO_MODEL, asked_judges, judges_named
from rampgate.checks.datasets import items_to_judge
from rampgate.checks.drift_scores import compared, found
from rampgate.checks.stored_outputs import (
    Stored,
    baseline_file,
    changed_judges,
    columns,
    judged,
    limits,
    read_baseline,
    write_baseline,
)
from rampgate.command import Context, Document, read_registry
from rampgate.console import Failure, run
from rampgate.registry.rule_history import tree_at
from rampgate.registry.view import require_vertical

NOW, BEFORE = Path("now"), Path("before")


class Asked(NamedTuple):
    """The options of the command. `seed` makes the items where no file of `outputs` has them."""

    context: Context
    outputs: Path | None
    seed: str
    items: int
    base: str | None
    judges: tuple[str, ...]
    baselines: Path | None
    vertical: str | None

    def stored(self) -> Stored:
        """The outputs. Raises Failure, also where there is no model to ask about them."""
        if self.context.settings.model_url is None:
            raise Failure(NO_MODEL)
        return Stored(items_to_judge(self.outputs, self.context.registry, self.seed, self.items))

    @property
    def file(self) -> Path:
        return self.baselines or baseline_file(self.context.settings, self.vertical)

    def wanted(self) -> list[Judge]:
        """The judges that are named, else all that ask a model. Raises Failure for one that is not registered."""
        registry = self.context.registry
        if self.vertical is not None:
            require_vertical(self.vertical, registry.verticals)
        return asked_judges(judges_named(registry, self.judges, self.vertical))


def compare_now(asked: Asked) -> Document:
    """Ask, and compare with the baseline. Raises Failure, and NoHistory for a version that git has not."""
    settings, registry, vertical, file = asked.context.settings, asked.context.registry, asked.vertical, asked.file
    judges, before = asked.wanted(), None
    if asked.base is not None:
        earlier = tree_at(settings.configs, asked.base)
        before, _ = read_registry(earlier, asked.context.today)
        changed = {judge.id for judge in changed_judges(earlier, asked.context.tree, registry, vertical)}
        judges = [judge for judge in judges if judge.id in changed]
    stored = asked.stored()
    about = {"base": asked.base, "baseline": str(file), "items": len(stored.items)}
    if not judges:
        sys.stderr.write("no judge is to be checked\n")
        return found([], vertical, registry, about)
    (now,) = run(partial(judged, settings, judges, stored.items, beside=file))
    names = {judge.id for judge in judges}
    then, versions = read_baseline(file, stored) if file.exists() else ({}, {})
    wanted = {name: column for name, column in then.items() if name.partition(".")[0] in names}
    missing = _known([name for name in names if name not in wanted], before, vertical)
    if missing:
        (said,) = run(partial(judged, settings, missing, stored.items, beside=file, purpose="before"))
        wanted |= columns(said, BEFORE, {})
    checked = compared(wanted, columns(now, NOW, wanted), registry, vertical, before)
    known = {name: sorted(said_by) for name, said_by in versions.items() if name in names}
    more = {"baseline_versions": known, "judged_at_base": sorted(judge.id for judge in missing)}
    return found(checked, vertical, registry, {**about, **more})


def capture_baseline(asked: Asked, runs_wanted: int) -> Document:
    """Ask so often, write the last run as the baseline, and derive the limits."""
    judges, stored = asked.wanted(), asked.stored()
    file = asked.file
    asking = partial(judged, asked.context.settings, judges, stored.items, runs_wanted, beside=file, purpose="capture")
    runs = run(asking)
    write_baseline(file, runs[-1], judges, stored.hashes())
    derived = limits(runs, judges)
    captured = []
    for judge in judges:
        said = runs[-1].get(judge.id, {})
        unscored = sum(score is None for score in said.values())
        about = {"judge_id": judge.id, "judge_version": judge.version, "items": len(said), "unscored": unscored}
        captured.append({**about, "kl_limit": derived[judge.id]})
    return Document({"judges": captured, "written": str(file), "runs": len(runs), "items": len(stored.items)})


def _known(names: Sequence[str], registry: Registry | None, vertical: str | None) -> list[Judge]:
    """Those of the judges that the version before a change has: they say what it makes of the outputs."""
    rules = registry.rules() if registry is not None else []
    return asked_judges([registry.judge(name, vertical) for name in names if name in rules]) if registry else []
