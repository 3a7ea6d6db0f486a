"""Limits of sampled scores: by the weight of what was drawn, of the days that they are of (PF-9 §5.3)."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest

from evalcore.calibration.floors import derived, of_days
from evalcore.drift.scale import Scale
from evalcore.registry import disk
from schemas.judges import BaselineSource
from tests.root import ROOT
from tests.unit.rampgate.checks.score_commands import calibrated, scored

FIRST = date(2026, 10, 1)
FRACTION = Scale(0, 1, False)


def calibrate(source: str, lines: list[dict[str, Any]], *words: str) -> tuple[int, dict[str, Any], str]:
    return calibrated(source, lines, *words, "--json")


def daily(days: int, each: int = 4, **more: Any) -> list[dict[str, Any]]:
    lines = scored("mine", [0.8, 0.85, 0.9, 0.85] * days)
    return [{**one, "day": str(FIRST + timedelta(days=n // each)), **more} for n, one in enumerate(lines)]


def test_pf9_5_3_the_percentile_is_of_the_weight() -> None:
    """A low score that was drawn ten times as often as the rest weighs a tenth."""
    lines = scored("mine", [0.2] * 10 + [0.8] * 50 + [0.9] * 50)
    often = [{**one, "weight": 1 if one["score"] == 0.2 else 10} for one in lines]
    people = [{**one, "judge_score": one.pop("score"), "human_score": 1.0} for one in (dict(line) for line in lines)]
    drawn = [{**one, "weight": 1 if one["judge_score"] == 0.2 else 10} for one in people * 2]
    for n, one in enumerate(drawn):
        one["item_id"] = f"i{n}"
    (plain,), (weighted,) = (calibrate("production", given)[1]["judges"] for given in (lines, often))
    assert (plain["p5"], weighted["p5"]) == (0.2, 0.8)
    assert plain["effective_n"] == plain["n"] == weighted["n"] == 110
    assert weighted["effective_n"] == pytest.approx(1010**2 / 10_010)
    assert weighted["mean"] == pytest.approx((10 * 0.2 + 500 * 0.8 + 500 * 0.9) / 1010)
    (of_people,) = calibrate("jade", drawn, "--acceptable", "0.5")[1]["judges"]
    assert of_people["p5"] == 0.8


def judged(scores: list[float], people: list[float]) -> list[dict[str, Any]]:
    pairs = zip(scored("mine", scores), people, strict=True)
    return [{**one, "judge_score": one.pop("score"), "human_score": score} for one, score in pairs]


def test_pf9_5_3_how_often_a_floor_is_breached_is_of_all_turns_not_of_those_that_people_accept() -> None:
    """A gate judges turns that no one looked at. With 40 of 100 turns not acceptable their mean lies far below a floor
    that comes of the other 60."""
    good, bad = [0.85, 0.9, 0.95] * 20, [0.25, 0.35] * 20
    lines = judged((good + bad) * 3, ([1.0] * 60 + [0.25] * 40) * 3)
    (one,) = calibrate("jade", lines, "--acceptable", "0.5")[1]["judges"]
    assert (one["floor"], one["n"], one["mean"]) == (0.85, 180, pytest.approx(0.9))
    assert one["breach_probability"] == pytest.approx(1, abs=1e-6), "0.9 * 60 % + 0.3 * 40 % is 0.66"
    often = [{**line, "weight": 1_000 if line["human_score"] == 1.0 else 1} for line in lines]
    (weighted,) = calibrate("jade", often, "--acceptable", "0.5")[1]["judges"]
    assert weighted["breach_probability"] < 0.001, "of the traffic that was drawn from one turn of 1,500 is bad"
    assert weighted["detectable_drop"] == pytest.approx(0.9 - 0.85, abs=0.01)


@pytest.mark.parametrize("judge", ["mine", "ux-quality"])
def test_a_score_off_the_scale_is_told_also_where_people_did_not_accept_the_turn(judge: str) -> None:
    lines = [{**one, "judge_id": judge} for one in judged([0.5, 0.9] * 100, [0.25, 1.0] * 100)]
    lines[2]["judge_score"] = 30
    words = () if judge == "mine" else ("--configs", str(ROOT / "configs"))
    code, told, err = calibrate("jade", lines, "--acceptable", "0.5", *words)
    if judge == "mine":
        assert (code, told["judges"][0]["reason"]) == (1, "its scores fit no scale")
    else:
        assert (code, "scores.jsonl:3: judge_score: 30 is no score of ux-quality" in err) == (2, True), err


def test_a_judge_without_a_turn_that_people_accept_is_told_so() -> None:
    lines = judged([0.5, 0.9] * 100, [0.25, 0.75] * 100)
    code, told, _ = calibrate("jade", lines, "--acceptable", "0.8")
    assert (code, told["judges"][0]["reason"]) == (
        1, "people accept none of its turns: no score of theirs is 0.8 or more"
    )  # fmt: skip


def test_weights_that_are_all_alike_change_nothing_whatever_their_size() -> None:
    scores, scale = np.array([0.5] * 5 + [0.8] * 50 + [0.9] * 45), FRACTION
    one = derived(BaselineSource.PRODUCTION_DISTRIBUTION, scores, np.ones(100), scale, 100)
    for size in (1e-300, 7.0, 1e308):
        other = derived(BaselineSource.PRODUCTION_DISTRIBUTION, scores, np.full(100, size), scale, 100)
        assert other == one


@pytest.mark.parametrize("weight", [0, -1, "2", True, None, [1], float("nan"), float("inf")])
@pytest.mark.parametrize("source", ["production", "jade"])
def test_a_weight_that_is_none_is_told_with_its_line(source: str, weight: Any) -> None:
    lines = scored("mine", [0.8, 0.9])
    if source == "jade":
        lines = [{"judge_id": "mine", "item_id": n, "judge_score": 1, "human_score": 1} for n in range(2)]
    lines[1]["weight"] = weight
    words = ("--acceptable", "1") if source == "jade" else ()
    code, _, err = calibrate(source, lines, *words)
    assert (code, "scores.jsonl:2: weight: " in err) == (2, True)


def test_beside_the_floor_of_single_scores_stands_that_of_daily_means() -> None:
    """The means of days spread far less than single scores, so production's rule says something of them."""
    spread = [{**one, "score": 1 + n % 5} for n, one in enumerate(daily(30))]
    (one,) = calibrate("production", spread)[1]["judges"]
    assert (one["proposed"], "lowest tenth" in one["reason"]) == (False, True)
    means = one["daily_means"]
    assert (means["days"], means["span_days"]) == (30, 30)
    assert 1.4 < means["floor"] < means["p5"] < means["mean"]
    assert means["floor"] == pytest.approx(means["p5"] - 2 * means["sigma"])
    assert calibrate("production", scored("mine", [0.8, 0.9]))[1]["judges"][0]["daily_means"] is None


def test_each_day_counts_once_and_its_scores_by_their_weight() -> None:
    scores = np.array([0.5, 0.7, 0.9, 0.9, 0.9, 0.9, 0.7])
    weights = np.array([3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    found = of_days(scores, weights, np.array([1, 1, 3, 3, 3, 3, 4]), FRACTION, 100)
    assert found is not None
    assert (found.days, found.span, found.percentile) == (3, 4, pytest.approx(0.55))
    assert found.mean == pytest.approx((0.55 + 0.9 + 0.7) / 3)
    assert found.sigma == pytest.approx(float(np.std([0.55, 0.9, 0.7], ddof=1)))
    single = of_days(scores[:2], weights[:2], np.array([1, 1]), FRACTION, 100)
    assert single is not None
    assert (single.days, single.limit) == (1, None)


@pytest.mark.parametrize(
    ("days", "words", "why"),
    [
        (30, (), ""),
        (29, (), "a window of 29 days, not of 30"),
        (29, ("--window-days", "29"), ""),
        (6, ("--window-days", "7"), "of 6 days; 7 are the fewest"),
    ],
)
def test_pf9_5_3_scores_of_fewer_days_than_asked_for_are_no_window(days: int, words: tuple[str, ...], why: str) -> None:
    code, told, _ = calibrate("production", daily(days), *words)
    (one,) = told["judges"]
    assert (code, one["proposed"]) == ((1, False) if why else (0, True))
    assert why in one["reason"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("day", "yesterday"), ("day", 20261123), ("timestamp", "2026-11-23T08:15:00"), ("timestamp", 1_700_000_000)],
)
def test_a_day_that_is_none_is_told_with_its_line(field: str, value: Any) -> None:
    lines = [{**one, field: value} for one in scored("mine", [0.8])]
    code, _, err = calibrate("production", lines)
    assert (code, f"scores.jsonl:1: {field}: " in err) == (2, True)


@pytest.mark.parametrize("source", ["jade", "production"])
@pytest.mark.parametrize("weighted", [0, 1], ids=["the first line", "a later line"])
def test_a_judges_lines_all_have_a_weight_or_none_has(source: str, weighted: int) -> None:
    """A line without one among others would count as one turn, whatever it was drawn from."""
    lines = scored("mine", [0.8, 0.9, 0.7])
    if source == "jade":
        lines = [{**one, "judge_score": one["score"], "human_score": 0.5} for one in lines]
    lines[weighted]["weight"] = 4
    words = ("--acceptable", "0.5") if source == "jade" else ()
    code, _, err = calibrate(source, lines, *words)
    got = "4.0" if weighted else "nothing"
    told = f"scores.jsonl:2: weight: must be on all lines of a judge or on none, got {got}"
    assert (code, told in err) == (2, True), err


@pytest.mark.parametrize("field", ["day", "timestamp"])
def test_a_day_that_has_not_come_is_told_with_its_line(field: str) -> None:
    later = disk.today() + timedelta(days=2)  # also where a day ends meanwhile
    moment = f"{later}" if field == "day" else f"{later}T00:00:00Z"
    lines = [{**one, field: moment} for one in scored("mine", [0.8])]
    code, _, err = calibrate("production", lines)
    told = rf"scores\.jsonl:1: {field}: must be at most [-\d]+, today in UTC, got {moment!r}"
    assert (code, bool(re.search(told, err))) == (2, True)


def test_a_day_is_one_of_utc_and_all_lines_of_a_judge_have_one() -> None:
    late = [{**one, "timestamp": "2026-11-22T23:30:00-01:00"} for one in scored("mine", [0.8, 0.9])]
    early = {**late[0], "item_id": "x", "timestamp": "2026-11-23T09:00:00Z"}
    (one,) = calibrate("production", [*late, early])[1]["judges"]
    assert one["daily_means"]["days"] == 1
    code, _, err = calibrate("production", [*late, *scored("mine", [0.1, 0.2, 0.3])[2:]])
    assert (code, "scores.jsonl:3: day: " in err) == (2, True)
