"""What gates ask for where the manifest says only a part, or nothing (contracts §3: defaults are never zero)."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from evalcore.gates.decision import Evidence
from schemas.judges import Milestone
from schemas.manifests import GateDefaults, SampleSection

MERGE, RAMP, FULL = Milestone


def test_a_milestone_that_is_left_out_keeps_its_default() -> None:
    gates = GateDefaults.model_validate({"minimum_sample": {"pre_ramp": 7}, "window_seconds": {"pre_full": 3600}})
    assert gates.minimum_sample == {MERGE: 20, RAMP: 7, FULL: 300}
    assert gates.window_seconds == {RAMP: 86_400, FULL: 3600}


def test_pc5_fr2_5_5_pre_full_looks_at_more_traces_of_a_longer_time_than_pre_ramp() -> None:
    """A day and a week, about 200 items and 500 to 1,000."""
    assert GateDefaults().window_seconds == {RAMP: 86_400, FULL: 604_800}
    size = SampleSection().size
    assert size[RAMP] == 200
    assert 500 <= size[FULL] <= 1_000


def test_no_judge_needs_more_items_of_its_own_than_the_sample_has() -> None:
    gates = GateDefaults.model_validate({"minimum_sample": {"pre_ramp": 3}, "minimum_scored": {"pre_full": 40}})
    assert [Evidence.at(milestone, gates, 0).scored for milestone in Milestone] == [1, 3, 40]


@pytest.mark.parametrize("said", [{}, {"minimum_sample": {}, "window_seconds": {}}])
def test_nothing_said_is_not_nothing_asked(said: dict[str, object]) -> None:
    assert GateDefaults.model_validate(said) == GateDefaults()
    assert min(GateDefaults().minimum_sample.values()) > 0


@pytest.mark.parametrize(
    "said",
    [
        {"minimum_sample": {"pre_merge": 0}},
        {"minimum_sample": {"premerge": 20}},
        {"window_seconds": {"pre_ramp": 59}},
        {"window_seconds": {"pre_ramp": 86_400_000}},
        {"minimum_scored": {"pre_ramp": 0}},
        {"coverage_floor": 0},
        {"coverage_floor": 1.5},
    ],
)
def test_what_asks_for_nothing_or_for_the_impossible_is_refused(said: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        GateDefaults.model_validate(said)
