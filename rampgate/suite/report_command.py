"""Runs `rampgate suite report`: files of results or stored runs, the oldest first, with each slice's trend."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure, run
from rampgate.options import StoreOption

if TYPE_CHECKING:
    from rampgate.suite.opened import Opened
    from rampgate.suite.runs.stored import StoredRun


@command("rampgate.suite.report.runs:trend_report")
def report(
    context: Context,
    runs: Annotated[
        list[str] | None,
        Argument(metavar="[RUN...]", help="files of results, the oldest first; with --suite stored runs, too"),
    ] = None,
    suite: Annotated[Path | None, Option(help="its stored runs; without RUN the last ones, of all cases")] = None,
    last: Annotated[int, Option(min=1, max=1_000, help="stored runs to show, without RUN")] = 20,
    label: Annotated[str | None, Option(help="only stored runs with this label, without RUN")] = None,
    smoke: Annotated[bool, Option("--smoke", help="stored runs of the smoke set, without RUN")] = False,
    store: StoreOption = None,
    score: Annotated[str | None, Option(help="the score to show; default: the only one in the files")] = None,
    scale: Annotated[
        tuple[float, float] | None, Option(help="the score's lowest and highest value, as in `suite compare`")
    ] = None,
) -> Document:
    """Show stored runs, the oldest first: the trend of each slice, cost and latency of each run.

    It decides nothing.

    Example: rampgate suite report monday.jsonl tuesday.jsonl --report trend.html
    """
    from rampgate.suite.opened import open_suite
    from rampgate.suite.report.runs import runs_document

    if suite is None:
        if not runs:
            raise Failure("name files of results, the oldest first, or the suite whose stored runs are meant, --suite")
        return Document(runs_document([Path(name) for name in runs], score, scale))
    opened = open_suite(suite, context.settings, store, judged=False)
    found = _stored(opened, runs or [], last, label, "smoke" if smoke else "full")
    told: dict[str, Any] = runs_document([file for file, _ in found], score or opened.suite.file.score, scale)
    for shown, (_, one) in zip(told["runs"], found, strict=True):
        if one is not None:
            shown["run"] = f"{one.at[:16]} {one.label or one.commit[:12]}".strip()
            shown |= {"hash": one.results, "at": one.at, "label": one.label, "commit": one.commit}
            shown["verdict"] = one.verdict
    return Document(told)


def _stored(
    opened: Opened, names: list[str], last: int, label: str | None, kind: str
) -> list[tuple[Path, StoredRun | None]]:
    """The named runs, or the last of the set that the suite's store has. Raises Failure."""
    from rampgate.suite.runs.stored import StoredRuns, named_run

    suite = opened.suite.file.suite
    with closing(opened.place.opened()) as store:
        if not names:
            known = run(partial(StoredRuns(store).of, suite))
            fits = [one.results for one in known if one.set == kind and label in (None, one.label)]
            names = list(dict.fromkeys(fits))[-last:]
        if not names:
            raise Failure(f"the store has no run of {suite} with its {kind} set: `rampgate suite run` makes one")
        return [named_run(name, store, suite, opened.home, smoke=True) for name in names]
