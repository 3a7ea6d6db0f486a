"""A vertical tightens and never loosens; looser enforcement takes an audited override (PF-9 §5.2, Decision 10; PC5
§5.2)."""

from __future__ import annotations

from datetime import date

import pytest

from evalcore.lint.checks import lint
from evalcore.yaml.findings import Severity
from tests.unit.evalcore.lint.lint_cases import (
    MANIFEST,
    OVERLAY,
    OVERRIDES,
    QUALITY,
    SAFETY,
    SHOP,
    TRAVEL,
    Case,
    check_cases,
)
from tests.unit.evalcore.registry.registry_files import OWN, parsed_registry

SEED = OWN.replace("2027-01-01", "2027-02-18") + "calibration: {seeded_on: 2026-11-20}\n"
WARNS = "enforcement: {pre_ramp: warn}"


def override(**fields: str) -> str:
    """One audited entry that lets helpfulness warn at pre_ramp, everywhere, until 2026-12-20."""
    entry = {
        "judge": "helpfulness",
        "milestone": "pre_ramp",
        "enforcement": "warn",
        "pull_request": "https://example.com/1",
        "justification": "The rubric is being rewritten.",
        "approved_on": "2026-11-20",
        "expires": "2026-12-20",
        **fields,
    }
    return "overrides: [{" + ", ".join(f"{name}: {value}" for name, value in entry.items()) + "}]"


CASES = [
    Case(
        "classification-is-central",
        {OVERLAY: "classification: safety_refusal"},
        f"{OVERLAY}: classification",
        {OVERLAY: "enforcement: {pre_merge: block}"},  # how Decision 10 lets a vertical be stricter
        ("platform-wide", "pre_merge: block"),
    ),
    Case(
        "vertical-threshold-holds",
        {OVERLAY: "threshold: 3.9"},
        f"{OVERLAY}: threshold",
        {OVERLAY: "threshold: 4"},
        ("never loosen",),
    ),
    Case(
        "vertical-threshold-holds",
        {OVERLAY: "threshold: 4.2", MANIFEST: "thresholds: {helpfulness: 4.3}"},  # the manifest goes before the rule
        f"{OVERLAY}: threshold",
        {OVERLAY: "threshold: 3.8", MANIFEST: "thresholds: {helpfulness: 3.7}"},
    ),
    Case(
        "vertical-threshold-holds",
        {OVERLAY: "threshold: 3.5", MANIFEST: "thresholds: {helpfulness: {pre_merge: 4, pre_ramp: 3, pre_full: 4}}"},
        f"{OVERLAY}: threshold",
        {
            OVERLAY: "threshold: {pre_merge: 4, pre_ramp: 3.2, pre_full: 4}",
            MANIFEST: "thresholds: {helpfulness: {pre_merge: 4, pre_ramp: 3, pre_full: 4}}",
        },
        ("pre_merge, pre_full",),
    ),
    Case(
        "vertical-threshold-holds",
        {OVERLAY: "threshold: {pre_merge: 5, pre_ramp: 3, pre_full: 5}"},
        f"{OVERLAY}: threshold.pre_ramp",
    ),
    Case(
        "vertical-threshold-holds",
        {OVERLAY: "threshold: {default: 3, pre_merge: 5, pre_ramp: 5, pre_full: 5}"},
        f"{OVERLAY}: threshold.default",
    ),
    Case("vertical-floor-holds", {OVERLAY: "floor: 1.9"}, f"{OVERLAY}: floor", {OVERLAY: "floor: 2.1"}),
    Case("vertical-tolerance-holds", {OVERLAY: "tolerance: 0.3"}, f"{OVERLAY}: tolerance", {OVERLAY: "tolerance: 0.2"}),
    Case(
        "verticals-stay-apart",
        {OVERLAY: "filter: {value: travel}"},
        f"{OVERLAY}: filter.value",
        {OVERLAY: "filter: {value: shop-returns}"},
        ("travel",),
    ),
    Case(
        "verticals-stay-apart",
        {OVERLAY: "filter: {operator: in, value: [shop, travel]}"},
        f"{OVERLAY}: filter.value",
        {OVERLAY: "filter: {operator: in, value: [shop, shop-returns]}"},
    ),
    Case(
        "verticals-stay-apart",
        {OVERLAY: "filter: {field: vertical, value: travel}"},
        f"{OVERLAY}: filter.value",
        {OVERLAY: "filter: {operator: '!=', value: travel}"},
    ),
    Case(
        "verticals-stay-apart",
        {OVERLAY: "filter: {field: metadata, key: vertical, value: travel}"},
        f"{OVERLAY}: filter.value",
        {OVERLAY: "filter: {field: metadata, key: category, value: travel}"},
    ),
    Case(
        "verticals-stay-apart",
        {
            OVERLAY: "filter: {field: metadata, key: sub_agent, value: flights}",
            TRAVEL: "{vertical: travel, categories: {general_qa: {}}, archetypes: {search: [flights]}}",
        },
        f"{OVERLAY}: filter.value",
        {OVERLAY: "filter: {field: metadata, key: sub_agent, value: shop}"},
    ),
    Case("vertical-is-registered", {"verticals/shop.yaml": None}, OVERLAY, {"verticals/travel.yaml": None}),
    Case(
        "vertical-is-registered",
        {"verticals/shop.yaml": None, OVERLAY: None},
        SHOP,
        says=("verticals/shop.yaml",),
    ),
    Case(
        "looser-needs-override",
        {QUALITY: WARNS},
        f"{QUALITY}: enforcement.pre_ramp",
        {QUALITY: WARNS, OVERRIDES: override()},
        ("enforcement-overrides.yaml", "pre_ramp: block"),
    ),
    Case(
        "looser-needs-override",
        {QUALITY: "enforcement: {pre_full: warn}", OVERRIDES: override()},  # of another milestone
        f"{QUALITY}: enforcement.pre_full",
        {QUALITY: "enforcement: {pre_merge: warn, pre_ramp: block}"},  # what holds without being written
    ),
    Case(
        "looser-needs-override",
        {QUALITY: WARNS, OVERRIDES: override(judge="brevity")},
        f"{QUALITY}: enforcement.pre_ramp",
        {QUALITY: WARNS, OVERRIDES: override(judge="Helpfulness")},
    ),
    Case(
        "looser-needs-override",
        {QUALITY: WARNS, OVERRIDES: override(vertical="shop")},  # the platform's file is about every vertical
        f"{QUALITY}: enforcement.pre_ramp",
        {OVERLAY: WARNS, OVERRIDES: override(vertical="shop")},
    ),
    Case(
        "looser-needs-override",
        {OVERLAY: WARNS, OVERRIDES: override(vertical="travel")},
        f"{OVERLAY}: enforcement.pre_ramp",
        {OVERLAY: WARNS, OVERRIDES: override()},
    ),
    Case(
        "looser-needs-override",
        {QUALITY: WARNS, OVERRIDES: override(enforcement="block")},
        f"{QUALITY}: enforcement.pre_ramp",
    ),
    Case(
        "looser-needs-override",
        {QUALITY: WARNS, OVERRIDES: override(expires="2026-11-20", approved_on="2026-10-20")},
        f"{QUALITY}: enforcement.pre_ramp",
        {QUALITY: WARNS, OVERRIDES: override(expires="2026-11-21", approved_on="2026-10-20")},
        ("expired on 2026-11-20", "it blocks"),
        severity=Severity.WARNING,
    ),
    Case(
        "looser-needs-override",
        {QUALITY: WARNS, OVERRIDES: override()},
        f"{QUALITY}: enforcement.pre_ramp",
        today=date(2026, 12, 21),
        says=("expired on 2026-12-20",),
        severity=Severity.WARNING,
    ),
    Case(
        "looser-needs-override",
        {QUALITY: "enforcement: {pre_merge: block}", OVERLAY: "enforcement: {pre_merge: warn}"},
        f"{OVERLAY}: enforcement.pre_merge",
        {OVERLAY: "enforcement: {pre_merge: warn}"},
        ("baseline",),
    ),
    Case(
        "override-not-for-safety",
        {OVERRIDES: override(judge="refusal")},
        f"{OVERRIDES}: overrides[0].judge",
        {OVERRIDES: override()},
    ),
    Case(
        "override-names-a-judge",
        {OVERRIDES: override(judge="helpfulnes")},
        f"{OVERRIDES}: overrides[0].judge",
        {OVERRIDES: override()},
        ("'helpfulness'",),
    ),
    Case(
        "override-days",
        {OVERRIDES: override(approved_on="2026-11-23")},
        f"{OVERRIDES}: overrides[0].approved_on",
        {OVERRIDES: override(approved_on="2026-11-22")},  # where the sun rises earlier
    ),
    Case(
        "override-days",
        {OVERRIDES: override(expires="2026-11-20")},
        f"{OVERRIDES}: overrides[0].expires",
        {OVERRIDES: override(expires="2026-11-21")},
    ),
    Case(
        "override-days",
        {OVERRIDES: override(expires="2027-02-21")},
        f"{OVERRIDES}: overrides[0].expires",
        {OVERRIDES: override(expires="2027-02-20")},
        ("92 days",),
    ),
    Case(
        "override-in-use",
        {OVERRIDES: override()},
        f"{OVERRIDES}: overrides[0]",
        {OVERRIDES: override(), QUALITY: WARNS},
    ),
    Case(
        "override-in-use",
        {OVERRIDES: override(judge="brevity"), QUALITY: WARNS},
        f"{OVERRIDES}: overrides[0]",
        {OVERRIDES: override(expires="2026-11-21"), QUALITY: WARNS},
    ),
    Case(
        "override-in-use",
        {OVERRIDES: override(milestone="pre_full"), QUALITY: WARNS},
        f"{OVERRIDES}: overrides[0]",
        {OVERRIDES: override(vertical="shop"), OVERLAY: WARNS},
    ),
    Case(
        "override-in-use",
        {OVERRIDES: override(enforcement="block"), QUALITY: WARNS},
        f"{OVERRIDES}: overrides[0]",
    ),
    Case(
        "override-in-use",  # on its last day it still counts
        {OVERRIDES: override(expires="2026-11-21")},
        f"{OVERRIDES}: overrides[0]",
    ),
    Case(
        "override-in-use",
        {OVERRIDES: override(vertical="travel"), OVERLAY: WARNS},
        f"{OVERRIDES}: overrides[0]",
        {OVERRIDES: override(expires="2026-11-20", approved_on="2026-10-20")},  # the record of one that was used
    ),
]


def test_what_a_vertical_may_say_and_what_takes_an_override() -> None:
    check_cases(CASES)


@pytest.mark.parametrize(
    "entry",
    [
        override(milestone="pre_full", expires="2026-11-20", approved_on="2026-10-20"),
        override(vertical="shop", expires="2026-11-20", approved_on="2026-10-20"),
        override(judge="brevity", expires="2026-11-20", approved_on="2026-10-20"),
        override(expires="2026-12-24", approved_on="2026-11-22"),
    ],
)
def test_an_override_that_never_allowed_it_is_not_named_as_expired(entry: str) -> None:
    told = [
        one
        for one in lint(parsed_registry({QUALITY: WARNS, OVERRIDES: entry})[0])
        if one.check == "looser-needs-override"
    ]
    assert [one.severity for one in told] == [Severity.ERROR]
    assert "expired" not in told[0].message


@pytest.mark.parametrize("files", [{SAFETY: "enforcement: {pre_merge: block}"}, {OVERLAY: SEED + "tolerance: 0"}])
def test_stricter_takes_no_override(files: dict[str, str]) -> None:
    assert [one for one in lint(parsed_registry(files)[0]) if one.severity is Severity.ERROR] == []
