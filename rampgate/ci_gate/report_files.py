"""Writes the reports as files, and the gate's metrics (contracts §5, §6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from evalcore.gates.golden import category_of
from evalcore.judges.score_parsing import NOT_APPLICABLE
from evalcore.scoring.answers import Answer, NotApplicable, Scored, by_name
from rampgate.ci_gate.report_page import page
from rampgate.ci_gate.report_texts import junit, markdown
from rampgate.ci_gate.run import GateRun
from rampgate.console import Failure
from rampgate.files import append_file, replace_file, writable
from rampgate.metrics_file import leave
from streams.metrics import Metrics, gate_decided, scores_given

METRICS = (
    "eval_gate_fired_total", "eval_gate_verdict_total", "eval_gate_duration_seconds", "eval_judge_score_distribution"
)  # fmt: skip


@dataclass(frozen=True)
class Reports:
    """The file of each report; None: no such report. Markdown is appended, as to a job's summary."""

    junit: Path | None = None
    markdown: Path | None = None
    html: Path | None = None
    metrics: Path | None = None
    scores: Path | None = None

    def check(self) -> None:
        """Check the paths before the gate costs anything. Raises Failure."""
        for flag, path in self._named():
            if path is not None and not writable(path):
                raise Failure(f"--{flag} {path}: name a regular file in a folder that exists")

    def _named(self) -> Iterator[tuple[str, Path | None]]:
        yield from (("junit", self.junit), ("markdown", self.markdown), ("html", self.html), ("scores", self.scores))

    def write(self, outcome: GateRun) -> None:
        """Write every report that was asked for. Raises Failure."""
        if self.junit is not None:
            replace_file(self.junit, junit(outcome), "--junit")
        if self.markdown is not None:
            append_file(self.markdown, markdown(outcome).encode(), "--markdown")
        if self.html is not None:
            replace_file(self.html, page(outcome), "--html")
        if self.scores is not None:
            replace_file(self.scores, b"".join(score_lines(outcome)), "--scores")
        if self.metrics is not None:
            leave(_observed(outcome), self.metrics, *METRICS)


def score_lines(outcome: GateRun) -> Iterator[bytes]:
    """Yield each judge's score of each item as a line of scores (contracts §5), a dimension's as `judge.dimension`."""
    for (judge, item), found in zip(outcome.scored.assignments, outcome.scored.judgements, strict=True):
        about = {"judge_version": judge.version, "category": category_of(item.source)}
        for name, answer in ((None, found.answer), *found.dimensions.items()):
            named = judge.id if name is None else f"{judge.id}.{name}"
            yield orjson.dumps(
                {"judge_id": named, "item_id": item.id, "score": _score(answer), **about},
                option=orjson.OPT_APPEND_NEWLINE,
            )  # fmt: skip


def _score(answer: Answer) -> float | str | None:
    if isinstance(answer, Scored):
        return answer.value
    return NOT_APPLICABLE if isinstance(answer, NotApplicable) else None


def _observed(outcome: GateRun) -> Metrics:
    metrics = Metrics()
    gate_decided(metrics, outcome.verdict, outcome.duration_seconds)
    judges = (judge for judge, _ in outcome.scored.assignments)
    scores_given(metrics, outcome.verdict.milestone, by_name(judges, outcome.scored.judgements))
    return metrics
