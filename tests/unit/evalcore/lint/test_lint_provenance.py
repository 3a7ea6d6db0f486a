"""Where a threshold comes from and until when it holds (PF-9 FR-3, FR-4, §5.3, AC-3, AC-9)."""

from __future__ import annotations

from datetime import date

import pytest

from evalcore.lint.checks import lint
from evalcore.registry.files import assemble
from evalcore.registry.judge import overdue
from evalcore.yaml.findings import Severity
from schemas.judges import BaselineSource, Enforcement, Milestone
from tests.unit.evalcore.lint.lint_cases import MANIFEST, OVERLAY, QUALITY, RED_TEAM, Case, check_cases
from tests.unit.evalcore.registry.registry_files import TODAY, parsed_registry, registry

JADE_FIELDS = {
    "ticket": "PLT-596",
    "report": "Confluence 6331367452",
    "traces": "301",
    "agreement": "{metric: krippendorff_alpha, value: 0.71}",
    "inverted_findings": "None.",
    "calibrated_on": "2026-11-01",
}
PRODUCTION_FIELDS = {"window_days": "30", "percentile": "5", "sigma": "2", "calibrated_on": "2026-11-01"}


def calibration(fields: dict[str, str], **more: str | None) -> str:
    stated = {name: value for name, value in {**fields, "seeded_on": "null", **more}.items() if value is not None}
    return "{" + ", ".join(f"{name}: {value}" for name, value in stated.items()) + "}"


def jade(due: str = "2027-04-30", **more: str | None) -> str:
    return (
        f"baseline_source: jade_calibration\ncalibration_ref: PLT-596\nrecalibration_due: {due}\n"
        f"calibration: {calibration(JADE_FIELDS, **more)}"
    )


def production(due: str = "2027-04-30", **more: str | None) -> str:
    return (
        f"baseline_source: production_distribution\nrecalibration_due: {due}\n"
        f"calibration: {calibration(PRODUCTION_FIELDS, **more)}"
    )


def drift(source: str, due: str, reference: str = "PLT-596", stated: str = "null") -> str:
    fields = f"kl_threshold: 0.1, baseline_source: {source}, recalibration_due: {due}, calibration: {stated}"
    return f"drift: {{{fields}, calibration_ref: {reference or 'null'}}}"


def of(limit: str, source: str, due: str = "2027-04-30", *, stated: dict[str, str], **more: str | None) -> str:
    """A limit of the file that has a source of its own."""
    own = f"baseline_source: {source}, calibration_ref: PLT-596, recalibration_due: {due}"
    number = "kl_threshold: 0.1, " if limit == "drift" else ""
    if limit != "drift":
        more = {"seeded_on": None, **more}  # nothing is laid over
    return f"{limit}: {{{number}{own}, calibration: {calibration(stated, **more)}}}"


def own_source(limit: str) -> list[Case]:
    """What a threshold's source has to state, asked of another limit of the file."""
    seeded = {"seeded_on": "2026-11-20"}

    def case(check: str, fails: str, at: str, holds: str) -> Case:
        return Case(
            check,
            {QUALITY: fails},
            f"{QUALITY}: {limit}.{at}",
            {QUALITY: holds},
            (f"the {limit.split('_')[0]} limit of",) if check in ("jade-is-cited", "recalibration-overdue") else (),
        )

    def made(source: str, due: str = "2027-04-30", **more: str | None) -> str:
        return of(limit, source, due, stated=PRODUCTION_FIELDS if "production" in source else JADE_FIELDS, **more)

    sound, produced = made("jade_calibration"), made("production_distribution")
    seed = of(limit, "provisional_seed", "2027-02-18", stated={}, **seeded)
    return [
        *(
            case("jade-is-cited", made("jade_calibration", **{name: None}), f"calibration.{name}", sound)
            for name in ("ticket", "report", "traces", "agreement", "inverted_findings")
        ),
        case("jade-traces", made("jade_calibration", traces="199"), "calibration.traces", sound),
        case(
            "jade-agreement",
            made("jade_calibration", agreement="{metric: cohen_kappa, value: -0.1}"),
            "calibration.agreement.value",
            sound,
        ),
        case("production-is-declared", made("production_distribution", sigma=None), "calibration.sigma", produced),
        case(
            "production-window", made("production_distribution", window_days="6"), "calibration.window_days", produced
        ),
        case(
            "seed-is-needed",
            of(limit, "provisional_seed", "2027-02-18", stated=JADE_FIELDS, **seeded),
            "baseline_source",
            seed,
        ),
        case(
            "calibration-days", made("jade_calibration", calibrated_on="2027-01-01"), "calibration.calibrated_on", sound
        ),
        case(
            "calibration-day-stated", made("jade_calibration", calibrated_on=None), "calibration.calibrated_on", sound
        ),
        case(
            "seed-cadence", of(limit, "provisional_seed", "2027-02-19", stated={}, **seeded), "recalibration_due", seed
        ),
        case("calibration-cadence", made("jade_calibration", "2027-05-01"), "recalibration_due", sound),
        case("due-after-calibration", made("jade_calibration", "2026-11-01"), "recalibration_due", sound),
        case("recalibration-overdue", made("jade_calibration", "2026-11-20"), "recalibration_due", sound),
    ]


CASES = [
    *(
        Case(
            "jade-is-cited",
            {QUALITY: jade(**{name: None})},
            f"{QUALITY}: calibration.{name}",
            {QUALITY: jade()},
            (f"calibration.{name}",),
        )
        for name in ("ticket", "report", "traces", "agreement", "inverted_findings")
    ),
    Case("jade-is-cited", {OVERLAY: jade(report=None)}, f"{OVERLAY}: calibration.report", {OVERLAY: jade()}),
    Case(
        "jade-traces",
        {QUALITY: jade(traces="199")},
        f"{QUALITY}: calibration.traces",
        {QUALITY: jade(traces="200")},
        ("199", "200"),
    ),
    Case(
        "jade-reference",
        {QUALITY: drift("jade_calibration", "2027-01-01", "")},
        f"{QUALITY}: drift.calibration_ref",
        {QUALITY: drift("jade_calibration", "2027-01-01")},
    ),
    *(
        Case(
            "jade-agreement",
            {QUALITY: jade(agreement=f"{{metric: cohen_kappa, value: {value}}}")},
            f"{QUALITY}: calibration.agreement.value",
            {QUALITY: jade(agreement="{metric: cohen_kappa, value: 0.1}")},
            ("inverted",),
        )
        for value in ("-0.4", "0")
    ),
    *(
        Case(
            "production-is-declared",
            {QUALITY: production(**{name: None})},
            f"{QUALITY}: calibration.{name}",
            {QUALITY: production()},
        )
        for name in ("window_days", "percentile", "sigma")
    ),
    Case(
        "production-window",
        {QUALITY: production(window_days="6")},
        f"{QUALITY}: calibration.window_days",
        {QUALITY: production(window_days="7")},
    ),
    Case(
        "seed-is-needed",
        {QUALITY: f"calibration: {calibration(JADE_FIELDS, seeded_on='2026-11-20')}"},
        f"{QUALITY}: baseline_source",
        {QUALITY: f"calibration: {calibration(JADE_FIELDS, seeded_on='2026-11-20', agreement=None)}"},
        ("jade_calibration",),
    ),
    Case(
        "seed-is-needed",
        {QUALITY: f"calibration: {calibration(JADE_FIELDS, seeded_on='2026-11-20', traces='200')}"},
        f"{QUALITY}: baseline_source",
        {QUALITY: f"calibration: {calibration(JADE_FIELDS, seeded_on='2026-11-20', traces='199')}"},
    ),
    Case(
        "seed-is-needed",
        {OVERLAY: f"calibration: {calibration(PRODUCTION_FIELDS, seeded_on='2026-11-20')}"},
        f"{OVERLAY}: baseline_source",
        {OVERLAY: f"calibration: {calibration(PRODUCTION_FIELDS, seeded_on='2026-11-20', sigma=None)}"},
    ),
    Case(
        "calibration-days",
        {QUALITY: "calibration: {seeded_on: 2026-11-23}"},
        f"{QUALITY}: calibration.seeded_on",
        {QUALITY: "calibration: {seeded_on: 2026-11-22}"},  # where the sun rises earlier
    ),
    Case("calibration-days", {QUALITY: jade(calibrated_on="2027-01-01")}, f"{QUALITY}: calibration.calibrated_on"),
    Case("calibration-day-stated", {QUALITY: "calibration: null"}, f"{QUALITY}: calibration.seeded_on"),
    Case(
        "calibration-day-stated",
        {QUALITY: jade(calibrated_on=None)},
        f"{QUALITY}: calibration.calibrated_on",
        {QUALITY: jade()},
    ),
    Case(
        "seed-cadence",
        {QUALITY: "recalibration_due: 2027-02-19"},
        f"{QUALITY}: recalibration_due",
        {QUALITY: "recalibration_due: 2027-02-18"},
        ("90 days", "2027-02-18"),
    ),
    Case(
        "seed-cadence",
        {OVERLAY: "{recalibration_due: 2027-02-20, calibration: null}"},  # no day of the seed: today is the latest
        f"{OVERLAY}: recalibration_due",
        {OVERLAY: "{recalibration_due: 2027-02-19, calibration: null}"},
    ),
    *own_source("drift"),
    *own_source("floor_provenance"),
    Case(
        "drift-limit-stated",
        {QUALITY: "drift: null"},
        f"{QUALITY}: drift",
        {QUALITY: drift("provisional_seed", "2027-02-18")},
        severity=Severity.WARNING,
    ),
    Case(
        "seed-cadence",
        {QUALITY: drift("provisional_seed", "2027-02-20")},  # no day of the seed: today is the latest
        f"{QUALITY}: drift.recalibration_due",
        {QUALITY: drift("provisional_seed", "2027-02-19")},
    ),
    Case(
        "calibration-cadence",
        {QUALITY: jade("2027-05-01")},
        f"{QUALITY}: recalibration_due",
        {QUALITY: jade("2027-04-30")},
        ("180 days",),
    ),
    Case(
        "calibration-cadence",
        {OVERLAY: production("2027-05-01")},
        f"{OVERLAY}: recalibration_due",
        {OVERLAY: production("2027-04-30")},
    ),
    Case(
        "calibration-cadence",
        {QUALITY: drift("production_distribution", "2027-05-21")},
        f"{QUALITY}: drift.recalibration_due",
        {QUALITY: drift("production_distribution", "2027-05-20")},
    ),
    Case(
        "due-after-calibration",
        {QUALITY: "recalibration_due: 2026-11-20"},
        f"{QUALITY}: recalibration_due",
        {QUALITY: "recalibration_due: 2026-11-21"},
    ),
    Case(
        "due-after-calibration",
        {OVERLAY: jade("2026-11-01")},
        f"{OVERLAY}: recalibration_due",
        {OVERLAY: jade("2026-11-02")},
    ),
    Case(
        "recalibration-overdue",
        {QUALITY: "{recalibration_due: 2026-11-20, calibration: {seeded_on: 2026-10-01}}"},
        f"{QUALITY}: recalibration_due",
        {QUALITY: "{recalibration_due: 2026-11-21, calibration: {seeded_on: 2026-10-01}}"},  # its day is still in time
        ("warns at pre_merge", "blocks at pre_ramp"),
        Severity.WARNING,
    ),
    Case(
        "recalibration-overdue",
        {OVERLAY: jade("2026-11-20")},
        f"{OVERLAY}: recalibration_due",
        {OVERLAY: jade("2026-11-21")},
    ),
    Case(
        "recalibration-overdue",
        {QUALITY: drift("provisional_seed", "2026-11-20")},
        f"{QUALITY}: drift.recalibration_due",
        {QUALITY: drift("provisional_seed", "2026-11-21")},
        ("the drift limit of helpfulness",),
    ),
]


def test_a_threshold_says_where_it_comes_from_and_until_when_it_holds() -> None:
    check_cases(CASES)


def test_pf9_ac3_a_threshold_without_baseline_source_is_an_error_that_points_at_fr3() -> None:
    """PF-9 AC-3."""
    for name in (QUALITY, OVERLAY):
        _, findings = assemble(registry({name: "baseline_source: null"}), TODAY)
        (told,) = findings
        assert told.severity is Severity.ERROR
        assert (told.file, told.field, told.check) == (registry().shown(name), "baseline_source", "missing-field")
        assert "PF-9 FR-3" in told.clause
        assert "PF-9 FR-3" in str(told)
        assert all(source in told.message + told.fix for source in BaselineSource)


def test_pf9_ac9_a_seed_past_due_is_a_warning_that_says_what_gates_do() -> None:
    """PF-9 AC-9, as CI sees it at pre_merge: validation warns and does not fail."""
    late = {QUALITY: "{recalibration_due: 2026-11-20, calibration: {seeded_on: 2026-10-01}}", MANIFEST: RED_TEAM}
    found = lint(parsed_registry(late)[0])
    assert [(one.check, one.severity) for one in found] == [("recalibration-overdue", Severity.WARNING)]


@pytest.mark.parametrize(
    ("source", "at"),
    [
        (BaselineSource.PROVISIONAL_SEED, {"pre_merge": "warn", "pre_ramp": "block", "pre_full": "block"}),
        (BaselineSource.JADE_CALIBRATION, {"pre_merge": "warn", "pre_ramp": "warn", "pre_full": "warn"}),
        (BaselineSource.PRODUCTION_DISTRIBUTION, {"pre_merge": "warn", "pre_ramp": "warn", "pre_full": "warn"}),
    ],
)
def test_pf9_ac9_what_gates_do_about_a_calibration_past_due(source: BaselineSource, at: dict[str, str]) -> None:
    """PF-9 AC-9: an overdue seed warns at pre_merge and blocks at pre_ramp; what gates read is a pure function."""
    read, _ = parsed_registry(
        {QUALITY: {BaselineSource.PROVISIONAL_SEED: ""}.get(source, jade()).replace("jade_calibration", source) or "{}"}
    )
    rule = read.rules["helpfulness"].model
    assert overdue(rule, rule.recalibration_due) is None
    late = overdue(rule, date.fromordinal(rule.recalibration_due.toordinal() + 3))
    assert late is not None
    assert (late.days, late.baseline_source, late.provisional) == (3, source, source == "provisional_seed")
    assert late.at == {Milestone(name): Enforcement(word) for name, word in at.items()}
