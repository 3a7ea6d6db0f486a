"""What gates of the shipped manifest do to an agent that stays the same, ten in a row (issue 32, line 8; PC5 R-4)."""

from __future__ import annotations

import pytest

from schemas.judges import Milestone
from tests.unit.evalcore.gates.gate_simulation import EVEN, MIXED, Broken, World, rates

SIZES = [("pre_ramp", 100), ("pre_ramp", 200), ("pre_full", 300), ("pre_full", 600)]
WORLDS = {"traffic of its categories": (EVEN, False), "N/A elsewhere": (MIXED, True)}
RUNS, FEW = 300, 10


@pytest.mark.parametrize(("milestone", "size"), SIZES)
@pytest.mark.parametrize("world", WORLDS)
def test_an_unchanged_agent_is_hardly_ever_blocked(world: str, milestone: str, size: int) -> None:
    """A few runs, which the rule of before fails: it blocked three in four at 100 traces."""
    told, _ = rates(World(*WORLDS[world]), Milestone(milestone), size, FEW)
    assert told["blocks by chance"] <= 2
    assert told["warns by chance"] <= 3


@pytest.mark.slow
@pytest.mark.parametrize(("milestone", "size"), SIZES)
@pytest.mark.parametrize("world", WORLDS)
def test_an_unchanged_agent_is_blocked_in_4_and_warned_in_8_of_100_gates_at_most(
    world: str, milestone: str, size: int
) -> None:
    """The table of docs/verdicts.md is made of this."""
    told, _ = rates(World(*WORLDS[world]), Milestone(milestone), size, RUNS)
    assert told["blocks by chance"] <= 0.04 * RUNS
    assert told["warns by chance"] <= 0.08 * RUNS


def test_what_broke_is_found() -> None:
    """Ten of a hundred traces are greetings: with two in five of them broken eight runs of ten see it; and of 200
    traces a judge of most of them sees a tenth of its scale."""
    broken, lower = Broken("greeting_quality", share=0.4), Broken("response_quality", by=0.4)
    _, found = rates(World(EVEN, na=False), Milestone.PRE_RAMP, 100, 10, [broken])
    assert found[broken]["seen"] >= 8
    _, found = rates(World(EVEN, na=False), Milestone.PRE_RAMP, 200, 5, [lower])
    assert found[lower]["blocked"] >= 4
