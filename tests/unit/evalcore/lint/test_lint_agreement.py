"""How far annotators have to agree: where that comes from, and until when it holds (PF-9 FR-14, FR-4, AC-14)."""

from __future__ import annotations

from datetime import date

from evalcore.lint.checks import lint
from evalcore.yaml.findings import Severity
from tests.unit.evalcore.lint.lint_cases import AGREED, Case, check_cases
from tests.unit.evalcore.registry.registry_files import parsed_registry


def agreed(category: str = "shop_returns", **fields: str) -> dict[str, str | None]:
    stated = {
        "threshold": "0.667", "baseline_source": "provisional_seed", "set_on": "2026-11-20",
        "recalibration_due": "2027-02-18", **fields,
    }  # fmt: skip
    inside = ", ".join(f"{name}: {value}" for name, value in stated.items())
    return {AGREED: f"{{vertical: shop, categories: {{{category}: {{{inside}}}}}}}"}


def derived(**fields: str) -> dict[str, str | None]:
    return agreed(**{"baseline_source": "agreement_calibration", "calibration_ref": "PLT-7", **fields})


CASES = [
    Case(
        "agreement-of-a-category",
        agreed("shop_return"),
        f"{AGREED}: categories.shop_return",
        agreed(),
        ("shop_returns",),
    ),
    Case(
        "agreement-is-cited",
        agreed(baseline_source="production_annotation_distribution"),
        f"{AGREED}: categories.shop_returns.calibration_ref",
        derived(),
    ),
    Case(
        "agreement-cadence",
        agreed(recalibration_due="2027-02-19"),
        f"{AGREED}: categories.shop_returns.recalibration_due",
        agreed(),
        ("90 days", "2027-02-18"),
    ),
    Case(
        "agreement-cadence",
        derived(recalibration_due="2027-05-20"),
        f"{AGREED}: categories.shop_returns.recalibration_due",
        derived(recalibration_due="2027-05-19"),
        ("180 days",),
    ),
    Case(
        "agreement-cadence",
        agreed(set_on="2026-11-22"),
        f"{AGREED}: categories.shop_returns.set_on",
        agreed(set_on="2026-11-21"),
    ),
    Case(
        "agreement-seed-is-first",
        agreed("general_qa"),
        f"{AGREED}: categories.general_qa.baseline_source",
        agreed(),
        ("has had a round", "agreement_calibration"),
    ),
    Case(
        "agreement-overdue",
        agreed(),
        f"{AGREED}: categories.shop_returns.recalibration_due",
        agreed(set_on="2026-11-30", recalibration_due="2027-02-19"),
        today=date(2027, 2, 19),
    ),
]


def test_a_threshold_of_agreement_cites_its_source_and_holds_for_its_days() -> None:
    check_cases(CASES)


def test_an_overdue_threshold_is_a_warning_that_stops_no_worker_from_serving() -> None:
    """PF-9 AC-14: it is `check cadence` that fails in CI."""
    on_its_last_day, found = (parsed_registry(agreed(), day)[0] for day in (date(2027, 2, 18), date(2027, 2, 19)))
    overdue = [one for one in lint(found) if one.check == "agreement-overdue"]
    assert [(one.severity, one.field) for one in overdue] == [
        (Severity.WARNING, "categories.shop_returns.recalibration_due")
    ]
    assert not [one for one in lint(on_its_last_day) if one.check == "agreement-overdue"]


def test_a_file_of_another_vertical_is_refused() -> None:
    _, findings = parsed_registry({AGREED: (agreed()[AGREED] or "").replace("vertical: shop", "vertical: travel")})
    assert [(one.check, one.field) for one in findings] == [("name-fits-place", "vertical")]


def test_a_field_that_is_none_is_told_with_its_clause() -> None:
    _, findings = parsed_registry(agreed(treshold="0.8"))
    assert [(one.field, one.clause) for one in findings] == [("categories.shop_returns.treshold", "PF-9 FR-14")]
