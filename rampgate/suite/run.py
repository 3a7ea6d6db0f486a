"""The three answers of `rampgate suite run`: a plan, the candidate's answers in a file, and a run with its scores.

With a baseline a run says whether the candidate regresses, by the same rule as `suite compare`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from evalcore.scoring.calls import Spend
from rampgate.command import Document
from rampgate.console import Failure, run
from rampgate.files import replace_file
from rampgate.store.sealed import SealedStore
from rampgate.suite.answer import document
from rampgate.suite.compare import Compared, NothingInCommon, compared_files, refuse_same
from rampgate.suite.opened import Opened
from rampgate.suite.report.canary import canary_plan
from rampgate.suite.runs.answer_files import Head, files_by_request, read_answers, write_answers
from rampgate.suite.runs.base_folder import commit_here
from rampgate.suite.runs.baseline import Baseline, baseline_of, by_same_judges, keep_run, verdict_of
from rampgate.suite.runs.confirmation import (
    Confirming,
    confirm,
    fresh_session,
    head_of_side,
    read_request,
    request_file,
    side_here,
)
from rampgate.suite.runs.run_document import comparison_of, found_of, head_of, line_of
from rampgate.suite.runs.session import Session
from rampgate.suite.runs.stored import MAIN, PASSED
from rampgate.suite.scoring import Rubric, ScoredSample
from rampgate.suite.suite_files import Suite
from schemas.checks.suite_again import Side

if TYPE_CHECKING:
    from rampgate.suite.runs.pairs import JudgePairs


class Ran(Document):
    """The document of a run. For its report: the score that decides, and the texts of stored traces."""

    def __init__(
        self, fields: Mapping[str, Any], score: str, scale: tuple[float, float], traces: Mapping[str, str]
    ) -> None:
        super().__init__(fields, 0 if fields["verdict"] in PASSED and fields["again"] is None else 1)
        self.score, self.scale, self.traces = score, scale, traces


@dataclass(frozen=True)
class Running:
    """A run under way of the suite whose file is `path`, with its store. `named` is the baseline that was named, `out`
    where results go. Its methods raise Failure."""

    path: Path
    opened: Opened
    store: SealedStore
    out: Path
    smoke: bool
    named: str | None
    label: str
    max_cost: float | None
    began: datetime

    @cached_property
    def spend(self) -> Spend:
        """What the run may spend, and has spent."""
        settings = self.opened.settings
        return Spend(settings.gate_calls, settings.gate_tokens, self.max_cost)

    @cached_property
    def session(self) -> Session:
        one = self.opened
        return Session(one.settings, one.suite, self.smoke, one.rubric, self.store, comparing=one.comparing)

    @cached_property
    def head(self) -> dict[str, Any]:
        """The beginning of the run's document."""
        return head_of(self.opened.suite, smoke=self.smoke) | {"commit": commit_here(self.opened.suite.folder)}

    def plan(self) -> Document:
        """What a run will ask and cost."""
        baseline = self._baseline()
        beside = baseline.file if baseline is not None and self.opened.comparing else None
        return Document({**self.head, **run(partial(self.session.plan, beside))})

    def generate(self, file: Path, cases: Path | None, *, proposed: bool) -> Document:
        """Has the candidate answer, or the side that is here answer again the requested `cases`, into a file."""
        session, told = self.session, dict(self.head)
        head = Head(configuration=session.suite.configuration)
        if cases is not None:
            again = read_request(cases, session.suite, self.path)
            side = side_here(cases, again, session.suite, told["commit"], proposed=proposed)
            session, head = fresh_session(session, again), head_of_side(again, side)
            told |= head_of(session.suite, smoke=False) | {"set": again.set, "side": str(side), "after": again.after}
        found = run(partial(session.answers, self.spend))
        told |= write_answers(file, head, session.keys(), found, self.spend)
        return Document(told, 1 if told["left"] is not None else 0)

    def score(self, given: Sequence[Path], *, first: bool) -> dict[str, Any]:
        """Has the answers made, or takes those given, scores them and compares them with a baseline. Keeps the run and
        returns its document."""
        opened, session, spend, out = self.opened, self.session, self.spend, self.out
        baseline = self._baseline()
        answers, fresh = None, None
        if given:
            file, fresh = files_by_request(given)
            answers = read_answers(file, Head(configuration=opened.suite.configuration), session.keys())
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
        first = first or self.label == MAIN
        told["verdict"] = verdict_of(told, samples, opened.suite.file.score, opened.judges, first=first)
        half = "score" if given else ""
        keep_run(self.store, told, opened.judges, results, self.label, self.began, baseline, half)
        told["store_failures"] = self.store.failures[:1]
        judges = [judge.id for judge in opened.judges]
        told["canary_plan"] = canary_plan(told, opened.suite.file.vertical, judges, self.began)
        return told

    def _compared(
        self, baseline: Baseline, fresh: Mapping[Side, Path] | None, *, incomplete: bool
    ) -> tuple[Baseline | None, Compared | None]:
        """The comparison, after fresh samples of what fell; without a baseline where main asks all else by now. A run
        that is incomplete passes by none."""
        opened = self.opened
        how = comparison_of(opened.suite, opened.judges, baseline.file, self.out, smoke=self.smoke)
        try:
            compared = compared_files(how)
        except NothingInCommon as error:
            if self.named is not None:
                raise
            if self.label != MAIN:
                raise Failure(f"{error}: all cases are others than main's; run main again (--label main)") from error
            return None, None  # what main asks by now is what later runs are compared with
        if incomplete:
            return baseline, replace(compared, unconfirmed="the run is incomplete, and the next one resumes it")
        made = Confirming(self.path, self.session, self.head["commit"], baseline, self.out, fresh)
        return baseline, confirm(made, compared, self.spend)

    def _baseline(self) -> Baseline | None:
        name = self.opened.suite.file.suite
        blind = bool(self.opened.judges) and self.opened.settings.model_url is None
        found = baseline_of(self.named, self.store, name, self.out.parent, self.label, smoke=self.smoke, blind=blind)
        if found is not None:
            refuse_same(found.file, self.out)
        return found


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
