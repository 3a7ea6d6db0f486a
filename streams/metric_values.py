"""The closed lists that labels of metrics are declared with, and the buckets of their histograms."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

from schemas.outcomes import Cause, FilterReason, Kind, ParkReason, State
from streams.metric_set import Values

SIGNALS: Final[Values] = tuple(kind.value for kind in Kind)
STATES: Final[Values] = tuple(state.value for state in State)
WRITTEN: Final[Values] = (Kind.THUMBS.value, Kind.REROLL.value)
CAUSES: Final[Values] = tuple(cause.value for cause in Cause)
MILESTONES: Final[Values] = ("pre_merge", "pre_ramp", "pre_full")
VERDICTS: Final[Values] = ("pass", "warn", "fail", "error")
JUDGE_ANSWERS: Final[Values] = (
    "ok", "cached", "timeout", "rate_limited", "unavailable", "unreachable", "refused", "unauthorized", "slip"
)  # fmt: skip
"""How a call of a judge's model ends (`evalcore.scoring.Failure`), and answers that needed none."""
JUDGED: Final[Values] = ("scored", "not_applicable", "unscored")
TIERS: Final[Values] = ("safety", "quality")
REGRESSIONS: Final[Values] = ("breach", "recovered", "lapsed")
NOTIFIED: Final[Values] = ("delivered", "failed")
OPIK_OUTCOMES: Final[Values] = ("ok", "rejected", "unauthorized", "rate_limited", "unavailable")
REFRESHES: Final[Values] = ("loaded", "unchanged", "refused", "empty")
FEED_OUTCOMES: Final[Values] = ("published", "skipped", "failed")
SWEEP_OUTCOMES: Final[Values] = ("published", "unchanged", "older", "bad")

SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
WAITS: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 21_600.0, 86_400.0)
RUNS: Final = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0)
LOOKUPS: Final = (0.000_001, 0.000_01, 0.000_1, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
SCORES: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)


def record_states() -> Iterable[Values]:
    """(signal, state, reason) as they can occur."""
    reasons: dict[State, Values] = {
        State.PARKED: tuple(reason.value for reason in ParkReason),
        State.FILTERED: tuple(reason.value for reason in FilterReason),
    }
    for signal, state in itertools.product(SIGNALS, State):
        for reason in reasons.get(state, ("",)):
            yield signal, state.value, reason
