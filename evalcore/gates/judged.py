"""Holds what a gate knows of a judge when it decides: its answers, and what they are compared with. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from evalcore.gates.limits import Limits
from evalcore.scoring.answers import Answers
from schemas.judges import Confirmation, Enforcement, Noise
from schemas.verdicts import JudgeStanding


@dataclass(frozen=True)
class Judged:
    """A judge, or a dimension of one, at a gate. `overdue_days` of a provisional seed, 0 in time. `suspended` says why,
    empty where it is not; `suspension` whether that blocks or warns. `standing` is what the limits rest on, and
    `recalibration_due` until when. `not_applicable_share` of its items may be not applicable, and no more; of
    `cut_share` of them it may have been shown a part. `noise`: what was measured of the judge's disagreement with
    itself; `confirmation`: how often a failing answer of it is asked for. `unasked`: what kept it
    from being asked about any item."""

    answers: Answers
    limits: Limits
    scale: tuple[float, float]
    boolean: bool = False
    version: str = ""
    overdue_days: int = 0
    suspended: str = ""
    suspension: Enforcement = Enforcement.BLOCK
    standing: JudgeStanding | None = None
    recalibration_due: str | None = None
    not_applicable_share: float = 0.5
    cut_share: float = 0.1
    noise: Noise | None = None
    confirmation: Confirmation | None = None
    unasked: str = ""
