"""Rolls a judge back: takes its files from git, validates, writes, syncs and times it (PC5 FR-10, NFR-6, AC-7,
§5.7)."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from evalcore.registry.files import Tree
from evalcore.registry.registry import Registry
from evalcore.registry.rule_diff import Change, changes
from rampgate.cli.jobs.registry.findings import document, show_text
from rampgate.cli.jobs.registry.registries import read_registry, tree_of
from rampgate.cli.jobs.registry.rule_view import show_changes, show_plan
from rampgate.cli.jobs.registry.rules import agreed, chosen, finish, judges_named, progress_console
from rampgate.console import Failure, plain, print_json, run
from rampgate.logs import configure_logs
from rampgate.metrics_file import leave
from rampgate.registry.metrics import every_view
from rampgate.registry.rule_history import (
    NoHistory,
    before_last_change,
    changed_since,
    commit_of,
    require_committed,
    restore,
    tree_at,
)
from rampgate.registry.rule_sync import RuleSync
from rampgate.settings import Settings
from schemas.judges import judge_id
from streams.metrics import Metrics


@dataclass(frozen=True)
class Rollback:
    """The options of a rollback. `to` is a version in git; None: the one before the last change of the judge's
    files."""

    judge: str
    to: str | None = None
    vertical: str | None = None
    yes: bool = False
    dry_run: bool = False
    as_json: bool = False
    metrics_file: Path | None = None


def roll_back(settings: Settings, asked: Rollback) -> int:
    """Roll back, and return the exit code: 0 done, 1 the earlier version has an error (nothing was changed) or Opik
    refused it, 2 Opik can't do it. Raises Failure and NoHistory before anything was changed."""
    began = time.monotonic()
    configure_logs(settings.log_level, settings.log_format)
    root, now = settings.configs, tree_of(settings.configs)
    wanted = judge_id(asked.judge)
    commit = _version(root, asked, now)
    then = tree_at(root, commit)
    judges_named([wanted], _judges(now) | _judges(then))
    files = changed_since(root, commit, [wanted])
    require_committed(root, files)
    registry, result = read_registry(_as_at(now, then, files))
    if registry is None:
        if asked.as_json:
            print_json({"rolled_back": False, "to": commit, **document(result)})
        else:
            show_text(result)
            sys.stdout.write(f"nothing was changed: with {wanted} as at {commit[:12]} the files hold an error\n")
        return 1
    sync = RuleSync(settings, registry, chosen(settings, asked.vertical), {wanted})
    run(sync.look)
    sync.parts = [part for part in sync.parts if not (part.absent and asked.vertical is None)]
    if trouble := [part.trouble for part in sync.parts if part.trouble]:
        raise Failure(f"nothing was changed: {'; '.join(dict.fromkeys(trouble))}")
    console = progress_console(asked.as_json)
    found = _changes(now, registry)
    _show(console, wanted, commit, files, found)
    show_plan(sync.parts, console)
    told: dict[str, Any] = {
        "rolled_back": False,
        "dry_run": asked.dry_run,
        "judge": wanted,
        "to": commit,
        "files": [(root / file).as_posix() for file in files],
        "changes": [{**asdict(one), "vertical": one.vertical or None} for one in found],
        "worker": None,
    }
    if not asked.dry_run:
        go_on, waited = (
            agreed(asked.yes, "Write these files, and this to Opik?") if files or not sync.empty else (True, 0)
        )
        if not go_on:
            console.print("nothing was changed")
            return 0
        restore(root, commit, [wanted])
        run(sync.carry_out)
        told["worker"] = finish(settings, sync, registry, console)
        told["rolled_back"] = sync.exit_code == 0
        began += waited
    seconds = round(time.monotonic() - began, 3)
    if not asked.dry_run:
        _close(settings, asked, wanted, commit, files, sync, console, seconds)
    if asked.as_json:
        told["verticals"] = [part.document() for part in sync.parts]
        print_json({**told, "duration_seconds": seconds})
    return sync.exit_code


def _version(root: Path, asked: Rollback, now: Tree) -> str:
    """The commit to go back to. Raises NoHistory, and Failure for a judge that neither the files nor git know."""
    if asked.to is not None:
        return commit_of(root, asked.to)
    try:
        return before_last_change(root, asked.judge)
    except NoHistory:
        judges_named([asked.judge], _judges(now))
        raise


def _judges(tree: Tree) -> set[str]:
    return {judge_id(Path(name).stem) for name in tree.files if name.startswith("rules/")}


def _as_at(now: Tree, then: Tree, files: Sequence[Path]) -> Tree:
    """The files after the rollback: the changed ones as they were then, all others as they are now."""
    names = [file.as_posix() for file in files]
    kept = {name: content for name, content in now.files.items() if name not in names}
    return replace(now, files=kept | {name: then.files[name] for name in names if name in then.files})


def _changes(now: Tree, after: Registry) -> tuple[Change, ...]:
    """The values that the rollback changes; empty where today's files are too broken to compare."""
    before, _ = read_registry(now)
    return changes(every_view(before), every_view(after)) if before is not None else ()


def _show(console: Console, judge: str, commit: str, files: Sequence[Path], found: tuple[Change, ...]) -> None:
    if not files:
        console.print(f"the files of {plain(judge)} are as at {commit[:12]} already")
        return
    console.print(f"{plain(judge)} as at {commit[:12]}: " + plain(", ".join(map(str, files)), 1_000))
    show_changes(found, "What will change", console)


def _close(
    settings: Settings,
    asked: Rollback,
    judge: str,
    commit: str,
    files: Sequence[Path],
    sync: RuleSync,
    console: Console,
    seconds: float,
) -> None:
    """Report the state of files and Opik, and how to go on."""
    names = " ".join((settings.configs / file).as_posix() for file in files)
    if sync.exit_code == 0:
        metrics = Metrics()
        metrics.rollback_duration.observe(seconds)
        if asked.metrics_file is not None:
            leave(metrics, asked.metrics_file, "eval_rollback_duration_seconds")
        console.print(f"[green]rolled back[/] {plain(judge)} to {commit[:12]} in {seconds:.1f} s")
        if files:
            console.print(f"commit it: git add -A -- {plain(names, 1_000)} && git commit")
        return
    behind = [part.vertical.name for part in sync.parts if part.trouble or part.failed]
    ahead = [part.vertical.name for part in sync.parts if part.vertical.name not in behind]
    console.print(f"[red]half done[/]: the files of {plain(judge)} are as at {commit[:12]}, not committed")
    console.print(f"  Opik holds that version for: {plain(', '.join(ahead) or 'no vertical')}")
    console.print(f"  Opik does not for: {plain(', '.join(behind))}, for the reasons above")
    console.print(f"  to go on: rampgate rules rollback {plain(judge)} --to {commit[:12]}")
    if names:
        console.print(f"  to go back: git restore -- {plain(names, 1_000)} && rampgate rules sync")
