"""`rampgate calibrate jade / production / seed FILE`: a limit for each judge, and what to write (PF-9 §5.3)."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from schemas.judges import Provenance
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.rampgate.checks.score_commands import AGREEING, calibrated, rated, scored


def test_a_jade_floor_is_of_the_scores_that_people_found_acceptable(tmp_path: Path) -> None:
    configs = str(written(tmp_path))
    code, told, _ = calibrated(
        "jade", rated("helpfulness", AGREEING), "--acceptable", "4", "--configs", configs, "--json"
    )  # fmt: skip
    (one,) = told["judges"]
    assert (code, one["floor"], one["n"], one["traces"], one["proposed"]) == (0, 3.0, 160, 220, True)
    assert 0 < one["breach_probability"] < 0.01, "of all 220 turns, those that people reject among them"
    assert 0 < one["detectable_drop"] < 4
    block = yaml.safe_load(one["block"])
    assert (block["floor"], block["calibration"]["traces"]) == (3, 220)
    assert Provenance.model_fields.keys() >= block.keys() - {"floor"}


def test_an_inverted_judge_and_one_with_few_traces_get_no_floor() -> None:
    lines = [
        *rated("against", [(6 - own, human) for own, human in AGREEING]),
        *rated("young", AGREEING[:20] + AGREEING[-100:]),
    ]
    code, told, _ = calibrated("jade", lines, "--acceptable", "4", "--json")
    why = {one["judge_id"]: (one["proposed"], one["block"], one["reason"]) for one in told["judges"]}
    assert code == 1
    assert why["against"][:2] == (False, None)
    assert "inverted" in why["against"][2]
    assert "120 annotated traces are too few" in why["young"][2]


def test_a_production_floor_that_nothing_could_breach_is_shown_and_not_proposed() -> None:
    lines = [*scored("wide", [1, 2, 3, 4, 5] * 40), *scored("narrow", [0.8, 0.85, 0.9] * 60)]
    code, told, _ = calibrated("production", lines, "--json")
    wide, narrow = told["judges"]
    assert (code, wide["proposed"], narrow["proposed"], wide["registered"]) == (1, False, True, False)
    assert wide["floor"] < 1
    assert yaml.safe_load(narrow["block"])["calibration"] | {"calibrated_on": None} == {
        "window_days": 30, "percentile": 5, "sigma": 2, "calibrated_on": None
    }  # fmt: skip


def test_a_seed_is_a_threshold_for_ninety_days(tmp_path: Path) -> None:
    code, told, _ = calibrated("seed", scored("mine", [4, 5, 4, 5, 4] * 4), "--json")
    (one,) = told["judges"]
    block = yaml.safe_load(one["block"])
    assert (code, one["threshold"]) == (0, pytest.approx(4.4 - 2 * (0.24 * 20 / 19) ** 0.5))
    assert (block["recalibration_due"] - block["calibration"]["seeded_on"]).days == 90


@pytest.mark.parametrize(
    ("scores", "proposed"),
    [([4, 5, 4, 5, 4] * 4, True), (([4, 5, 4, 5, 4] * 4)[1:], False), ([4, 5], False), ([4] * 40, False)],
    ids=["20", "19", "2", "all the same"],
)
def test_a_seed_takes_twenty_scores_that_vary(scores: list[int], proposed: bool) -> None:
    code, told, _ = calibrated("seed", scored("mine", scores), "--json")
    (one,) = told["judges"]
    assert (code, one["proposed"]) == (0 if proposed else 1, proposed)
    assert ("20 are needed" in one["reason"]) is not proposed


def test_a_floor_that_unchanged_traffic_breaches_in_half_of_all_gates_says_so() -> None:
    """Ten traces of 200 are bad and people accept the rest, all of which have the top score: the floor is the top."""
    lines = [
        {"judge_id": "mine", "item_id": f"i{n}", "judge_score": 5 if n >= 10 else 3, "human_score": 5 if n >= 10 else 2}
        for n in range(200)
    ]
    code, told, _ = calibrated("jade", lines, "--acceptable", "4", "--json")
    (one,) = told["judges"]
    assert (code, one["floor"], one["proposed"]) == (0, 5, True)
    assert "unchanged traffic breaches 5 in 99% of gates" in (one.get("warning") or "")
    assert "unchanged traffic breaches 5 in" in calibrated("jade", lines, "--acceptable", "4")[1]["text"]


def test_a_vertical_is_proposed_nothing_below_the_platform(tmp_path: Path) -> None:
    configs = str(written(tmp_path))
    low = scored("helpfulness", [3, 3, 3, 4, 3] * 10)
    code, told, _ = calibrated("seed", low, "--vertical", "shop", "--configs", configs, "--json")
    assert (code, "below the platform's threshold, 4" in told["judges"][0]["reason"]) == (1, True)
    assert calibrated("seed", low, "--configs", configs)[0] == 0
    assert calibrated("seed", low, "--vertical", "nowhere", "--configs", configs)[0] == 2


def test_the_report_shows_the_block_and_bad_lines_are_named(tmp_path: Path) -> None:
    code, told, _ = calibrated("seed", scored("mine", [4, 5, 4, 5, 4] * 4))
    assert (code, "baseline_source: provisional_seed" in told["text"]) == (0, True)
    code, _, said = calibrated("seed", [*scored("mine", [4]), {"judge_id": "mine", "item_id": "i9", "score": "x"}])
    assert (code, "scores.jsonl:2: score" in said) == (2, True)
    configs = str(written(tmp_path))
    code, _, said = calibrated("seed", scored("helpfulness", [9, 4]), "--configs", configs)
    assert (code, "scores.jsonl:1: score: 9 is no score of helpfulness from 1 to 5" in said) == (2, True)
