"""Syncs rules to Opik: validates, shows the plan, asks, writes what differs, tells the worker.

`rampgate manifest sync` uses `sync_rules` too: it syncs all judges.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from evalcore.registry.registry import Registry
from rampgate.cli.jobs.registry.findings import document, show_text
from rampgate.cli.jobs.registry.registries import absolute, read_registry, registry_of, tree_of
from rampgate.cli.jobs.registry.rule_view import show_done, show_plan
from rampgate.console import Failure, print_json, run
from rampgate.logs import configure_logs
from rampgate.metrics_file import leave
from rampgate.registry.rule_sync import RuleSync
from rampgate.registry.verticals import load_verticals
from rampgate.registry.view import UnknownName, require_vertical
from rampgate.settings import Settings
from rampgate.settings_sources import load_settings
from schemas.judges import judge_id
from schemas.verticals import Vertical
from streams.metrics import Metrics

NO_TERMINAL = "nothing was changed: there is no terminal to ask on; --yes goes ahead, --dry-run only shows the plan"


@dataclass(frozen=True)
class SyncAsked:
    """The options of a sync. `only`: ids of the judges to sync, None for all; `beside`: more fields of `--json`."""

    vertical: str | None = None
    only: frozenset[str] | None = None
    yes: bool = False
    dry_run: bool = False
    as_json: bool = False
    metrics_file: Path | None = None
    beside: Mapping[str, Any] = field(default_factory=dict)


def sync_rules(settings: Settings, asked: SyncAsked) -> int:
    """Sync, and return the exit code: 0 done or nothing to do, 1 a file has an error or Opik refused a rule, 2 a
    vertical's project can't be reached or written. Raises Failure where it has to ask and there is no terminal."""
    began = time.monotonic()
    configure_logs(settings.log_level, settings.log_format)
    registry, result = read_registry(tree_of(settings.configs))
    if registry is None:
        if asked.as_json:
            print_json({"synced": False, **document(result)})
        else:
            show_text(result)
            sys.stdout.write("nothing is synced: the files hold an error\n")
        return 1
    sync = RuleSync(settings, registry, chosen(settings, asked.vertical), asked.only)
    run(sync.look)
    console = progress_console(asked.as_json)
    show_plan(sync.parts, console)
    waited = 0.0
    worker = None
    if not asked.dry_run:
        go_on, waited = (True, 0.0) if sync.empty else agreed(asked.yes, "Write this to Opik?")
        if not go_on:
            console.print("nothing was changed")
            return 0
        run(sync.carry_out)
        worker = finish(settings, sync, registry, console)
    seconds = round(time.monotonic() - began - waited, 3)
    if asked.metrics_file is not None:
        metrics = Metrics()
        metrics.rules_sync_duration.observe(seconds)
        leave(metrics, asked.metrics_file, "rampgate_rules_sync_duration_seconds")
    if asked.as_json:
        print_json(
            {
                "synced": not asked.dry_run and sync.exit_code == 0,
                "dry_run": asked.dry_run,
                "config_hash": registry.config_hash,
                "verticals": [part.document() for part in sync.parts],
                "worker": worker,
                "duration_seconds": seconds,
                **asked.beside,
            }
        )
    return sync.exit_code


def create_rule(
    name: str,
    file: Path,
    vertical: str | None,
    dry_run: bool,
    as_json: bool,
    opik: str | None,
    metrics_file: Path | None,
) -> int:
    """Sync one rule by its file in the registry (PC5 FR-9: files come first).

    Raises Failure for a file outside a registry's rules, or of another judge.
    """
    if not file.is_file():
        raise Failure(f"--file {file}: no such file")
    root = registry_of(file)
    place = absolute(file).relative_to(absolute(root)).parts if root is not None else ()
    if root is None or len(place) not in (2, 3) or place[0] != "rules":
        raise Failure(
            f"--file {file}: is no rule file of a registry; put it into the registry's rules/ first (PC5 FR-9)"
        )
    if len(place) == 3:
        if vertical not in (None, place[1]):
            raise Failure(f"--file {file}: is a file of vertical {place[1]}, and not of {vertical}")
        vertical = place[1]
    registry, _ = read_registry(tree_of(root))
    judge = judge_id(file.stem)
    known = {judge, registry.judge(judge).rule.name.lower()} if registry and judge in registry.rules() else {judge}
    if judge_id(name) not in known and name.lower() not in known:
        raise Failure(f"--name {name}: {file} is the rule file of {judge}; name that one")
    settings = load_settings({"configs": root, "opik": opik})
    return sync_rules(settings, SyncAsked(vertical, frozenset({judge}), True, dry_run, as_json, metrics_file))


def chosen(settings: Settings, name: str | None) -> list[Vertical]:
    """The registered verticals, or the named one. Raises Failure, also where none is registered."""
    verticals = load_verticals(settings.configs)
    if name is None:
        if not verticals:
            raise Failure(
                f"{settings.configs}/verticals: no vertical is registered; a file there names its Opik project"
            )
        return list(verticals.values())
    require_vertical(name, verticals)
    return [verticals[name]]


def progress_console(as_json: bool) -> Console:
    """The console for plan and progress: on stderr where stdout carries a JSON document."""
    return Console(stderr=as_json, soft_wrap=True, highlight=False)


def agreed(yes: bool, question: str) -> tuple[bool, float]:
    """The user's answer, and the seconds it took. Raises Failure where there is no terminal to ask on."""
    if yes:
        return True, 0.0
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Failure(NO_TERMINAL)
    asked = time.monotonic()
    return typer.confirm(question, err=True), time.monotonic() - asked


def finish(settings: Settings, sync: RuleSync, registry: Registry, console: Console) -> dict[str, Any]:
    """Report what was written, and have a running worker read the files again (PC5 §5.7 step 4, AC-7)."""
    if sync.empty and sync.exit_code == 0:
        console.print("[green]nothing to do[/]: Opik holds what the files say")
    else:
        show_done(sync.parts, console)
    worker = refreshed(settings, registry.config_hash)
    console.print(f"worker: {worker['message']}", markup=False)
    return worker


def refreshed(settings: Settings, config_hash: str) -> dict[str, Any]:
    """The answer of the worker at RAMPGATE_HTTP. A missing worker is no failure: it may run elsewhere, or start
    later."""
    from rampgate.cli.jobs.registry.refresh import request_refresh

    try:
        done = request_refresh(settings)
    except Failure as error:
        message = f"not told: {error}. {_otherwise(settings)}, at once on `rampgate refresh --http ADDRESS` or SIGHUP"
        return {"outcome": "unreachable", "config_hash": None, "message": message}
    message = f"{done.outcome}: {done.message}"
    if done.config_hash != config_hash:
        message += f"; it does not serve what was synced ({config_hash}): are the files there the same?"
    return {"outcome": done.outcome, "config_hash": done.config_hash, "message": message}


def _otherwise(settings: Settings) -> str:
    every = settings.registry_ttl_seconds
    return f"A running one reads the files every {every:g} s" if every else "A running one reads the files when told to"


def judges_named(names: Iterable[str], known: Collection[str]) -> frozenset[str]:
    """The judges' ids, normalized. Raises Failure for an unknown judge."""
    ids = frozenset(map(judge_id, names))
    for name in sorted(ids - set(known)):
        raise Failure(str(UnknownName("judge", name, known)))
    return ids
