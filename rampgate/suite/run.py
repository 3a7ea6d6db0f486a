"""Runs `rampgate suite run`: has the candidate answer the suite's cases and scores the answers, into a file of results.

With a baseline it says whether the candidate regresses, by the same rule as `suite compare`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson

from agents.ports import Unavailable
from evalcore.scoring.calls import Spend
from rampgate.console import Failure, Format, print_json, run
from rampgate.files import replacing
from rampgate.input_files import BadFile
from rampgate.logs import configure_logs
from rampgate.progress import cost
from rampgate.report.console import show
from rampgate.report.files import check_paths, write_all
from rampgate.report.github import workflow_commands
from rampgate.report.model import Report
from rampgate.store.sealed import SealedStore
from rampgate.suite.answer import document
from rampgate.suite.compare import NothingInCommon, compared_files, refuse_same
from rampgate.suite.compared import Compared
from rampgate.suite.dataset_cases import dataset_cases
from rampgate.suite.fresh.answering import answered_anew
from rampgate.suite.fresh.confirmation import Confirming, confirm
from rampgate.suite.fresh.request import remove_again
from rampgate.suite.fresh.sources import AskedElsewhere, Fresh, FromFiles, asked_here
from rampgate.suite.opened import Opened, open_suite
from rampgate.suite.report.canary import canary_plan, check_path, write_plan
from rampgate.suite.report.runs import run_report
from rampgate.suite.runs.answer_files import Head, answers_written
from rampgate.suite.runs.base_folder import commit_here
from rampgate.suite.runs.baseline import PASSED, Baseline, baseline_of, by_same_judges, keep_run, verdict_of
from rampgate.suite.runs.named import check_label
from rampgate.suite.runs.only import Only
from rampgate.suite.runs.options import Options, check_halves
from rampgate.suite.runs.pairs import JudgePairs
from rampgate.suite.runs.run_document import comparison_of, found_of, head_of, line_of, score_of
from rampgate.suite.runs.session import Session
from rampgate.suite.runs.shown import show_run, tell_answers, tell_plan
from rampgate.suite.runs.stored import MAIN
from rampgate.suite.scoring import Rubric, ScoredSample
from rampgate.suite.suite_files import Suite, read_suite


@dataclass(frozen=True)
class Running:
    """A run under way: a suite that is open, with its store, and what it may spend. Its results go to `out`; `head` is
    the beginning of its document."""

    options: Options
    opened: Opened
    store: SealedStore
    session: Session
    spend: Spend
    out: Path
    head: Mapping[str, Any]
    began: datetime

    def plan(self) -> int:
        """Tells what a run will ask and cost. Raises Failure."""
        baseline = self._baseline()
        beside = baseline.file if baseline is not None and self.opened.comparing else None
        try:
            told = run(partial(self.session.plan, beside))
        except (BadFile, Unavailable) as error:
            raise Failure(str(error)) from error
        return tell_plan({**self.head, **told}, as_json=self.options.as_json)

    def generate(self, answers: Path) -> int:
        """Has the candidate answer, or one side anew what is to be confirmed, into a file. Raises Failure."""
        options, suite = self.options, self.opened.suite
        if options.again is not None and options.side is not None:
            told = answered_anew(
                options.suite, self.session, options.again, options.side, answers, self._reading, self.spend
            )
        else:
            found = run(partial(self.session.generate, self.spend))
            told = {**self.head, **answers_written(answers, Head(suite.configuration), found, self.spend)}
        return tell_answers(told, as_json=options.as_json)

    def score(self) -> dict[str, Any]:
        """Has the answers made, or takes those given, scores them and holds them against a baseline. Keeps the run and
        returns its document. Raises Failure."""
        options, opened, session, spend, out = self.options, self.opened, self.session, self.spend, self.out
        baseline = self._baseline()
        try:
            answers = options.answers
            samples = run(partial(session.run, spend) if answers is None else partial(session.score, answers, spend))
        except BadFile as error:
            raise Failure(str(error)) from error
        results = _written(out, samples, opened.rubric)
        pairs: dict[str, JudgePairs] = {}
        if baseline is not None:
            baseline = by_same_judges(baseline, session, spend, out.parent)
            pairs = run(partial(session.pairs, samples, baseline.file, spend))
            results = _written(out, samples, opened.rubric) if pairs else results
        left = (baseline.left if baseline is not None else 0, sum(one.left for one in pairs.values()))
        told = {**self.head, **found_of(samples, spend, *left)}
        told |= {"refused": self.store.refused, "results": str(out)}
        told["pairwise"] = {name: one.told() for name, one in pairs.items()}
        compared = None
        if baseline is not None:
            baseline, compared = self._compared(baseline, incomplete=told["left"] is not None)
            told |= found_of(samples, spend, *left)
        told |= {
            "baseline": baseline.told(self.began) if baseline is not None else None,
            "comparison": document(compared) if compared is not None else None,
            "again": _again(options, compared),
            "dropped_parts": _dropped(opened.suite, baseline),
        }
        first = options.first_run or options.label == MAIN
        told["verdict"] = verdict_of(told, samples, opened.suite.file.score, opened.judges, first=first)
        keep_run(
            self.store, told, opened.judges, results, options.label, self.began, baseline, options.only or ""
        )  # fmt: skip
        told["store_failures"] = self.store.failures[:1]
        judges = [judge.id for judge in opened.judges]
        told["canary_plan"] = canary_plan(told, opened.suite.file.vertical, judges, self.began)
        return told

    def _compared(self, baseline: Baseline, *, incomplete: bool) -> tuple[Baseline | None, Compared | None]:
        """The comparison, after fresh samples of what tripped; without a baseline where main asks all else by now."""
        options, opened = self.options, self.opened
        how = comparison_of(
            opened.suite, opened.judges, baseline.file, self.out, options.seed, options.let_go, smoke=options.smoke
        )
        try:
            compared = compared_files(how)
        except NothingInCommon as error:
            if baseline.stored is None:
                raise
            if options.label != MAIN:
                raise Failure(f"{error}: all cases are others than main's; run main anew (--label main)") from error
            return None, None  # what main asks by now is what later runs are held against
        if not options.confirm:
            return baseline, compared
        made = Confirming(
            options.suite, self.session, self.head["commit"], baseline, options.base, self.out, self._reading,
            partial(line_of, rubric=opened.rubric), _source(options, incomplete=incomplete),
        )  # fmt: skip
        return baseline, confirm(made, compared, how, self.spend)

    def _baseline(self) -> Baseline | None:
        options, name = self.options, self.opened.suite.file.suite
        blind = bool(self.opened.judges) and self.opened.settings.model_url is None
        return baseline_of(
            options.baseline, self.store, name, self.out.parent, options.label, smoke=options.smoke, blind=blind
        )

    @property
    def _reading(self) -> Callable[[Path], Suite]:
        return partial(read_suite, fetched=partial(dataset_cases, self.opened.settings))


def run_suite(options: Options) -> int:
    """Run, write the results, tell the verdict, and return the exit code. Raises Failure."""
    began = datetime.now(UTC)
    configure_logs("error", "console")
    check_paths(options.reports)
    check_path(options.canary)
    check_label(options.label)
    check_halves(options)
    judged = options.only is not Only.GENERATE
    opened = open_suite(options.suite, options.configs, options.store, options.proposed, judged=judged)
    settings, suite = opened.settings, opened.suite
    out = options.out or opened.results_file(smoke=options.smoke)
    if options.baseline is not None:
        refuse_same(options.baseline, out)
    if options.only is Only.SCORE:
        remove_again(options.again)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        store = opened.place.opened()
    except (OSError, Unavailable) as error:
        raise Failure(str(error)) from error
    session = Session(settings, suite, options.smoke, opened.rubric, store, comparing=opened.comparing)
    spend = Spend(settings.gate_calls, settings.gate_tokens, options.max_cost)
    commit = options.commit if options.commit is not None else commit_here(suite.folder)
    head = head_of(suite, smoke=options.smoke) | {"commit": commit}
    running = Running(options, opened, store, session, spend, out, head, began)
    try:
        if options.plan:
            return running.plan()
        if options.only is Only.GENERATE and options.answers is not None:
            return running.generate(options.answers)
        told = running.score()
    finally:
        store.close()
    write_plan(options.canary, told["canary_plan"])
    score, scale, _ = score_of(suite, opened.judges)
    report = run_report(options.reports, told, out, opened.place, score, scale)
    write_all(options.reports, report, told)
    return _tell(told, report, options, spend)


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


def _dropped(suite: Suite, baseline: Baseline | None) -> list[str]:
    """Parts that main's candidate has and this one lacks: what they named may change by now without being seen."""
    before = baseline.stored.parts if baseline is not None and baseline.stored is not None else {}
    return sorted({*suite.dropped, *before} - {*suite.parts})


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


def _tell(told: Mapping[str, Any], report: Report, options: Options, spend: Spend) -> int:
    if options.format is Format.GITHUB:
        sys.stderr.write("".join(f"{line}\n" for line in workflow_commands(report)))
    if options.as_json or options.format is Format.JSON:
        print_json(told)
    else:
        show_run(told, cost(spend))
        show(report)
    for failure in told["store_failures"]:
        sys.stderr.write(f"{failure}; what was asked is not kept, and the next run asks it again\n")
    return 0 if told["verdict"] in PASSED else 1
