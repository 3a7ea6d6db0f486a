"""Runs `rampgate suite report`: files of results or stored runs, the oldest first, with each slice's trend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from agents.ports import Unavailable
from rampgate.console import Failure, Format, plain, print_json, run
from rampgate.report.drawing import Course
from rampgate.report.files import check_paths
from rampgate.suite.opened import Opened, open_suite
from rampgate.suite.report.runs import WHOLE, runs_document, write_trend
from rampgate.suite.runs.named import named_run
from rampgate.suite.runs.stored import StoredRuns
from rampgate.tables import make_table
from schemas.counting import counted


@dataclass(frozen=True)
class Options:
    """The options of the command, under their own names."""

    runs: tuple[str, ...]
    score: str | None
    scale: tuple[float, float] | None
    reports: tuple[Path, ...]
    format: Format
    as_json: bool
    suite: Path | None = None
    store: str | None = None
    last: int = 20
    label: str | None = None
    smoke: bool = False


def report_runs(options: Options) -> int:
    """Report, and return 0: a trend decides nothing. Raises Failure."""
    check_paths(options.reports)
    if options.suite is None:
        told = runs_document(_files(options), options.score, options.scale)
    else:
        told = _stored(options, open_suite(options.suite, None, options.store, judged=False))
    write_trend(options.reports, told)
    if options.as_json or options.format is Format.JSON:
        print_json(told)
    else:
        _show(told)
    return 0


def _files(options: Options) -> list[Path]:
    if not options.runs:
        raise Failure("name files of results, the oldest first, or the suite whose stored runs are meant, --suite")
    return [Path(name) for name in options.runs]


def _stored(options: Options, opened: Opened) -> dict[str, Any]:
    """The document of the runs that a suite's store has, the named ones or the last. Raises Failure."""
    suite, wanted = opened.suite.file.suite, "smoke" if options.smoke else "full"
    try:
        store = opened.place.opened()
    except Unavailable as error:
        raise Failure(str(error)) from error
    try:
        names = list(options.runs)
        if not names:
            known = [
                one
                for one in run(partial(StoredRuns(store).of, suite))
                if one.set == wanted and options.label in (None, one.label)
            ]
            names = list(dict.fromkeys(one.results for one in known))[-options.last :]
        if not names:
            raise Failure(f"the store has no run of {suite} with its {wanted} set: `rampgate suite run` makes one")
        found = [named_run(name, store, suite, opened.home, smoke=True) for name in names]
    except Unavailable as error:
        raise Failure(str(error)) from error
    finally:
        store.close()
    told = runs_document([file for file, _ in found], options.score or opened.suite.file.score, options.scale)
    for shown, (_, stored) in zip(told["runs"], found, strict=True):
        if stored is not None:
            shown["run"] = f"{stored.at[:16]} {stored.label or stored.commit[:12]}".strip()
            shown |= {"hash": stored.results, "at": stored.at, "label": stored.label, "commit": stored.commit}
            shown["verdict"] = stored.verdict
    return told


def _show(told: Mapping[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    heads = ("Trend", ">First", ">Last", ">Change", ">Cases")
    table = make_table(f"{plain(told['score'])} over {counted(len(told['runs']), 'run')}", "Slice", *heads)
    for one in told["slices"]:
        first, last, change = one["means"][0], one["means"][-1], one["change"]
        figures = (
            "" if value is None else f"{value:{form}}"
            for value, form in ((first, ".3f"), (last, ".3f"), (change, "+.3f"))
        )
        table.add_row(plain(one["slice"] or WHOLE), Course(one["means"]).words(), *figures, f"{one['n'][-1]:,}")
    console.print(table)
