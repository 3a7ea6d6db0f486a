"""`rampgate check cadence`: what is due when, what is overdue, whose limits lie apart (PF-9 FR-4, Decision 11)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalcore.agreement.reference import extended
from evalcore.reloading import ReloadingRegistry
from rampgate.registry.metrics import RegistryMetrics, overdue_judges
from schemas.answers import Refresh
from streams.metrics import Metrics
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.rampgate.checks.score_commands import ran
from tests.unit.rampgate.ci_gate.gate_rig import jsonl

Check = Callable[..., tuple[int, dict[str, Any], str]]
OWN, CENTRAL, BREVITY = "rules/shop/helpfulness.yaml", "rules/helpfulness.yaml", "rules/brevity.yaml"
AGREED = "../specs/verticals/shop/eval/agreement.yaml"


DAY = date(2026, 11, 21)


def seed(days_left: int) -> str:
    """A seed that is due in so many days."""
    due = DAY + timedelta(days=days_left)
    return f"recalibration_due: {due}, calibration: {{seeded_on: {due - timedelta(days=90)}}}"


def drift(days_left: int) -> str:
    due = DAY + timedelta(days=days_left)
    seeded = f"calibration: {{seeded_on: {due - timedelta(days=90)}}}"
    return f"drift: {{kl_threshold: 0.1, baseline_source: provisional_seed, recalibration_due: {due}, {seeded}}}"


def agreed(days_left: int, source: str = "provisional_seed") -> str:
    due = DAY + timedelta(days=days_left)
    stated = (
        f"threshold: 0.667, baseline_source: {source}, set_on: {due - timedelta(days=90)}, recalibration_due: {due}"
    )
    ref = "" if source == "provisional_seed" else ", calibration_ref: PLT-7"
    return f"{{vertical: shop, categories: {{shop_returns: {{{stated}{ref}}}}}}}"


CURRENT = {
    name: f"{{{seed(60)}, drift: null}}" for name in (CENTRAL, BREVITY, OWN, "rules/refusal.yaml", "rules/honesty.yaml")
}


@pytest.fixture(autouse=True)
def on_one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.registry.disk.today", lambda: DAY)


def check(changes: dict[str, str | None], *words: str) -> tuple[int, dict[str, Any], str]:
    root = written(Path(), {**CURRENT, **changes})
    return ran("check", "cadence", "--configs", root, *words, "--json")


def of(told: dict[str, Any], status: str) -> list[tuple[str, str | None, str]]:
    return [
        (one["kind"], one["vertical"], one.get("judge_id") or one["category"])
        for one in told["due"]
        if one["status"] == status
    ]


def test_pf9_fr4_every_kind_of_limit_is_told_with_its_day_and_its_place() -> None:
    code, told, _ = check({OWN: f"{{{seed(60)}, {drift(50)}}}", AGREED: agreed(40)}, "--within-days", "30")
    assert (code, told["overdue_count"], told["due_soon_count"]) == (0, 0, 0)
    assert [(one["kind"], one["vertical"]) for one in told["due"]] == [
        ("agreement", "shop"), ("drift", "shop"), *[("threshold", None)] * 4, ("threshold", "shop")
    ]  # fmt: skip
    first, second = told["due"][:2]
    assert (first["category"], first["days_left"], first["baseline_source"]) == ("shop_returns", 40, "provisional_seed")
    assert first["file"].endswith("specs/verticals/shop/eval/agreement.yaml")
    assert second["recalibration_due"] == (DAY + timedelta(days=50)).isoformat()
    assert second["since"] == (DAY - timedelta(days=40)).isoformat()
    assert second["line"] > 1


def test_pf9_fr13_fr3_fr4_a_limit_of_drift_says_its_day_window_and_source_as_a_threshold_does(tmp_path: Path) -> None:
    """PF-9 FR-13: in the cadence of FR-4, whose days count from its own; a judge without a limit is a warning."""

    def validated(limit: str) -> tuple[int, list[tuple[str, str]]]:
        root = written(tmp_path, {CENTRAL: limit})
        code, told, _ = ran("rules", "validate", "--configs", str(root), "--json")
        findings = [one for one in told["errors"] + told["warnings"] if one["field"].startswith("drift")]
        return code, sorted((one["severity"], one["field"]) for one in findings)

    own = "kl_threshold: 0.1, baseline_source: production_distribution, calibration_ref: PLT-9"
    window = "window_days: 30, percentile: 5, sigma: 2, seeded_on: null"
    sound = f"drift: {{{own}, recalibration_due: 2027-04-30, calibration: {{{window}, calibrated_on: 2026-11-01}}}}"
    assert validated(sound) == (0, [])
    late = sound.replace("2027-04-30", "2027-05-01")
    assert validated(late) == (1, [("error", "drift.recalibration_due")])
    assert validated(late.replace("window_days: 30, ", "")) == (
        1, [("error", "drift.calibration.window_days"), ("error", "drift.recalibration_due")]
    )  # fmt: skip
    assert validated("drift: null") == (0, [("warning", "drift")])


def test_pf9_fr4_a_limit_holds_on_its_last_day_and_is_overdue_on_the_next() -> None:
    code, told, _ = check({OWN: f"{{{seed(0)}, {drift(0)}}}", AGREED: agreed(0)})
    assert (code, of(told, "overdue")) == (0, [])
    assert told["due_soon_count"] == 3
    code, told, _ = check({OWN: f"{{{seed(-1)}, {drift(-1)}}}", AGREED: agreed(-1)})
    assert code == 1
    assert of(told, "overdue") == [
        ("agreement", "shop", "shop_returns"), ("drift", "shop", "helpfulness"), ("threshold", "shop", "helpfulness")
    ]  # fmt: skip


def test_pf9_fr4_a_floor_with_a_source_of_its_own_has_its_own_day() -> None:
    due = DAY - timedelta(days=1)
    floor = f"{{baseline_source: production_distribution, recalibration_due: {due}, calibration_ref: PLT-1}}"
    code, told, _ = check({OWN: f"{{floor: 3, floor_provenance: {floor}}}"})
    assert (code, of(told, "overdue")) == (1, [("floor", "shop", "helpfulness")])


def test_what_is_due_within_the_days_asked_for_is_a_warning() -> None:
    code, told, _ = check({BREVITY: f"{{{seed(20)}}}"}, "--within-days", "19")
    assert (code, of(told, "due_soon")) == (0, [])
    code, told, _ = check({BREVITY: f"{{{seed(20)}}}"}, "--within-days", "20")
    assert (code, of(told, "due_soon")) == (0, [("threshold", None, "brevity")])


@pytest.mark.parametrize("source", ["provisional_seed", "agreement_calibration"])
def test_pf9_ac14_an_overdue_threshold_of_agreement_fails_ci(source: str) -> None:
    """What the workflow asks on every pull request, where an overdue judge only warns (AC-9)."""
    code, told, _ = check({AGREED: agreed(-1, source), OWN: f"{{{seed(-1)}}}"}, "--only", "agreement")
    assert (code, of(told, "overdue")) == (1, [("agreement", "shop", "shop_returns")])
    assert check({AGREED: agreed(0, source), OWN: f"{{{seed(-1)}}}"}, "--only", "agreement")[0] == 0


def test_only_and_vertical_choose_and_an_unknown_word_is_told() -> None:
    late = {OWN: f"{{{seed(-1)}}}", BREVITY: f"{{{seed(-1)}}}"}
    assert of(check(late, "--vertical", "shop")[1], "overdue") == [("threshold", "shop", "helpfulness")]
    assert check(late, "--only", "drift", "--only", "agreement")[0] == 0
    assert "'judges' is not one of 'threshold', 'floor', 'drift', 'agreement'" in check({}, "--only", "judges")[2]
    assert "no vertical 'nowhere'" in check({}, "--vertical", "nowhere")[2]


def test_a_file_that_nobody_can_read_is_no_file_in_which_nothing_is_due() -> None:
    for broken in ({AGREED: "{vertical: shop}"}, {OWN: "{surely_no_field: 1}"}):
        code, _, err = check(broken)
        assert (code, "rules validate" in err) == (2, True)


def test_pf9_decision_11_verticals_whose_limits_of_a_judge_lie_apart_are_told() -> None:
    """The scale is 1 to 5: a tenth of it is 0.4."""
    near = {OWN: f"{{{seed(60)}, threshold: 4.39}}"}
    code, told, _ = check(near)
    (one,) = told["apart"]
    assert (code, told["diverging_count"], one["diverges"]) == (0, 0, False)
    travel = "rules/travel/helpfulness.yaml"
    own = f"{{classification: quality, baseline_source: provisional_seed, calibration_ref: PLT-1, {seed(60)}"
    code, told, _ = check({OWN: f"{{{seed(60)}, threshold: 4.2}}", travel: f"{own}, threshold: 4.8, floor: 3}}"})
    assert (code, told["diverging_count"]) == (0, 2)
    by = {one["limit"]: one for one in told["apart"]}
    assert by["threshold"]["spread"] == pytest.approx(0.8)
    assert by["threshold"]["share_of_scale"] == pytest.approx(0.2)
    assert {own["vertical"]: own["value"] for own in by["threshold"]["limits"]} == {
        None: 4.0, "shop": 4.2, "travel": 4.8
    }  # fmt: skip
    assert by["floor"]["share_of_scale"] == pytest.approx(0.25)


def test_the_gauge_and_the_check_never_disagree(tmp_path: Path) -> None:
    """PF-9 §10.2: eval_calibration_recalibration_overdue, on a worker and of the command."""
    late = {OWN: f"{{{seed(60)}, {drift(-1)}}}", BREVITY: f"{{{seed(-1)}}}"}
    code, told, _ = check(late, "--metrics-file", str(tmp_path / "cadence.prom"))
    assert (code, {name for _, _, name in of(told, "overdue")}) == (1, {"helpfulness", "brevity"})
    left = (tmp_path / "cadence.prom").read_text()
    assert 'eval_calibration_recalibration_overdue{judge_id="helpfulness"} 1.0' in left
    assert 'eval_calibration_recalibration_overdue{judge_id="refusal"} 0.0' in left
    served = ReloadingRegistry(tmp_path / "configs", ttl=None)
    metrics, registry = Metrics(), served.current()
    refresh = Refresh(
        outcome="loaded", message="", config_hash="", previous_config_hash=None, judges=4, error_count=0,
        warning_count=0, errors=[], warnings=[],
    )  # fmt: skip
    RegistryMetrics(metrics, lambda: DAY).moved(refresh, served.refresh(), registry)
    for name, overdue in overdue_judges(registry, DAY).items():
        assert metrics.registry.get_sample_value("eval_calibration_recalibration_overdue", {"judge_id": name}) == float(
            overdue
        )


def test_pf9_fr14_a_seed_after_the_first_round_is_an_error_of_rules_validate(tmp_path: Path) -> None:
    assert check({AGREED: agreed(40)})[0] == 0
    words = ("rules", "validate", "--configs", str(tmp_path / "configs"), "--json")
    assert ran(*words)[0] == 0
    eval_folder = tmp_path / "specs/verticals/shop/eval"
    rated = {"shop_returns": rating()}
    jsonl(eval_folder / "reference-set.jsonl", *extended([], rated, "round-1", "2026-11-01T00:00:00Z"))
    code, told, _ = ran(*words)
    assert code == 1
    assert [one["check"] for one in told["errors"]] == ["agreement-seed-is-first"]
    (eval_folder / "reference-set.jsonl").write_text('{"round": 1}\n')
    code, _, err = ran(*words)
    assert (code, "reference-set.jsonl:1: " in err) == (2, True)


def rating() -> Any:
    from evalcore.agreement.check import Rated

    return Rated(["i1"], ["x", "y"], [0, 0], [0, 1], [3.0, 4.0])


def test_the_report_tells_what_to_do(tmp_path: Path) -> None:
    check({OWN: f"{{{seed(-3)}, threshold: 5}}"})
    code, told, _ = ran("check", "cadence", "--configs", str(tmp_path / "configs"))
    said = " ".join(told["text"].split())
    assert code == 1
    assert "threshold of helpfulness: overdue for 3 days: calibrate again" in said
    assert "1 0.25 platform 4, shop 5" in said
    assert "1 overdue, 1 far apart" in said
