"""Runs `rampgate suite run`: has the candidate answer the suite's cases and scores the answers, into a file of results.

With a baseline it says whether the candidate regresses, by the same rule as `suite compare`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson

from agents.ports import Unavailable
from evalcore.scoring.calls import Spend
from evalcore.suite.comparison import SEED
from rampgate.command import Context
from rampgate.console import Failure, print_json, run
from rampgate.files import replace_file
from rampgate.input_files import BadFile
from rampgate.logs import configure_logs
from rampgate.progress import cost
from rampgate.store.sealed import SealedStore
from rampgate.suite.answer import document
from rampgate.suite.compare import NothingInCommon, compared_files, refuse_same
from rampgate.suite.compared import Compared
from rampgate.suite.opened import Opened, open_suite, suite_in
from rampgate.suite.report.canary import canary_plan, check_path, write_plan
from rampgate.suite.runs.answer_files import Head, files_by_request, read_answers, write_answers
from rampgate.suite.runs.base_folder import commit_here
from rampgate.suite.runs.baseline import PASSED, Baseline, baseline_of, by_same_judges, keep_run, verdict_of
from rampgate.suite.runs.confirmation import (
    Confirming,
    confirm,
    fresh_session,
    head_of_side,
    read_request,
    request_file,
    side_here,
)
from rampgate.suite.runs.named import check_label
from rampgate.suite.runs.pairs import JudgePairs
from rampgate.suite.runs.run_document import comparison_of, found_of, head_of, line_of, score_of
from rampgate.suite.runs.session import Session
from rampgate.suite.runs.shown import show_run, tell_answers, tell_plan
from rampgate.suite.runs.stored import MAIN
from rampgate.suite.scoring import Rubric, ScoredSample
from rampgate.suite.suite_files import Suite
from schemas.checks.suite_again import Side


@dataclass(frozen=True)
class Options:
    """The options of the command, under their own names."""

    context: Context
    suite: Path
    smoke: bool = False
    baseline: str | None = None
    out: Path | None = None
    store: str | None = None
    generate: Path | None = None
    score: tuple[Path, ...] = ()
    cases: Path | None = None
    plan: bool = False
    max_cost: float | None = None
    label: str = ""
    first_run: bool = False
    canary: Path | None = None
    proposed: Path | None = None

    def check(self) -> None:
        """Raises Failure for options that do not go together, and for a file that is none: who reads a pipe may wait
        for ever, and who writes one would have a file there."""
        if self.generate is not None and self.score:
            raise Failure("--generate and --score are the halves of a run: give one of them")
        if self.cases is not None and self.generate is None:
            raise Failure("--cases goes with --generate: it says what is answered again")
        named = {"--out": self.out, "--generate": self.generate, "--cases": self.cases}
        for option, path in (*named.items(), *(("--score", one) for one in self.score)):
            if path is not None and path.exists() and not path.is_file():
                raise Failure(f"{option} {path}: is no regular file; name one, or a new one")
        check_path(self.canary)
        check_label(self.label)


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
        return tell_plan({**self.head, **told}, as_json=self.options.context.as_json)

    def generate(self, file: Path) -> int:
        """Has the candidate answer, or the side that is here answer again what is requested, into a file. Raises
        Failure."""
        options, session, told = self.options, self.session, dict(self.head)
        head = Head(configuration=session.suite.configuration)
        if options.cases is not None:
            again = read_request(options.cases, session.suite, options.suite)
            side = side_here(options.cases, again, session.suite, told["commit"], proposed=options.proposed is not None)
            session, head = fresh_session(session, again), head_of_side(again, side)
            told |= head_of(session.suite, smoke=False) | {"set": again.set, "side": str(side), "after": again.after}
        found = run(partial(session.answers, self.spend))
        told |= write_answers(file, head, session.keys(), found, self.spend)
        return tell_answers(told, as_json=options.context.as_json)

    def score(self) -> dict[str, Any]:
        """Has the answers made, or takes those given, scores them and compares them with a baseline. Keeps the run and
        returns its document. Raises Failure."""
        options, opened, session, spend, out = self.options, self.opened, self.session, self.spend, self.out
        baseline = self._baseline()
        answers, fresh = None, None
        if options.score:
            file, fresh = files_by_request(options.score)
            head = Head(configuration=opened.suite.configuration)
            answers = read_answers(file, head, session.keys())
        samples = run(partial(session.score, spend, answers))
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
            baseline, compared = self._compared(baseline, fresh, incomplete=told["left"] is not None)
            told |= found_of(samples, spend, *left)
        told |= {
            "baseline": baseline.told(self.began) if baseline is not None else None,
            "comparison": document(compared) if compared is not None else None,
            "again": _again(out, compared),
            "dropped_parts": _dropped(opened.suite, baseline),
        }
        first = options.first_run or options.label == MAIN
        told["verdict"] = verdict_of(told, samples, opened.suite.file.score, opened.judges, first=first)
        half = "score" if options.score else ""
        keep_run(self.store, told, opened.judges, results, options.label, self.began, baseline, half)
        told["store_failures"] = self.store.failures[:1]
        judges = [judge.id for judge in opened.judges]
        told["canary_plan"] = canary_plan(told, opened.suite.file.vertical, judges, self.began)
        return told

    def _compared(
        self, baseline: Baseline, fresh: Mapping[Side, Path] | None, *, incomplete: bool
    ) -> tuple[Baseline | None, Compared | None]:
        """The comparison, after fresh samples of what fell; without a baseline where main asks all else by now. A run
        that is incomplete passes by none."""
        options, opened = self.options, self.opened
        how = comparison_of(opened.suite, opened.judges, baseline.file, self.out, SEED, smoke=options.smoke)
        try:
            compared = compared_files(how)
        except NothingInCommon as error:
            if options.baseline is not None:
                raise
            if options.label != MAIN:
                raise Failure(f"{error}: all cases are others than main's; run main again (--label main)") from error
            return None, None  # what main asks by now is what later runs are compared with
        if incomplete:
            return baseline, replace(compared, unconfirmed="the run is incomplete, and the next one resumes it")
        made = Confirming(
            options.suite, self.session, self.head["commit"], baseline, self.out, partial(suite_in, opened.settings),
            partial(line_of, rubric=opened.rubric), fresh,
        )  # fmt: skip
        return baseline, confirm(made, compared, self.spend)

    def _baseline(self) -> Baseline | None:
        options, name = self.options, self.opened.suite.file.suite
        blind = bool(self.opened.judges) and self.opened.settings.model_url is None
        found = baseline_of(
            options.baseline, self.store, name, self.out.parent, options.label, smoke=options.smoke, blind=blind
        )
        if found is not None:
            refuse_same(found.file, self.out)
        return found


def run_suite(options: Options) -> int:
    """Run, write the results, tell the verdict, and return the exit code. Raises Failure."""
    began = datetime.now(UTC)
    configure_logs("error", "console")
    options.check()
    configs, judged = options.context.given.get("configs"), options.generate is None
    opened = open_suite(options.suite, configs, options.store, options.proposed, judged=judged)
    settings, suite = opened.settings, opened.suite
    out = options.out or opened.results_file(smoke=options.smoke)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if options.score:
            request_file(out).unlink(missing_ok=True)  # an earlier run's: what is there is to be answered
        store = opened.place.opened()
    except (OSError, Unavailable) as error:
        raise Failure(str(error)) from error
    session = Session(settings, suite, options.smoke, opened.rubric, store, comparing=opened.comparing)
    spend = Spend(settings.gate_calls, settings.gate_tokens, options.max_cost)
    head = head_of(suite, smoke=options.smoke) | {"commit": commit_here(suite.folder)}
    running = Running(options, opened, store, session, spend, out, head, began)
    try:
        if options.plan:
            return running.plan()
        if options.generate is not None:
            return running.generate(options.generate)
        told = running.score()
    finally:
        store.close()
    write_plan(options.canary, told["canary_plan"])
    return _tell(told, options, opened, out, spend)


def _again(out: Path, compared: Compared | None) -> dict[str, Any] | None:
    """What both sides have to answer again before the verdict is confirmed."""
    if compared is None or compared.again is None:
        return None
    again = compared.again
    return {"file": str(request_file(out)), "cases": len(again.cases), "samples": again.samples}


def _dropped(suite: Suite, baseline: Baseline | None) -> list[str]:
    """Parts that main's candidate has and this one lacks: what they named may change by now without being seen."""
    before = baseline.stored.parts if baseline is not None and baseline.stored is not None else {}
    return sorted({*suite.dropped, *before} - {*suite.parts})


def _written(out: Path, samples: Sequence[ScoredSample], rubric: Rubric) -> bytes:
    """Writes the results and returns them. Raises Failure."""
    results = BytesIO()
    for one in samples:
        results.write(orjson.dumps(line_of(one, rubric), option=orjson.OPT_APPEND_NEWLINE))
    replace_file(out, results.getvalue())
    return results.getvalue()


def _tell(told: Mapping[str, Any], options: Options, opened: Opened, out: Path, spend: Spend) -> int:
    as_json, paths = options.context.as_json, options.context.reports
    if paths or not as_json:
        from rampgate.report.console import show
        from rampgate.report.files import write_all
        from rampgate.suite.report.runs import run_report

        score, scale, _ = score_of(opened.suite, opened.judges)
        report = run_report(paths, told, out, opened.place, score, scale)
        write_all(paths, report, told)
        if not as_json:
            show_run(told, cost(spend))
            show(report)
    if as_json:
        print_json(told)
    for failure in told["store_failures"]:
        sys.stderr.write(f"{failure}; what was asked is not kept, and the next run asks it again\n")
    return 0 if told["verdict"] in PASSED and told["again"] is None else 1
