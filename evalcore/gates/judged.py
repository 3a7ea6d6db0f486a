"""Who decides at a gate, and a judge's answers put beside its limits at a milestone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from evalcore.gates.answers import Answer, collect
from evalcore.gates.decision import Judged
from evalcore.gates.limits import Limits
from evalcore.linting.cadence import overdue
from evalcore.registry import Judge, Registry
from schemas.judges import Enforcement, Milestone, ScoreType

OFF = "its rule file says enabled: false"


def deciding(names: Iterable[str], registry: Registry, vertical: str | None) -> dict[str, Judge]:
    """By each name that decides, a judge's id or `judge.dimension`, the judge as the vertical sees it."""
    return {name: registry.judge(name.partition(".")[0], vertical) for name in names}


def judged(
    name: str,
    judge: Judge,
    milestone: Milestone,
    answers: Sequence[Answer],
    past: Sequence[float],
    suspended: str,
    today: date,
    enforcement: Enforcement | None = None,
    outdated: str = "",
) -> Judged:
    """`name` is the judge's id or `judge.dimension`; `past` its aggregates on main, oldest first. `enforcement`: what
    an audited override makes of the judge's own, which a safety judge doesn't take. `outdated`: the version that main
    has a baseline of, where it has none of this one."""
    _, _, dimension = name.partition(".")
    of = judge.dimensions[dimension] if dimension else judge
    late = overdue(judge, today)
    enforced = judge.enforcement[milestone] if enforcement is None or judge.safety else enforcement
    return Judged(
        answers=collect(answers, judge.score_range),
        limits=Limits.of(of.thresholds[milestone], of.floor, judge.tolerance, enforced, past, outdated),
        scale=judge.score_range,
        boolean=judge.score_type is ScoreType.BOOLEAN,
        version=judge.version,
        overdue_days=late.days if late is not None and late.provisional else 0,
        suspended=suspended,
    )
