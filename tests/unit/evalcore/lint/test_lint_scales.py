"""Thresholds, floors and tolerances on the judge's own scale (PC5 FR-3, FR-6, §9.5; PF-9 §5.10)."""

from __future__ import annotations

import pytest

from evalcore.lint.checks import lint
from evalcore.yaml.findings import Severity
from tests.unit.evalcore.lint.lint_cases import BOOLEAN, MANIFEST, OVERLAY, QUALITY, SAFETY, Case, check_cases
from tests.unit.evalcore.registry.registry_files import parsed_registry

CASES = [
    Case("score-range", {QUALITY: "score_range: [5, 1]"}, f"{QUALITY}: score_range", {QUALITY: "score_range: [1, 7]"}),
    Case("score-range", {QUALITY: "score_range: [1, 1]"}, f"{QUALITY}: score_range"),
    Case("score-range", {QUALITY: "score_range: [1, 4.5]"}, f"{QUALITY}: score_range", says=("INTEGER",)),
    Case("score-range", {BOOLEAN: "score_range: [0, 2]"}, f"{BOOLEAN}: score_range", {BOOLEAN: "score_range: [0, 1]"}),
    Case(
        "threshold-fits-scale",
        {QUALITY: "threshold: 5.1"},
        f"{QUALITY}: threshold",
        {QUALITY: "threshold: 3.2"},  # the aggregate is a mean, which falls between whole scores
        ("scale of 1 to 5",),
    ),
    Case("threshold-fits-scale", {QUALITY: "threshold: true"}, f"{QUALITY}: threshold", says=("true", "INTEGER")),
    Case("threshold-fits-scale", {SAFETY: "threshold: true"}, f"{SAFETY}: threshold", says=("FLOAT",)),
    Case("threshold-fits-scale", {BOOLEAN: "threshold: false"}, f"{BOOLEAN}: threshold", says=("write `true`",)),
    Case("threshold-fits-scale", {BOOLEAN: "threshold: 1"}, f"{BOOLEAN}: threshold"),
    Case("threshold-fits-scale", {BOOLEAN: "threshold: 1.0"}, f"{BOOLEAN}: threshold"),
    Case("threshold-fits-scale", {BOOLEAN: "threshold: 0.97"}, f"{BOOLEAN}: threshold"),
    Case(
        "threshold-fits-scale",
        {BOOLEAN: "threshold: {default: true, pre_full: 0.5}"},
        f"{BOOLEAN}: threshold.pre_full",
        {BOOLEAN: "threshold: {default: true, pre_full: true}"},
    ),
    Case(
        "threshold-fits-scale",
        {OVERLAY: "threshold: 0.55"},  # as PF-9 §5.10 writes it for a judge that PC5 scores from 1 to 5
        f"{OVERLAY}: threshold",
        says=("3.2",),
    ),
    Case(
        "threshold-fits-scale",
        {MANIFEST: "thresholds: {helpfulness: 40}"},
        f"{MANIFEST}: thresholds.helpfulness",
        {MANIFEST: "thresholds: {helpfulness: 4, refusal: 0.95, honesty: true}"},
    ),
    Case(
        "threshold-fits-scale",
        {MANIFEST: "thresholds: {helpfulness: {default: 4, pre_ramp: 0.7}}"},
        f"{MANIFEST}: thresholds.helpfulness.pre_ramp",
    ),
    Case(
        "threshold-fits-scale",
        {MANIFEST: "thresholds: {helpfulness: 4, helpfulness.pre_ramp: 0.7}"},
        f"{MANIFEST}: thresholds.helpfulness.pre_ramp",
    ),
    Case("threshold-fits-scale", {MANIFEST: "thresholds: {honesty: 0.9}"}, f"{MANIFEST}: thresholds.honesty"),
    Case(
        "threshold-fits-scale",
        {QUALITY: "dimensions: {tone: {description: Tone., threshold: 7}}"},
        f"{QUALITY}: dimensions.tone.threshold",
        {QUALITY: "dimensions: {tone: {description: Tone., threshold: 3}}"},
    ),
    Case("floor-fits-scale", {QUALITY: "floor: 0.5"}, f"{QUALITY}: floor", {QUALITY: "floor: 2.5"}),
    Case("floor-fits-scale", {QUALITY: "floor: true"}, f"{QUALITY}: floor"),
    Case("floor-fits-scale", {BOOLEAN: "floor: false"}, f"{BOOLEAN}: floor", {BOOLEAN: "floor: true"}),
    Case("floor-fits-scale", {BOOLEAN: "floor: 97"}, f"{BOOLEAN}: floor", {BOOLEAN: "floor: 0.97"}),
    Case("floor-fits-scale", {OVERLAY: "floor: 0.6"}, f"{OVERLAY}: floor", {OVERLAY: "floor: 2.6"}),
    Case(
        "floor-fits-scale",
        {QUALITY: "dimensions: {tone: {description: Tone., floor: 0}}"},
        f"{QUALITY}: dimensions.tone.floor",
    ),
    Case("threshold-above-floor", {QUALITY: "floor: 4.2"}, f"{QUALITY}: threshold", {QUALITY: "floor: 4"}, ("4.2",)),
    Case(
        "threshold-above-floor",
        {MANIFEST: "thresholds: {helpfulness: {pre_ramp: 1.5}}"},
        f"{MANIFEST}: thresholds.helpfulness.pre_ramp",
        {MANIFEST: "thresholds: {helpfulness: {pre_ramp: 2}}"},
    ),
    Case("threshold-above-floor", {BOOLEAN: "floor: true", SAFETY: "floor: 0.96"}, f"{SAFETY}: threshold"),
    Case(
        "threshold-above-floor",
        {OVERLAY: "floor: 4.6"},  # its own threshold is 4.5
        f"{OVERLAY}: threshold",
        {OVERLAY: "floor: 4.4"},
    ),
    Case(
        "threshold-above-floor",
        {OVERLAY: "{floor: 4.6, threshold: null}"},  # above the platform's 4, which it leaves as it is
        f"{OVERLAY}: floor",
        {OVERLAY: "{floor: 4, threshold: null}"},
    ),
    Case(
        "threshold-above-floor",
        {QUALITY: "dimensions: {tone: {description: Tone., threshold: 3, floor: 3.5}}"},
        f"{QUALITY}: dimensions.tone.threshold",
        {QUALITY: "dimensions: {wit: {description: Wit., floor: 3.5}, tone: {description: Tone., threshold: 3}}"},
    ),
    Case(
        "judge-has-threshold",
        {QUALITY: "threshold: null"},
        f"{MANIFEST}: thresholds",
        {QUALITY: "{threshold: null, enabled: false}"},
        ("helpfulness has no threshold,", "`helpfulness: …`, a score from 1 to 5"),
    ),
    Case(
        "judge-has-threshold",
        {QUALITY: "threshold: {pre_merge: 4, pre_full: 4}"},
        f"{MANIFEST}: thresholds",
        {QUALITY: "threshold: null", MANIFEST: "thresholds: {helpfulness: {default: 4}}"},
        ("at pre_ramp,",),
    ),
    Case(
        "judge-has-threshold",
        {BOOLEAN: "{threshold: null, enabled: false}"},  # a safety judge runs all the same
        f"{MANIFEST}: thresholds",
        says=("`honesty: …`, true",),
    ),
    Case("limit-decides", {QUALITY: "{floor: 1, threshold: null}"}, f"{QUALITY}: floor", {QUALITY: "threshold: null"}),
    Case(
        "limit-decides",
        {QUALITY: "{floor: 1, threshold: {pre_merge: 4, pre_ramp: 1.3, pre_full: 4}}"},
        f"{QUALITY}: floor",
        {QUALITY: "{floor: 1, threshold: {pre_merge: 4, pre_ramp: 1.5, pre_full: 4}}"},
        ("at pre_ramp:",),
    ),
    Case(
        "limit-decides",
        {SAFETY: "score_range: [0, 100]"},  # 0.95 of 1 is now 0.95 of 100
        f"{SAFETY}: floor",
        says=("refusal",),
        severity=Severity.ERROR,
    ),
    Case("limit-decides", {SAFETY: "{floor: 0, threshold: null}"}, f"{SAFETY}: floor", severity=Severity.ERROR),
    Case(
        "limit-decides",
        {QUALITY: "dimensions: {tone: {description: Tone., floor: 1, threshold: 1}}"},
        f"{QUALITY}: dimensions.tone",
        {QUALITY: "dimensions: {tone: {description: Tone.}}"},  # has the judge's limits
    ),
    Case(
        "limit-decides",
        {
            QUALITY: "dimensions: {tone: {description: Tone., floor: 1}}",
            MANIFEST: "thresholds: {helpfulness.tone: 1}",
        },
        f"{QUALITY}: dimensions.tone",
        {
            QUALITY: "dimensions: {tone: {description: Tone., floor: 1, threshold: 1}}",
            MANIFEST: "thresholds: {helpfulness.tone: 3}",
        },
    ),
    Case(
        "limit-decides",
        {QUALITY: "{floor: 1.4, threshold: null}"},
        f"{QUALITY}: floor",
        {QUALITY: "{floor: 1.41, threshold: null}"},
        ("at pre_merge, pre_ramp, pre_full:", "lowest tenth"),
    ),
    Case("tolerance-fits-scale", {QUALITY: "tolerance: 4"}, f"{QUALITY}: tolerance", {QUALITY: "tolerance: 1"}),
    Case("tolerance-fits-scale", {SAFETY: "tolerance: 1"}, f"{SAFETY}: tolerance"),
    Case("tolerance-fits-scale", {OVERLAY: "tolerance: 10"}, f"{OVERLAY}: tolerance", {OVERLAY: "tolerance: 0.1"}),
    Case(
        "confirmation-fits",
        {SAFETY: "confirmation: {asks: 3, failing: 2}"},
        f"{SAFETY}: confirmation",
        {BOOLEAN: "confirmation: {asks: 3, failing: 2}"},
        ("FLOAT",),
    ),
    Case(
        "confirmation-fits",
        {BOOLEAN: "{confirmation: {asks: 3, failing: 2}, dimensions: {tone: {description: Tone.}}}"},
        f"{BOOLEAN}: confirmation",
        says=("dimensions",),
    ),
    Case(
        "confirmation-keeps-alarms",
        {BOOLEAN: "confirmation: {asks: 3, failing: 3}"},
        f"{BOOLEAN}: confirmation.failing",
        {BOOLEAN: "confirmation: {asks: 5, failing: 3}"},
        ("2 of 3 answers against it", "write 2 or less"),
    ),
    Case(
        "score-of-fits",
        {QUALITY: "{score_of: dimensions, dimensions: {tone: {description: Tone.}}}"},
        f"{QUALITY}: score_of",
        says=("INTEGER",),
    ),
    Case(
        "score-of-fits",
        {SAFETY: "score_of: dimensions"},
        f"{SAFETY}: score_of",
        {SAFETY: "{score_of: dimensions, dimensions: {tone: {description: Tone.}}}"},
        ("no dimensions",),
    ),
    Case(
        "applies-fits",
        {QUALITY: "{allow_na: false, dimensions: {tone: {description: Tone., applies: metadata.tone}}}"},
        f"{QUALITY}: dimensions.tone.applies",
        {QUALITY: "dimensions: {tone: {description: Tone., applies: metadata.tone}}"},
        ("metadata.tone is absent",),
    ),
]


def test_limits_stand_on_the_judges_own_scale() -> None:
    check_cases(CASES)


def test_one_mistake_is_told_once() -> None:
    """What does not fit its scale is not compared with anything either."""
    for case in CASES:
        if case.check in ("threshold-fits-scale", "floor-fits-scale"):
            errors = [one for one in lint(parsed_registry(case.fails)[0]) if one.severity is Severity.ERROR]
            assert [one.check for one in errors] == [case.check], case


@pytest.mark.parametrize(
    ("files", "fix"),
    [
        ({QUALITY: "threshold: 0.55"}, "write 3.2 if a share of the scale is meant"),
        ({QUALITY: "floor: 0"}, "write 1 if a share of the scale is meant"),
        ({QUALITY: "{score_range: [0, 10], threshold: 11}"}, "write a number from 0 to 10"),
        ({QUALITY: "threshold: 1.5", OVERLAY: "threshold: -1"}, "write a number from 1 to 5"),
        ({SAFETY: "threshold: 4"}, "4 on a scale of 1 to 5 is 0.75 here"),
        ({SAFETY: "threshold: 5"}, "5 on a scale of 1 to 5 is 1 here"),
        ({SAFETY: "threshold: 6"}, "write a number from 0 to 1"),
        ({SAFETY: "threshold: true"}, "write a number from 0 to 1"),
        ({QUALITY: "threshold: false"}, "write a number from 1 to 5"),
        ({BOOLEAN: "threshold: 0.5"}, "write `true`"),
        ({BOOLEAN: "floor: 50"}, "write a rate such as 0.97, or true"),
    ],
)
def test_the_fix_says_what_the_number_may_have_meant(files: dict[str, str], fix: str) -> None:
    told = [one.fix for one in lint(parsed_registry(files)[0]) if one.check.endswith("-fits-scale")]
    assert [one for one in told if fix in one], told
    if "if a share" not in fix and "here" not in fix:
        assert told == [fix]
