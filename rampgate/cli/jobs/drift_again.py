"""Runs `rampgate check drift` on stored outputs: has the judges judge them again, or captures their baseline."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry, UnknownJudge
from rampgate.asking import NO_MODEL
from rampgate.checks.datasets import items_to_judge
from rampgate.checks.drift import Options, compared, report
from rampgate.checks.stored_outputs import (
    Stored,
    asked_judges,
    baseline_file,
    changed_judges,
    columns,
    judged,
    limits,
    read_baseline,
    write_baseline,
)
from rampgate.ci_gate.inputs import BadFile
from rampgate.command import read_registry, read_tree
from rampgate.console import Failure, print_json, run
from rampgate.logs import configure_logs
from rampgate.registry.rule_history import tree_at
from rampgate.registry.view import require_vertical
from rampgate.report.files import check_paths
from rampgate.settings import Settings
from rampgate.settings_sources import load_settings
from schemas.counting import counted

NOW, BEFORE = Path("now"), Path("before")


def ask_again(options: Options) -> int:
    """Ask, report, and return the exit code. Raises Failure, and NoHistory for a version that git has not."""
    check_paths(options.reports)
    if options.baseline is not None:
        raise Failure("give files of scores, or outputs for the judges, not both")
    settings = load_settings({"configs": options.configs, "model_url": options.model})
    configure_logs("error", "console")
    tree = read_tree(settings.configs)
    registry, found = read_registry(tree)
    if registry is None:
        raise Failure(
            f"{settings.configs}: {counted(len(found.errors), 'error')}; `rampgate rules validate` shows them"
        )
    if options.vertical is not None:
        require_vertical(options.vertical, registry.verticals)
    judges = _wanted(options, registry)
    before = None
    if options.base is not None:
        earlier = tree_at(settings.configs, options.base)
        before, _ = read_registry(earlier)
        changed = {judge.id for judge in changed_judges(earlier, tree, registry, options.vertical)}
        judges = [judge for judge in judges if judge.id in changed]
    if settings.model_url is None:
        raise Failure(NO_MODEL)
    stored = Stored(items_to_judge(options.outputs, registry, options.seed or "", options.items))
    file = options.baselines or baseline_file(settings, options.vertical)
    if options.capture is not None:
        return _capture(options, settings, judges, stored, file)
    about = {"base": options.base, "baseline": str(file), "items": len(stored.items)}
    if not judges:
        sys.stderr.write("no judge is to be checked\n")
        return report([], options, registry, about)
    (now,) = run(partial(judged, settings, judges, stored.items, beside=file))
    asked = {judge.id for judge in judges}
    try:
        then, versions = read_baseline(file, stored) if file.exists() else ({}, {})
        wanted = {name: column for name, column in then.items() if name.partition(".")[0] in asked}
        missing = _known([name for name in asked if name not in wanted], before, options.vertical)
        if missing:
            (said,) = run(partial(judged, settings, missing, stored.items, beside=file, purpose="before"))
            wanted |= columns(said, BEFORE, {})
        checked = compared(wanted, columns(now, NOW, wanted), registry, options.vertical, before)
    except BadFile as error:
        raise Failure(str(error)) from error
    known = {name: sorted(said_by) for name, said_by in versions.items() if name in asked}
    more = {"baseline_versions": known, "judged_at_base": sorted(judge.id for judge in missing)}
    return report(checked, options, registry, {**about, **more})


def _known(names: Sequence[str], registry: Registry | None, vertical: str | None) -> list[Judge]:
    """Those of the judges that the version before a change has: they say what it makes of the outputs."""
    rules = registry.rules() if registry is not None else []
    return asked_judges([registry.judge(name, vertical) for name in names if name in rules]) if registry else []


def _capture(options: Options, settings: Settings, judges: Sequence[Judge], stored: Stored, file: Path) -> int:
    runs = run(partial(judged, settings, judges, stored.items, options.capture or 1, beside=file, purpose="capture"))
    write_baseline(file, runs[-1], judges, stored.hashes())
    derived = limits(runs, judges)
    document = []
    for judge in judges:
        said = runs[-1].get(judge.id, {})
        unscored = sum(score is None for score in said.values())
        about = {"judge_id": judge.id, "judge_version": judge.version, "items": len(said), "unscored": unscored}
        document.append({**about, "kl_limit": derived[judge.id]})
    if options.as_json:
        print_json({"judges": document, "written": str(file), "runs": len(runs), "items": len(stored.items)})
        return 0
    for one in document:
        limit = f"limit {one['kl_limit']:.4g}" if one["kl_limit"] is not None else "no limit: that takes two runs"
        sys.stdout.write(f"{one['judge_id']}: {one['items']} items, {one['unscored']} unscored, {limit}\n")
    sys.stdout.write(f"written: {file}\n")
    return 0


def _wanted(options: Options, registry: Registry) -> list[Judge]:
    try:
        named = [registry.judge(name, options.vertical) for name in dict.fromkeys(options.judges)]
    except UnknownJudge as error:
        raise Failure(f"--judge: {error}") from error
    return asked_judges(named or list(registry.all(options.vertical)))
