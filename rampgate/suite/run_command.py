"""Has a candidate answer a suite's cases, scores the answers and compares them: `rampgate suite run`."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Option

from rampgate.command import Context, Document, command, log_errors
from rampgate.console import Failure
from rampgate.options import StoreOption

HALVES = "give --generate FILE, or --score FILE"
GONE: Final = {
    "--only": HALVES,
    "--answers": HALVES,
    "--again": "--score writes what both sides answer again beside its results; --generate FILE --cases takes it",
    "--side": "--generate --cases answers for the side whose checkout it is",
    "--fresh-baseline": "give the file to --score, beside the one of the first answers",
    "--fresh-candidate": "give the file to --score, beside the one of the first answers",
    "--base": "the baseline's commit is that of its stored run, which --baseline names by results, label or hash",
    "--let-go": "name the case in main's suite file, as in `let_go: [CASE]`",
    "--confirm": "`suite compare` decides by the plain rule",
    "--seed": "every run resamples with the same one",
    "--commit": "it is that of the candidate's checkout",
}
"""Options of earlier releases, and what does their work."""


@command("rampgate.suite.report.run:run_report", flags="configs", gone=GONE)
def run(
    context: Context,
    suite: Annotated[Path, Argument(metavar="SUITE", help="the suite's YAML file")],
    smoke: Annotated[bool, Option("--smoke", help="the smoke set alone, as each commit does")] = False,
    baseline: Annotated[
        str | None,
        Option(help="file of results, or a stored run's label or hash; default: main's last run that passed"),
    ] = None,
    out: Annotated[Path | None, Option(help="where the results go; default: .rampgate beside the suite")] = None,
    store: StoreOption = None,
    generate: Annotated[
        Path | None, Option(metavar="FILE", help="half a run: have the candidate answer into this file")
    ] = None,
    score: Annotated[
        list[Path] | None,
        Option(metavar="FILE", help="the other half: score its answers; again for each file of fresh answers"),
    ] = None,
    cases: Annotated[
        Path | None,
        Option(metavar="FILE", help="with --generate: answer again what --score wrote beside its results"),
    ] = None,
    plan: Annotated[bool, Option("--plan", help="report calls and cost, and ask no one")] = False,
    max_cost: Annotated[
        float | None,
        Option(min=0, help="US dollars that it may cost; what would cost more is left"),
    ] = None,
    label: Annotated[str, Option(help="what the run is kept as; `main`: it becomes the baseline")] = "",
    first_run: Annotated[
        bool, Option("--first-run", help="let it pass without a baseline, as main may, where there can be none")
    ] = False,
    canary: Annotated[
        Path | None, Option(help="where the ramp-step requests of a full run that passed go, JSON Lines")
    ] = None,
    proposed: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="the suite's folder as a pull request proposes it: the candidate's alone"),
    ] = None,
) -> Document:
    """Have the candidate answer the suite's cases, score the answers, and compare them with a baseline's.

    What was answered or scored before, of the same configuration, is not asked again. With --proposed the candidate and
    its parts are those of that folder, and cases, checks and judges those of SUITE. Exit code 1 if the candidate is
    worse, not yet confirmed, the run incomplete (--max-cost), or without a baseline (--first-run), 2 for a bad suite.

    Example: rampgate suite run examples/suite/suite.yaml --smoke --baseline main.jsonl
    """
    from rampgate.files import writable
    from rampgate.suite.opened import open_suite
    from rampgate.suite.report.canary import write_plan
    from rampgate.suite.report.run import Ran
    from rampgate.suite.report.traces import stored_traces
    from rampgate.suite.run import Running
    from rampgate.suite.runs.confirmation import request_file
    from rampgate.suite.runs.run_document import score_of
    from rampgate.suite.runs.stored import check_label

    began = context.time
    if generate is not None and score:
        raise Failure("--generate and --score are the halves of a run: give one of them")
    if cases is not None and generate is None:
        raise Failure("--cases goes with --generate: it says what is answered again")
    named = {"--out": out, "--generate": generate, "--cases": cases}
    for option, path in (*named.items(), *(("--score", one) for one in score or ())):
        # Who reads a pipe may wait for ever, and who writes one would have a file there.
        if path is not None and path.exists() and not path.is_file():
            raise Failure(f"{option} {path}: is no regular file; name one, or a new one")
    if canary is not None and not writable(canary):
        raise Failure(f"--canary {canary}: name a regular file in a folder that exists")
    check_label(label)
    log_errors()
    opened = open_suite(suite, context.settings, store, proposed, judged=generate is None)
    out = out or opened.results_file(smoke=smoke)
    out.parent.mkdir(parents=True, exist_ok=True)
    if score:
        request_file(out).unlink(missing_ok=True)  # an earlier run's: what is there is to be answered
    with closing(opened.place.opened()) as kept:
        running = Running(suite, opened, kept, out, smoke, baseline, label, max_cost, began)
        if plan:
            return running.plan()
        if generate is not None:
            return running.generate(generate, cases, proposed=proposed is not None)
        found = running.score(score or (), first=first_run)
    write_plan(canary, found["canary_plan"])
    for failure in found["store_failures"]:
        sys.stderr.write(f"{failure}; what was asked is not kept, and the next run asks it again\n")
    traces = stored_traces(found["comparison"], opened.place, context.reports)
    return Ran(found, *score_of(opened.suite, opened.judges)[:2], traces)
