"""Runs `rampgate suite run`: has the candidate answer the suite's cases and scores the answers, into a file of results.

With a baseline it says whether the candidate regresses, by the same rule as `suite compare`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson

from agents.ports import Unavailable
from evalcore.scoring.calls import Spend
from rampgate.ci_gate.inputs import BadFile
from rampgate.console import Failure, Format, print_json, run
from rampgate.logs import configure_logs
from rampgate.progress import cost
from rampgate.registry.file_writer import replacing
from rampgate.report.page import check_paths
from rampgate.suite.answer import document
from rampgate.suite.compare import NothingInCommon, compared_files
from rampgate.suite.compared import Compared
from rampgate.suite.dataset_cases import dataset_cases
from rampgate.suite.fresh.answering import answered_anew
from rampgate.suite.fresh.confirmation import Confirming, confirm
from rampgate.suite.fresh.request import remove_again
from rampgate.suite.fresh.sources import AskedElsewhere, Fresh, FromFiles, asked_here
from rampgate.suite.opened import open_suite
from rampgate.suite.report.canary import canary_plan, check_path, write_plan
from rampgate.suite.report.ci import commands, commands_without_baseline
from rampgate.suite.report.runs import name_of, write_run_reports
from rampgate.suite.runs.answer_files import Head, answers_written
from rampgate.suite.runs.base_folder import commit_here
from rampgate.suite.runs.baseline import PASSED, baseline_of, by_same_judges, keep_run, verdict_of
from rampgate.suite.runs.named import check_label
from rampgate.suite.runs.only import Only, Side
from rampgate.suite.runs.pairs import JudgePairs
from rampgate.suite.runs.run_document import comparison_of, found_of, head_of, line_of, score_of
from rampgate.suite.runs.session import Session
from rampgate.suite.runs.shown import show_run, tell_answers, tell_plan
from rampgate.suite.runs.stored import MAIN
from rampgate.suite.scoring import Rubric, ScoredSample
from rampgate.suite.shown import show
from rampgate.suite.suite_files import read_suite


@dataclass(frozen=True)
class Options:
    """The options of the command, under their own names."""

    suite: Path
    smoke: bool
    out: Path | None
    store: str | None
    baseline: Path | None
    seed: int
    let_go: tuple[str, ...]
    configs: Path | None
    as_json: bool
    reports: tuple[Path, ...] = ()
    format: Format = Format.TEXT
    plan: bool = False
    max_cost: float | None = None
    label: str = ""
    canary: Path | None = None
    only: Only | None = None
    answers: Path | None = None
    confirm: bool = True
    base: str | None = None
    commit: str | None = None
    proposed: Path | None = None
    again: Path | None = None
    side: Side | None = None
    fresh: tuple[Path, Path] | None = None


def run_suite(options: Options) -> int:
    """Run, write the results, tell the verdict, and return the exit code. Raises Failure."""
    now = datetime.now(UTC)
    configure_logs("error", "console")
    check_paths(options.reports)
    check_path(options.canary)
    check_label(options.label)
    check_halves(options)
    opened = open_suite(
        options.suite, options.configs, options.store, options.proposed, judged=options.only is not Only.GENERATE
    )
    settings, suite, judges, rubric = opened.settings, opened.suite, opened.judges, opened.rubric
    out = options.out or opened.results_file(smoke=options.smoke)
    if options.only is Only.SCORE:
        remove_again(options.again)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        store = opened.place.opened()
    except (OSError, Unavailable) as error:
        raise Failure(str(error)) from error
    session = Session(settings, suite, options.smoke, rubric, store, comparing=opened.comparing)
    spend = Spend(settings.gate_calls, settings.gate_tokens, options.max_cost)
    commit = options.commit if options.commit is not None else commit_here(suite.folder)
    head = head_of(suite, smoke=options.smoke) | {"commit": commit}
    reading = partial(read_suite, fetched=partial(dataset_cases, settings))
    try:
        if options.plan:
            held = baseline_of(
                options.baseline, store, suite.file.suite, out.parent, options.label, smoke=options.smoke
            )
            try:
                told = run(partial(session.plan, held.file if held is not None and opened.comparing else None))
            except (BadFile, Unavailable) as error:
                raise Failure(str(error)) from error
            return tell_plan(head | told, as_json=options.as_json)
        if options.again is not None and options.side is not None and options.answers is not None:
            told = answered_anew(
                options.suite, session, options.again, options.side, options.answers, reading, spend
            )  # fmt: skip
            return tell_answers(told, as_json=options.as_json)
        if options.only is Only.GENERATE and options.answers is not None:
            found = run(partial(session.generate, spend))
            told = head | answers_written(options.answers, Head(suite.configuration), found, spend)
            return tell_answers(told, as_json=options.as_json)
        baseline = baseline_of(
            options.baseline, store, suite.file.suite, out.parent, options.label, smoke=options.smoke
        )
        try:
            doing = (
                partial(session.run, spend)
                if options.answers is None
                else partial(session.score, options.answers, spend)
            )
            samples = run(doing)
        except BadFile as error:
            raise Failure(str(error)) from error
        results = _written(out, samples, rubric)
        pairs: dict[str, JudgePairs] = {}
        if baseline is not None:
            baseline = by_same_judges(baseline, session, spend, out.parent)
            pairs = run(partial(session.pairs, samples, baseline.file, spend))
            results = _written(out, samples, rubric) if pairs else results
        left = (baseline.left if baseline is not None else 0, sum(one.left for one in pairs.values()))
        told = head | found_of(samples, spend, *left)
        told |= {"refused": store.refused, "results": str(out)}
        told["pairwise"] = {name: one.told() for name, one in pairs.items()}
        compared = None
        if baseline is not None:
            how = comparison_of(suite, judges, baseline.file, out, options.seed, options.let_go, smoke=options.smoke)
            try:
                compared = compared_files(how)
            except NothingInCommon as error:
                if baseline.stored is None:
                    raise
                if options.label != MAIN:
                    raise Failure(f"{error}: all cases are others than main's; run main anew (--label main)") from error
                baseline = None  # what main asks by now is what later runs are held against
        if baseline is not None and compared is not None and options.confirm:
            made = Confirming(
                options.suite, session, commit, baseline, options.base, out, reading, partial(line_of, rubric=rubric),
                _source(options, incomplete=told["left"] is not None),
            )  # fmt: skip
            compared = confirm(made, compared, how, spend)
            told |= found_of(samples, spend, *left)
        told |= {
            "baseline": baseline.told(now) if baseline is not None else None,
            "comparison": document(compared) if compared is not None else None,
            "again": _again(options, compared),
        }
        told["verdict"] = verdict_of(told, samples, suite.file.score, judges)
        keep_run(store, told, judges, results, options.label, now, baseline, options.only or "")
        told["store_failures"] = store.failures[:1]
        told["canary_plan"] = canary_plan(told, suite.file.vertical, [judge.id for judge in judges], now)
    finally:
        store.close()
    write_plan(options.canary, told["canary_plan"])
    if options.reports:
        score, scale, _ = score_of(suite, judges)
        write_run_reports(options.reports, told, out, opened.place, score, scale)
    return _tell(told, compared, options, spend)


def fresh_files(baseline: Path | None, candidate: Path | None) -> tuple[Path, Path] | None:
    """Raises Failure for one without the other."""
    if baseline is not None and candidate is not None:
        return baseline, candidate
    if baseline is candidate:
        return None
    raise Failure("--fresh-baseline and --fresh-candidate go together: one side alone decides nothing")


def check_halves(options: Options) -> None:
    """Raises Failure for options of a run that is split over jobs which do not go together."""
    one, score, generate = options, options.only is Only.SCORE, options.only is Only.GENERATE
    wrong = {
        "--only and --answers go together: the file that answers go to, or come from": (
            (one.only is None) != (one.answers is None)
        ),
        "--again goes with --only": one.again is not None and one.only is None,
        "--side goes with --only generate and --again: who answers anew": (
            (one.side is not None) != (generate and one.again is not None)
        ),
        "--fresh-baseline and --fresh-candidate go with --only score, without --again": (
            one.fresh is not None and (not score or one.again is not None)
        ),
        "--confirm none asks for no fresh samples: leave out --again and the fresh answers": (
            not one.confirm and (one.again is not None or one.fresh is not None)
        ),
        "--plan is of a whole run: leave out --again and the fresh answers": (
            one.plan and (one.again is not None or one.fresh is not None)
        ),
        "--smoke: the file of --again names the cases that are answered anew": one.side is not None and one.smoke,
    }
    for said, holds in wrong.items():
        if holds:
            raise Failure(said)
    if one.answers is not None and one.answers.exists() and not one.answers.is_file():
        raise Failure(f"--answers {one.answers}: is no regular file; write and read the answers in one")


def _source(options: Options, *, incomplete: bool) -> Fresh:
    """Where fresh samples come from. A run that is incomplete passes by none, and asks for none elsewhere."""
    if options.answers is None:
        return asked_here
    if options.fresh is not None:
        return FromFiles(*options.fresh)
    return AskedElsewhere(None if incomplete else options.again)


def _again(options: Options, compared: Compared | None) -> dict[str, Any] | None:
    """What both sides have to answer anew before the verdict is confirmed."""
    if compared is None or compared.again is None:
        return None
    return {"file": str(options.again), "cases": len(compared.again.cases), "samples": compared.again.samples}


def _written(out: Path, samples: Sequence[ScoredSample], rubric: Rubric) -> bytes:
    """Writes the results and returns them. Raises Failure."""
    results = BytesIO()
    try:
        with replacing(out) as file:
            for one in samples:
                line = orjson.dumps(line_of(one, rubric), option=orjson.OPT_APPEND_NEWLINE)
                file.write(line)
                results.write(line)
    except OSError as error:
        raise Failure(f"{out}: can't be written: {error.strerror or error}") from error
    return results.getvalue()


def _tell(told: Mapping[str, Any], compared: Compared | None, options: Options, spend: Spend) -> int:
    if options.format is Format.GITHUB:
        name = name_of(told)
        lines = commands_without_baseline(told, name) if compared is None else commands(told["comparison"], name, told)
        sys.stderr.write("".join(f"{line}\n" for line in lines))
    if options.as_json or options.format is Format.JSON:
        print_json(told)
    else:
        show_run(told, cost(spend))
        if compared is not None:
            show(compared)
    for failure in told["store_failures"]:
        sys.stderr.write(f"{failure}; what was asked is not kept, and the next run asks it again\n")
    return 0 if told["verdict"] in PASSED else 1
