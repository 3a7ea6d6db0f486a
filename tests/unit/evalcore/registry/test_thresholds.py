"""Which threshold holds for a judge at a milestone (PC5 FR-6, AC-5, §9.5), and what a failing judge does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.registry import enforcement
from evalcore.registry.thresholds import Stated, ThresholdTypeError, require_fit, resolve, unfit_threshold
from schemas.judges import Classification, Enforcement, Milestone, ScoreType
from schemas.manifests import ManifestFile, Override
from tests.unit.evalcore.registry.registry_disk import built

MERGE, RAMP, FULL = Milestone
MANIFEST, CENTRAL, OWN = "evaluation_manifest.yaml", "rules/helpfulness.yaml", "rules/shop/helpfulness.yaml"
VALUES = st.integers(1, 5) | st.floats(1, 5)
STATED = st.none() | VALUES | st.dictionaries(st.sampled_from([*Milestone, "default"]), VALUES, min_size=1)
WARN, BLOCK = Enforcement.WARN, Enforcement.BLOCK
QUALITY, SAFETY = Classification.QUALITY, Classification.SAFETY_REFUSAL
TODAY = date(2026, 11, 21)


def test_the_manifest_of_the_specification_is_read_as_it_says() -> None:
    """PC5 §5.3: single, per milestone, BOOLEAN."""
    thresholds = "{brevity: 4, helpfulness: {pre_merge: 4, pre_ramp: 3, pre_full: 4}, honesty: true}"
    registry = built({MANIFEST: f"{{thresholds: {thresholds}}}", OWN: None})
    assert [registry.threshold("helpfulness", milestone) for milestone in Milestone] == [4, 3, 4]
    assert [registry.threshold("brevity", milestone) for milestone in Milestone] == [4, 4, 4]
    assert registry.threshold("honesty", "pre_merge") is True
    assert registry.threshold("helpfulness") == 4, "the strictest, where only milestones are named"


def test_the_verticals_file_speaks_before_the_manifest_and_that_before_the_central_rule() -> None:
    """PC5 FR-6; a milestone's own value speaks before the single one of the same file, not before another file's."""
    registry = built(
        {
            CENTRAL: "{threshold: {default: 2.5, pre_full: 2.7}}",
            MANIFEST: "{thresholds: {helpfulness: {pre_ramp: 3.5}, brevity: 3}}",
            OWN: "{threshold: {pre_ramp: 4.2, pre_merge: 4.4}}",
        }
    )
    assert [registry.threshold("helpfulness", milestone) for milestone in Milestone] == [2.5, 3.5, 2.7]
    assert [registry.threshold("helpfulness", milestone, "shop") for milestone in Milestone] == [4.4, 4.2, 2.7]
    assert registry.threshold("brevity", "pre_full", "shop") == 3, "the manifest's single value, over the rule's 4"


def test_the_floor_holds_where_nothing_else_is_said() -> None:
    registry = built({CENTRAL: "{threshold: null}", OWN: "{threshold: null, floor: 3}"})
    assert registry.threshold("helpfulness", "pre_full") == registry.threshold("helpfulness") == 2
    assert registry.threshold("helpfulness", "pre_full", "shop") == 3


def said(source: Any, milestone: Milestone) -> Any:
    """What one file says of a milestone; None for nothing."""
    if isinstance(source, Mapping):
        return source.get(milestone, source.get("default"))
    return source


@given(st.lists(STATED, max_size=3), st.floats(1, 5))
def test_at_each_milestone_the_first_that_says_something_is_heard(sources: list[Any], floor: float) -> None:
    """PC5 FR-6."""
    found = resolve([Stated.of("a file", source) for source in sources], floor, ScoreType.INTEGER)
    for milestone in Milestone:
        heard = [value for value in (said(source, milestone) for source in sources) if value is not None]
        assert found.at[milestone] == [*heard, floor][0]
    singles = [s.get("default") if isinstance(s, Mapping) else s for s in sources]
    named = [max(s.values()) for s in sources if isinstance(s, Mapping) and "default" not in s]
    if any(single is not None for single in singles):
        assert found.default == next(single for single in singles if single is not None)
    elif named:
        assert found.default == named[0]
    else:
        assert found.default == floor


@given(st.dictionaries(st.sampled_from([*Milestone, "default"]), VALUES, min_size=1))
def test_the_manifests_dotted_form_says_what_its_nested_form_says(stated: dict[str, float]) -> None:
    def manifest(thresholds: Any) -> Any:
        dataset = {"name": "golden", "version": 1, "items": 1}
        return ManifestFile.model_validate(
            {
                "dataset": dataset,
                "schema": {"input": {}},
                "categories": {"a": {"judges": ["x"]}},
                "global_metrics": {"judges": []},
                "thresholds": thresholds,
            }
        ).thresholds

    dotted = {f"x.{name}" if name != "default" else "x": value for name, value in stated.items()}
    if set(stated) != {"default"}:
        assert manifest(dotted) == manifest({"x": stated})


@pytest.mark.parametrize(
    ("value", "score_type", "scale"),
    [
        (4, ScoreType.INTEGER, (1, 5)),
        (3.2, ScoreType.INTEGER, (1, 5)),
        (0.55, ScoreType.FLOAT, (0, 1)),
        (1, ScoreType.FLOAT, (0, 1)),
        (True, ScoreType.BOOLEAN, (0, 1)),
    ],
)
def test_a_threshold_on_the_judges_own_scale_fits(value: Any, score_type: ScoreType, scale: Any) -> None:
    assert unfit_threshold(value, score_type, scale) is None


@pytest.mark.parametrize(
    ("value", "score_type", "scale", "words"),
    [
        (0.9, ScoreType.BOOLEAN, (0, 1), "0.9 for a BOOLEAN judge, whose threshold is true"),
        (1, ScoreType.BOOLEAN, (0, 1), "1 for a BOOLEAN judge"),
        (False, ScoreType.BOOLEAN, (0, 1), "false for a BOOLEAN judge"),
        (True, ScoreType.INTEGER, (1, 5), "true for a judge of type INTEGER"),
        (True, ScoreType.FLOAT, (0, 1), "true for a judge of type FLOAT"),
        (0.55, ScoreType.INTEGER, (1, 5), "as a share of that scale it is 3.2"),
        (6, ScoreType.INTEGER, (1, 5), "6 is off the judge's own scale of 1 to 5"),
        (float("nan"), ScoreType.FLOAT, (0, 1), "nan is off"),
    ],
)
def test_a_threshold_that_does_not_fit_is_a_type_error(
    value: Any, score_type: ScoreType, scale: Any, words: str
) -> None:
    """PC5 §9.5; PF-9 §5.10 writes 0.55 for a judge that scores 1 to 5: the value that was meant is named."""
    with pytest.raises(ThresholdTypeError, match="threshold of x in the manifest: ") as raised:
        require_fit("x", Stated.of("the manifest", value), score_type, scale)
    assert words in str(raised.value)
    assert isinstance(raised.value, TypeError)
    with pytest.raises(ThresholdTypeError, match="threshold of x at pre_full in the manifest"):
        require_fit("x", Stated.of("the manifest", {FULL: value}), score_type, scale)


def test_a_dimension_has_its_own_limits_and_else_its_judges() -> None:
    registry = built(
        {
            CENTRAL: """
dimensions:
  facts: {description: F, threshold: 4.5, floor: 3}
  tone-of-voice: {description: T}
""",
            MANIFEST: "{thresholds: {helpfulness.tone-of-voice: 3}}",
            OWN: "{threshold: 5}",
        }
    )
    assert registry.threshold("helpfulness.facts", "pre_full") == 4.5
    assert registry.threshold("helpfulness.tone_of_voice", "pre_full") == 3
    assert registry.threshold("helpfulness.tone-of-voice") == 3
    assert registry.judge("helpfulness").dimensions["facts"].floor == 3
    assert registry.judge("helpfulness").dimensions["tone_of_voice"].floor == 2
    assert registry.judge("helpfulness", "shop").default_threshold == 5


def override(milestone: Milestone, vertical: str | None = None, expires: date = date(2026, 12, 31)) -> Override:
    return Override(
        judge="x",
        vertical=vertical,
        milestone=milestone,
        enforcement=WARN,
        pull_request="#1",
        justification="why",
        approved_on=date(2026, 11, 1),
        expires=expires,
    )


ASKED = st.none() | st.dictionaries(st.sampled_from(Milestone), st.sampled_from(Enforcement))
OVERRIDES = st.lists(st.builds(override, st.sampled_from(Milestone), st.sampled_from([None, "shop", "travel"])))


@given(ASKED, ASKED, OVERRIDES, st.sampled_from([None, "shop", "travel"]))
def test_a_safety_judge_blocks_whatever_is_written(central: Any, own: Any, entries: Any, vertical: Any) -> None:
    """PC5 §5.2, PF-9 FR-2."""
    found = enforcement.effective(SAFETY, central, own, entries, TODAY, vertical)
    assert found == dict.fromkeys(Milestone, BLOCK)


@given(ASKED, ASKED, OVERRIDES, st.sampled_from([None, "shop", "travel"]))
def test_a_quality_judge_is_looser_only_where_an_override_allows_it(
    central: Any, own: Any, entries: Any, vertical: Any
) -> None:
    found = enforcement.effective(QUALITY, central, own, entries, TODAY, vertical)
    for milestone in Milestone:
        allowed = any(e.milestone is milestone and e.vertical in (None, vertical) for e in entries)
        asked = [stated[milestone] for stated in (central, own) if stated and milestone in stated]
        if found[milestone] is WARN:
            assert milestone is MERGE or (allowed and WARN in asked)
        if asked and asked[-1] is BLOCK:
            assert found[milestone] is BLOCK
        if not asked:
            assert found[milestone] is (WARN if milestone is MERGE else BLOCK)


@pytest.mark.parametrize(
    ("day", "found"),
    [
        (date(2026, 10, 31), BLOCK),
        (date(2026, 11, 1), WARN),
        (date(2026, 11, 30), WARN),
        (date(2026, 12, 1), BLOCK),
    ],
)
def test_an_override_holds_from_its_approval_to_its_end(day: date, found: Enforcement) -> None:
    entries = [override(RAMP, expires=date(2026, 11, 30))]
    assert enforcement.effective(QUALITY, {RAMP: WARN}, None, entries, day, None)[RAMP] is found
    assert enforcement.effective(QUALITY, None, None, entries, day, None)[RAMP] is BLOCK, "alone it loosens nothing"
