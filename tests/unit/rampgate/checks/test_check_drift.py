"""`rampgate check drift BASELINE CURRENT`: two files of scores, and who has drifted (contracts §5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.rampgate.checks.score_commands import ran, scored
from tests.unit.rampgate.ci_gate.gate_rig import jsonl

LIMIT = (
    "drift: {kl_threshold: 0.1, baseline_source: provisional_seed, recalibration_due: 2027-02-18,"
    " calibration: {seeded_on: 2026-11-20}}"
)
WIDE = LIMIT.replace("0.1", "9.5")
LIMITS = {f"rules/{name}.yaml": LIMIT for name in ("helpfulness", "refusal", "honesty")}


def check(then: list[dict[str, Any]], now: list[dict[str, Any]], *words: str) -> tuple[int, dict[str, Any], str]:
    """The command on lines of both files."""
    return ran("check", "drift", jsonl(Path("then.jsonl"), *then), jsonl(Path("now.jsonl"), *now), *words)


SPREAD = [1, 2, 3, 4, 5] * 20
RAISED = [2, 3, 4, 5, 5] * 20


def test_a_judge_whose_scores_have_moved_is_told_with_the_figures_and_exit_code_1(tmp_path: Path) -> None:
    configs = str(written(tmp_path, LIMITS))
    code, told, _ = check(
        scored("helpfulness", SPREAD), scored("helpfulness", RAISED), "--configs", configs, "--json"
    )  # fmt: skip
    (one,) = told["judges"]
    assert (code, one["passed"], told["drifted_count"]) == (1, False, 1)
    assert one["threshold_source"] == "provisional_seed"
    assert (one["ceiling_fraction"], one["floor_fraction"], one["n"], one["shared_items"]) == (0.4, 0.0, 100, 100)
    assert one["kl"] > 0.1
    assert "mean 3, now 3.8" in one["reason"]


def test_a_judge_that_scores_as_it_did_passes_whatever_the_order_of_items(tmp_path: Path) -> None:
    configs = str(written(tmp_path, LIMITS))
    code, told, _ = check(
        scored("Helpfulness", SPREAD), scored("helpfulness", SPREAD[::-1]), "--configs", configs, "--json"
    )  # fmt: skip
    (one,) = told["judges"]
    assert (code, one["passed"], one["kl"], one["reason"], one["judge_id"]) == (0, True, 0.0, "", "helpfulness")


def test_judges_that_nobody_registered_are_answered_too_with_their_ids_as_written(tmp_path: Path) -> None:
    configs = str(written(tmp_path, LIMITS))
    then = [*scored("My-Judge", SPREAD), *scored("yes", [True, False] * 10), *scored("part", [0.25, 0.75] * 60)]
    code, told, _ = check(then, then, "--configs", configs, "--json")
    assert code == 1, "without a limit no one can tell"
    found = {one["judge_id"]: one for one in told["judges"]}
    assert list(found) == ["My-Judge", "yes", "part"]
    for one in found.values():
        assert (one["kl"], one["threshold"], one["passed"], one["registered"]) == (0.0, None, None, False)
        assert "no limit" in one["reason"]


def test_a_verticals_own_limit_holds_for_it_and_the_central_one_for_others(tmp_path: Path) -> None:
    configs = str(written(tmp_path, {**LIMITS, "rules/shop/helpfulness.yaml": WIDE}))
    lines = scored("helpfulness", SPREAD), scored("helpfulness", RAISED)
    assert check(*lines, "--configs", configs, "--json")[0] == 1
    assert check(*lines, "--configs", configs, "--vertical", "travel", "--json")[0] == 1
    code, told, _ = check(*lines, "--configs", configs, "--vertical", "shop", "--json")
    assert told["judges"][0]["threshold"] == 9.5
    assert (code, "KL" in told["judges"][0]["reason"]) == (1, False), "of the same items the shift is seen all the same"
    other = [{**line, "item_id": f"other{line['item_id']}"} for line in lines[1]]
    assert check(lines[0], other, "--configs", configs, "--vertical", "shop", "--json")[0] == 0
    assert check(*lines, "--configs", configs, "--vertical", "nowhere")[0] == 2


def test_too_few_items_and_a_judge_of_one_file_alone_end_with_1_and_say_why(tmp_path: Path) -> None:
    configs = str(written(tmp_path, LIMITS))
    then = [*scored("helpfulness", SPREAD[:24]), *scored("honesty", [True] * 10)]
    now = [*scored("helpfulness", SPREAD[:24]), *scored("refusal", [0.5] * 200)]
    code, told, _ = check(then, now, "--configs", configs, "--json")
    why = {one["judge_id"]: (one["passed"], one["reason"]) for one in told["judges"]}
    assert code == 1
    assert why["helpfulness"] == (None, "24 scores in 5 bins tell nothing: 25 are needed, 5 a bin")
    assert why["refusal"] == (None, "the baseline file has no score of this judge")
    assert why["honesty"] == (None, "the current file has no score of this judge")


def test_na_and_unscored_answers_are_shares_beside_the_divergence(tmp_path: Path) -> None:
    configs = str(written(tmp_path, LIMITS))
    now = [*SPREAD, *["N/A"] * 60, *[None] * 40]
    code, told, _ = check(scored("helpfulness", SPREAD), scored("helpfulness", now), "--configs", configs, "--json")
    (one,) = told["judges"]
    assert (code, one["kl"], one["na_share"], one["unscored_share"], one["baseline_na_share"]) == (0, 0.0, 0.3, 0.2, 0)
    assert len(one["warnings"]) == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"item_id": "i0", "score": 3}, "judge_id: must be a text without blanks at its ends"),
        ({"judge_id": "helpfulness", "score": 3}, "item_id: must be a text without blanks at its ends"),
        ({"judge_id": "helpfulness", "item_id": "i0"}, "score: must be a number, true, false"),
        ({"judge_id": "helpfulness", "item_id": "i0", "score": "4"}, "score: must be a number, true, false"),
        (
            {"judge_id": "helpfulness", "item_id": "i9", "score": 3},
            "item_id: must be there once, got this judge's score of 'i9' on line 9 too",
        ),
        ({"judge_id": "helpfulness", "item_id": "i0", "score": 7}, "score: 7 is none: helpfulness scores INTEGER"),
        ({"judge_id": "helpfulness", "item_id": "i0", "score": 2.5}, "score: 2.5 is none: helpfulness scores INTEGER"),
        ({"judge_id": "HELPFULNESS", "item_id": "i0", "score": 3}, "judge_id: 'HELPFULNESS' and 'helpfulness' are one"),
    ],
)
def test_a_line_that_is_wrong_is_named_with_file_line_and_field(
    line: dict[str, Any], says: str, tmp_path: Path
) -> None:
    configs = str(written(tmp_path, LIMITS))
    good = scored("helpfulness", SPREAD)
    code, _, told = check(good, [*good[1:100], line], "--configs", configs)
    assert (code, f"now.jsonl:100: {says}" in told.replace("\n", "")) == (2, True), told


def test_files_that_say_nothing_are_bad_input(tmp_path: Path) -> None:
    good = scored("helpfulness", SPREAD)
    assert "has no scores" in check(good, [], "--configs", str(written(tmp_path, LIMITS)))[2]
    (tmp_path / "configs" / "evaluation_manifest.yaml").unlink()
    assert check(good, good)[0] == 2, "a registry that is there and broken is told, not passed over"


def test_the_report_says_who_drifted_and_that_it_stays_in_its_gates(tmp_path: Path) -> None:
    configs = str(written(tmp_path, LIMITS))
    code, told, _ = check(scored("helpfulness", SPREAD), scored("helpfulness", RAISED), "--configs", configs)
    assert code == 1
    assert all(said in told["text"] for said in ("helpfulness", "drifted", "stays in its gates"))


def _scores(draw: np.random.Generator, items: int, mean: float = 4.0) -> list[int]:
    return [int(one) for one in np.clip(np.round(draw.normal(mean, 0.8, items)), 1, 5)]


def test_twenty_five_scores_that_have_not_moved_do_not_fail_by_chance(tmp_path: Path) -> None:
    """The shipped limit, 0.1, is below what chance makes of 25 scores in five bins: it failed in 38 of 60 tries."""
    configs, draw = str(written(tmp_path, LIMITS)), np.random.default_rng(1)
    failed = 0
    for _ in range(20):
        lines = scored("helpfulness", _scores(draw, 25)), scored("helpfulness", _scores(draw, 25))
        code, told, _ = check(*lines, "--configs", configs, "--json")
        failed += code
        assert told["judges"][0]["threshold"] > 0.3, "the limit for 25 scores"
    assert failed <= 2


def test_half_a_point_is_seen_of_301_same_items(tmp_path: Path) -> None:
    """A shift below the limit of divergence was missed in 25 of 36 tries: pairs of the same items show it."""
    wide = {"rules/helpfulness.yaml": LIMIT.replace("0.1", "0.5")}
    configs, draw = str(written(tmp_path, wide)), np.random.default_rng(2)
    found = 0
    for _ in range(6):
        then = _scores(draw, 301)
        now = [max(one - int(less), 1) for one, less in zip(then, draw.random(301) < 0.5, strict=True)]
        code, told, _ = check(scored("helpfulness", then), scored("helpfulness", now), "--configs", configs, "--json")
        assert told["judges"][0]["kl"] < 0.5
        found += code
        assert "301 same items have moved by -0." in told["judges"][0]["reason"]
    assert found == 6
