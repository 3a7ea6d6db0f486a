"""Runs `rampgate suite prune`: takes away what a suite's store in a file holds and nobody has used for days."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from agents.ports import Unavailable
from rampgate.ci_gate.inputs import BadFile, file_as
from rampgate.console import Failure, plain, print_json, run
from rampgate.settings_sources import load_settings
from rampgate.store.file_pruning import FilePruning
from rampgate.store.place import Place, place_of
from rampgate.store.sealed import SealedStore
from rampgate.store.sqlite_file import STORE
from rampgate.suite.opened import FOLDER
from rampgate.suite.prune.needed import Needed, needed, without_owner
from rampgate.suite.runs.stored import DAY
from schemas.checks.suite import SuiteFile

KINDS: Final = ("runs", "results", "answers", "scores", "traces")


@dataclass(frozen=True)
class Options:
    """The options of the command. `unsealed`: runs that do not bear our seal go like any other value."""

    suite: Path
    days: int
    store: str | None
    dry_run: bool
    unsealed: bool
    as_json: bool


def prune_suite(options: Options) -> int:
    """Prune, tell what went, and return 0. Raises Failure."""
    try:
        suite = file_as(SuiteFile, options.suite).suite
    except BadFile as error:
        raise Failure(str(error)) from error
    place = place_of(options.store, options.suite.parent / FOLDER / STORE, load_settings())
    if "://" in place.where:
        raise Failure(
            "the store is no file, so there is nothing to prune: a bucket forgets by lifecycle rules: answers/, "
            "scores/ and traces/ need one, runs/ and results/ a longer"
        )
    if not place.exists:
        raise Failure(f"{place.where}: there is no such store; it is the file that `suite run` keeps its answers in")
    told = _pruned(options, suite, place)
    if options.as_json:
        print_json(told)
    else:
        _show(told)
    return 0


def _pruned(options: Options, suite: str, place: Place) -> dict[str, Any]:
    try:
        shelf = FilePruning(Path(place.where))
        store = SealedStore(shelf, place.secret)
        try:
            return run(partial(_prune, options, suite, shelf, store))
        finally:
            store.close()
    except Unavailable as error:
        raise Failure(str(error)) from error


async def _prune(options: Options, suite: str, shelf: FilePruning, store: SealedStore) -> dict[str, Any]:
    before = _today() - options.days
    size = await shelf.size()
    stays = await needed(store, suite, before)
    known = {*stays.names, *stays.going}
    strange = [name for name in await shelf.names("runs") if name not in known]
    if strange and not options.unsealed:
        raise Failure(
            f"{shelf.shown}: {len(strange):,} runs lack the seal of RAMPGATE_SEAL_KEY, so that nobody can tell whether "
            "main's last is among them: give the key that they were made with, or, if nobody has it any more, "
            "--unsealed; nothing was taken away"
        )
    undated = await shelf.date(note=not options.dry_run)
    removed, share = await _removed(options, before, stays, shelf, store)
    not_shrunk = None if options.dry_run else await shelf.shrink()
    left = {kind: len(await shelf.names(kind)) for kind in KINDS}
    return {
        "suite": suite,
        "store": shelf.shown,
        "older_than_days": options.days,
        "dry_run": options.dry_run,
        "removed": removed,
        "kept": {kind: many - (removed[kind] if options.dry_run else 0) for kind, many in left.items()},
        "baselines": [
            {"suite": one.suite, "set": one.set, "commit": one.commit, "at": one.at, "results": one.results}
            for one in stays.baselines
        ],
        "undated": undated,
        "bytes": {"before": size, "after": round(size * (1 - share)) if options.dry_run else await shelf.size()},
        "not_shrunk": not_shrunk,
    }


def _today() -> int:
    return int(time.time() // DAY)


async def _removed(
    options: Options, before: int, stays: Needed, shelf: FilePruning, store: SealedStore
) -> tuple[dict[str, int], float]:
    """How many values of each kind go, and, where nothing is done, their share of the file. A run goes before its
    results, an answer before its trace: whenever this is killed, what is there is whole."""
    known, removed, share = {*stays.names, *stays.going}, dict[str, int](), 0.0
    unused = [name for name in await shelf.unused(before) if name not in known]
    for kind in KINDS:
        names = [name for name in unused if name.startswith(f"{kind}:")]
        if kind == "traces" and names:
            gone = {*unused} if options.dry_run else set[str]()
            names = await without_owner(names, [one for one in await shelf.names("answers") if one not in gone], store)
        going = stays.going if kind == "runs" else ()
        if options.dry_run:
            removed[kind] = len(names) + len(going)
            share += await shelf.share_of([*going, *names])
        else:
            removed[kind] = await shelf.take(going) + await shelf.take(names, before)
    return removed, share


def _show(told: Mapping[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    removed, size = told["removed"], told["bytes"]
    words = ", ".join(f"{removed[kind]:,} {kind}" for kind in KINDS)
    console.print(f"{'would take' if told['dry_run'] else 'took'} away of {plain(told['store'], 500)}: {words}")
    console.print(f"{'about ' if told['dry_run'] else ''}{size['after']:,} bytes of {size['before']:,} are left")
    for one in told["baselines"]:
        at = ", ".join(filter(None, (plain(one["commit"])[:12], one["at"])))
        console.print(f"stays: the baseline of {plain(one['suite'])}, {one['set']} set ({at})")
    if told["undated"]:
        console.print(f"{told['undated']:,} values are of a release that noted no day: they count as used today")
    if told["not_shrunk"]:
        console.print(f"the file's free room stays in it: {plain(told['not_shrunk'])}")
