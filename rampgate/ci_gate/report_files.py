"""Writes the reports as files, and the gate's metrics (contracts §5, §6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evalcore.scoring.answers import by_name
from rampgate.ci_gate.metrics import leave
from rampgate.ci_gate.report_page import page
from rampgate.ci_gate.report_texts import junit, markdown
from rampgate.ci_gate.run import GateRun
from rampgate.console import Failure
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

    def check(self) -> None:
        """Check the paths before the gate costs anything. Raises Failure."""
        for flag, path in (("junit", self.junit), ("markdown", self.markdown), ("html", self.html)):
            if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
                raise Failure(f"--{flag} {path}: name a file in a folder that exists")

    def write(self, outcome: GateRun) -> None:
        """Write every report that was asked for. Raises Failure, SettingsError."""
        _write("junit", self.junit, "wb", lambda: junit(outcome))
        _write("markdown", self.markdown, "ab", lambda: markdown(outcome).encode())
        _write("html", self.html, "wb", lambda: page(outcome).encode())
        if self.metrics is not None:
            leave(_observed(outcome), self.metrics, *METRICS)


def _write(flag: str, path: Path | None, mode: str, made: Callable[[], bytes]) -> None:
    if path is None:
        return
    try:
        with path.open(mode) as file:
            file.write(made())
    except OSError as error:
        raise Failure(f"--{flag} {path}: can't be written: {error.strerror or error}") from error


def _observed(outcome: GateRun) -> Metrics:
    metrics = Metrics()
    gate_decided(metrics, outcome.verdict, outcome.duration_seconds)
    judges = (judge for judge, _ in outcome.scored.assignments)
    scores_given(metrics, outcome.verdict.milestone, by_name(judges, outcome.scored.judgements))
    return metrics
