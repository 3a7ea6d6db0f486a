"""Runs `rampgate suite compare`: finds both runs, files or stored ones, and tells what is decided of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.ports import Unavailable
from rampgate.console import Failure, Format, print_json
from rampgate.report.files import check_paths
from rampgate.settings_sources import load_settings
from rampgate.store.place import Place, place_of
from rampgate.store.sqlite_file import STORE
from rampgate.suite.answer import document
from rampgate.suite.compare import Options, compared_files
from rampgate.suite.compared import Compared
from rampgate.suite.opened import Opened, open_suite
from rampgate.suite.report.ci import commands
from rampgate.suite.report.files import write_reports
from rampgate.suite.runs.named import named_run
from rampgate.suite.runs.run_document import comparison_of
from rampgate.suite.runs.stored import MAIN, StoredRun
from rampgate.suite.shown import show
from schemas.verdicts import VerdictLevel


@dataclass(frozen=True)
class Asked:
    """The options of the command, under their own names. Without a `baseline` it is main's last run that passed."""

    baseline: str | None
    candidate: str
    suite: Path | None
    store: str | None
    configs: Path | None
    score: str | None
    scale: tuple[float, float] | None
    safety: tuple[str, ...]
    safe_at: float | None
    seed: int
    let_go: tuple[str, ...]
    reports: tuple[Path, ...]
    format: Format
    as_json: bool


def compare_runs(asked: Asked) -> int:
    """Compare, report, and return the exit code. Raises Failure."""
    check_paths(asked.reports)
    if asked.suite is None:
        how, place, name = _of_files(asked)
    else:
        how, place, name = _of_suite(asked, open_suite(asked.suite, asked.configs, asked.store))
    compared = compared_files(how)
    told = document(compared)
    if asked.reports:
        write_reports(asked.reports, told, name, place)
    _tell(compared, told, name, asked.format, as_json=asked.as_json)
    return 1 if compared.judged.verdict is VerdictLevel.FAIL else 0


def _of_files(asked: Asked) -> tuple[Options, Place, str]:
    if asked.baseline is None:
        raise Failure("name both files, baseline and candidate, or the suite whose stored runs are meant, --suite")
    baseline, candidate = Path(asked.baseline), Path(asked.candidate)
    how = Options(
        baseline, candidate, asked.score, asked.scale, asked.safety, asked.safe_at, asked.seed, asked.as_json,
        asked.let_go,
    )  # fmt: skip
    place = place_of(asked.store, candidate.parent / STORE, load_settings({"configs": asked.configs}))
    return how, place, f"{candidate.name} against {baseline.name}"


def _of_suite(asked: Asked, opened: Opened) -> tuple[Options, Place, str]:
    """As the suite says, but for what options say otherwise."""
    suite, now = opened.suite, datetime.now(UTC)
    try:
        store = opened.place.opened()
    except Unavailable as error:
        raise Failure(str(error)) from error
    try:
        name = suite.file.suite
        candidate, newer = named_run(asked.candidate, store, name, opened.home, smoke=True)
        smoke = newer is not None and newer.set == "smoke"
        held = MAIN if asked.baseline is None else asked.baseline
        baseline, older = named_run(held, store, name, opened.home, smoke=smoke)
    finally:
        store.close()
    how = comparison_of(suite, opened.judges, baseline, candidate, asked.seed, asked.let_go, smoke=smoke)
    how = replace(
        how,
        score=asked.score or how.score,
        scale=asked.scale or (how.scale if asked.score in (None, how.score) else None),
        safety=asked.safety or how.safety,
        safe_at=how.safe_at if asked.safe_at is None else asked.safe_at,
    )
    return how, opened.place, f"{_said(candidate, newer, now)} against {_said(baseline, older, now)}"


def _tell(compared: Compared, told: Mapping[str, Any], name: str, format: Format, *, as_json: bool) -> None:
    """Tell a comparison, `told` its document: annotations on stderr beside either form, as `gate run` does."""
    if format is Format.GITHUB:
        sys.stderr.write("".join(f"{line}\n" for line in commands(told, name, {})))
    if as_json or format is Format.JSON:
        print_json(told)
    else:
        show(compared, told)


def _said(file: Path, stored: StoredRun | None, now: datetime) -> str:
    """What a run is called: a file by its name, a stored run by label, hash and age."""
    if stored is None:
        return file.name
    label = f"{stored.label}'s run" if stored.label else "run"
    return f"{label} {stored.results[:12]}, {stored.age(now)} old"
