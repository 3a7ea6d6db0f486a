"""Runs `rampgate check cadence`: what has to be derived again and when, and whose limits lie apart (PF-9 FR-4)."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from typer import Option

from rampgate.command import Context, Document, command
from rampgate.report.checks import cadence_report
from schemas.terms import LimitKind

GAUGE = "eval_calibration_recalibration_overdue"


@command(cadence_report, flags="configs metrics_file", metrics=(GAUGE,))
def cadence(
    context: Context,
    only: Annotated[list[LimitKind] | None, Option(help="what counts, once or more; default: all three")] = None,
    vertical: Annotated[str | None, Option(help="only what this vertical states")] = None,
    within_days: Annotated[int, Option(min=0, help="also list what is due so soon")] = 30,
) -> Document:
    """Show by which day each limit has to be derived again, and which verticals' limits of a judge lie far apart.

    Thresholds and floors of judges, limits of their drift, least agreement of annotators; the platform's and each
    vertical's (PF-9 FR-4, Decision 11). Exit code 1 if one is overdue.

    Example: rampgate check cadence --within-days 45
    """
    from evalcore.calibration.cadence import Status, apart, due
    from rampgate.registry.metrics import overdue_judges
    from rampgate.registry.view import require_vertical

    files, registry = context.readable
    if vertical is not None:
        require_vertical(vertical, registry.verticals)
    found = [
        one
        for one in due(files, within_days)
        if (not only or one.kind in only) and vertical in (None, one.vertical)
    ]  # fmt: skip
    if context.metrics_file is not None:
        for judge, late in overdue_judges(registry, files.today).items():
            context.metrics.recalibration_overdue.labels(judge).set(late)
    lying = apart(registry, files.vertical_rules.keys())
    counts = Counter(one.status for one in found)
    fields: dict[str, Any] = {
        "today": files.today.isoformat(),
        "vertical": vertical,
        "within_days": within_days,
        "overdue_count": counts[Status.OVERDUE],
        "due_soon_count": counts[Status.SOON],
        "due": [
            {
                "kind": one.kind,
                "vertical": one.vertical,
                "category" if one.kind is LimitKind.AGREEMENT else "judge_id": one.name,
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
    return Document(fields, 1 if counts[Status.OVERDUE] else 0)
