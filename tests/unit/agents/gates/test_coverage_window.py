"""A gate's coverage is that of the window its sample comes from (PC5 §5.5)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from schemas.verdicts import Code
from tests.unit.agents.gates.ramp_answers_rig import Scripted, codes, verdict

DAY, WEEK = 86_400, 604_800


@dataclass
class CoverageOfWindows(Scripted):
    """Users rated a turn within `rated_ago` seconds, and none since. `windows`: what was asked for."""

    rated_ago: int = 0
    windows: list[int] = field(default_factory=list)

    async def rate_of(self, vertical: str | None, window_seconds: int) -> float | None:
        self.windows.append(window_seconds)
        return 0.4 if window_seconds > self.rated_ago else 0.0


@pytest.mark.parametrize(("step", "window"), [((0, 5), DAY), ((50, 100), WEEK)])
@pytest.mark.parametrize("after_the_edge", [False, True])
def test_signals_older_than_the_window_are_no_coverage(
    step: tuple[int, int], window: int, after_the_edge: bool
) -> None:
    scripted = CoverageOfWindows(rated_ago=window - 1 + after_the_edge)
    found = verdict(scripted, from_percent=step[0], to_percent=step[1])
    assert scripted.windows == [window]
    assert (Code.COVERAGE_TOO_LOW in codes(found)) is after_the_edge
