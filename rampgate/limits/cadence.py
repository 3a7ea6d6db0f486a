"""Runs `rampgate check cadence`: what has to be derived again and when, and whose limits lie apart (PF-9 FR-4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalcore.calibration.cadence import Apart, Due, Kind, Status, apart, due
from evalcore.registry import disk
from evalcore.registry.registry import build
from evalcore.validation import checked
from evalcore.yaml.findings import Severity
from rampgate.ci_gate.metrics import leave
from rampgate.console import Failure, plain, print_json
from rampgate.registry.metrics import overdue_judges
from rampgate.registry.verticals import require_folder
from rampgate.registry.view import require_vertical
from rampgate.report.checks import cadence_report
from rampgate.report.page import check_paths, write_all
from rampgate.settings_sources import load_settings
from rampgate.tables import make_table
from streams.metrics import Metrics

GAUGE = "eval_calibration_recalibration_overdue"
SHOWN = {Status.OVERDUE: "[red]overdue[/]", Status.SOON: "[yellow]due soon[/]", Status.HOLDS: "holds"}


@dataclass(frozen=True)
class Options:
    """The options of the command. `only`: the kinds that count; empty for all."""

    only: tuple[str, ...]
    vertical: str | None
    within_days: int
    metrics_file: Path | None
    configs: Path | None
    as_json: bool
    reports: tuple[Path, ...] = ()


def check_cadence(options: Options) -> int:
    """Check, report, and return the exit code: 1 where something is overdue. Raises Failure for a file that can't be
    read: nobody knows what is due in it."""
    check_paths(options.reports)
    kinds = _kinds(options.only)
    root = load_settings({"configs": options.configs}).configs
    require_folder(root)
    try:
        files, findings = checked(disk.read_tree(root), disk.today())
    except OSError as error:
        raise Failure(f"{error.filename or root}: {error.strerror or error}") from error
    wrong = [finding for finding in findings if finding.severity is Severity.ERROR]
    try:
        registry = build(files)
    except (LookupError, ValueError, TypeError) as error:
        raise Failure(f"{wrong[0] if wrong else error}; `rampgate rules validate` shows all findings") from error
    if files.unread:
        raise Failure(f"{wrong[0]}; `rampgate rules validate` shows all findings")
    if options.vertical is not None:
        require_vertical(options.vertical, registry.verticals)
    found = [
        one
        for one in due(files, options.within_days)
        if one.kind in kinds and options.vertical in (None, one.vertical)
    ]  # fmt: skip
    lying = apart(registry, files.vertical_rules.keys())
    if options.metrics_file is not None:
        metrics = Metrics()
        for judge, late in overdue_judges(registry, files.today).items():
            metrics.recalibration_overdue.labels(judge).set(late)
        leave(metrics, options.metrics_file, GAUGE)
    document = _document(found, lying, files.today.isoformat(), options)
    write_all(options.reports, cadence_report(document))
    if options.as_json:
        print_json(document)
    else:
        _show(found, lying, options)
    return 1 if any(one.status is Status.OVERDUE for one in found) else 0


def _kinds(only: Sequence[str]) -> frozenset[Kind]:
    try:
        return frozenset(map(Kind, only)) or frozenset(Kind)
    except ValueError:
        raise Failure(f"--only: one of {', '.join(Kind)}, once or more") from None


def _document(found: Sequence[Due], lying: Sequence[Apart], today: str, options: Options) -> dict[str, Any]:
    counts = Counter(one.status for one in found)
    return {
        "today": today,
        "vertical": options.vertical,
        "within_days": options.within_days,
        "overdue_count": counts[Status.OVERDUE],
        "due_soon_count": counts[Status.SOON],
        "due": [
            {
                "kind": one.kind,
                "vertical": one.vertical,
                "category" if one.kind is Kind.AGREEMENT else "judge_id": one.name,
                "baseline_source": one.source,
                "since": one.since.isoformat() if one.since is not None else None,
                "recalibration_due": one.due.isoformat(),
                "days_left": one.days_left,
                "status": one.status,
                "file": one.file,
                "line": one.line,
            }
            for one in found
        ],
        "diverging_count": sum(one.diverges for one in lying),
        "apart": [
            {
                "judge_id": one.judge,
                "limit": "floor" if one.milestone is None else "threshold",
                "milestone": one.milestone,
                "limits": [
                    {"vertical": own.vertical, "value": own.value, "baseline_source": own.source.value}
                    for own in one.limits
                ],
                "spread": one.spread,
                "share_of_scale": one.share,
                "diverges": one.diverges,
            }
            for one in lying
        ],
    }


def _show(found: Sequence[Due], lying: Sequence[Apart], options: Options) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    table = make_table("Cadence", "Due", ">Days left", "Status", "Of", "Vertical", "Judge or category", "Source")
    for one in found:
        vertical = plain(one.vertical) if one.vertical is not None else "platform"
        cells = (SHOWN[one.status], one.kind, vertical, plain(one.name), one.source)
        table.add_row(one.due.isoformat(), str(one.days_left), *cells)
    console.print(table)
    for one in found:
        if one.status is Status.OVERDUE:
            late = f"overdue for {-one.days_left} days: calibrate again"
            console.print(f"{plain(one.file, 500)}:{one.line}: {one.kind} of {plain(one.name)} is {late}")
    for far in lying:
        if far.diverges:
            console.print(_far(far))
    counts = Counter(one.status for one in found)
    console.print(
        f"{counts[Status.OVERDUE]} overdue, {counts[Status.SOON]} due within {options.within_days} days, "
        f"{counts[Status.HOLDS]} later"
    )


def _far(one: Apart) -> str:
    what = "floor" if one.milestone is None else f"threshold at {one.milestone}"
    each = ", ".join(f"{plain(own.vertical or 'platform')} {own.value:.4g} ({own.source})" for own in one.limits)
    return (
        f"{plain(one.judge)}: its {what} lies {one.share:.0%} of the scale apart: {each}. The judge may depend on what "
        "a vertical is about"
    )
