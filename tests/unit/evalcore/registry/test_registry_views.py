"""What a registry answers: which judges fire where, seen by whom, with which numbers (PC5 §5.3, FR-5; PF-9 FR-2, FR-5,
§5.2, §5.5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalcore.registry.registry import Registry, UnknownArchetype, UnknownCategory, UnknownJudge
from schemas.judges import Classification, Enforcement, Milestone
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import REGISTRY

MANIFEST, QUALITY = "evaluation_manifest.yaml", "rules/helpfulness.yaml"
OWN = "rules/{}/helpfulness.yaml".format
SAFETY_JUDGES = {"refusal", "honesty"}
SEEN_BY = (None, "shop", "travel", "nobody_knows")
SEED = {
    "classification": "quality",
    "calibration_ref": "PLT-1",
    "baseline_source": "provisional_seed",
    "recalibration_due": "2027-02-18",
    "calibration": {"seeded_on": "2026-11-20"},
}


def ids(judges: Any) -> list[str]:
    return [judge.id for judge in judges]


def test_a_category_fires_its_judges_the_global_ones_and_every_safety_judge_each_once() -> None:
    """PC5 AC-2, FR-5."""
    registry = built({MANIFEST: "{global_metrics: {judges: [honesty, brevity]}}"})
    assert ids(registry.category("general_qa")) == ["helpfulness", "honesty", "brevity", "refusal"]
    assert ids(registry.category("shop_returns")) == ["brevity", "helpfulness", "honesty", "refusal"]


@pytest.mark.parametrize("vertical", SEEN_BY)
def test_safety_judges_are_inherited_everywhere(vertical: str | None) -> None:
    """PF-9 FR-2, §5.5: whatever the manifest leaves out, in every category of every vertical."""
    registry = built({MANIFEST: "{global_metrics: {judges: []}}"})
    for category in registry.category_files:
        assert set(ids(registry.category(category, vertical))) >= SAFETY_JUDGES


def test_a_quality_judge_can_be_switched_off_and_a_safety_judge_can_not() -> None:
    registry = built({QUALITY: "{enabled: false}", "rules/refusal.yaml": "{enabled: false}"})
    assert ids(registry.category("general_qa")) == ["refusal", "honesty"]
    assert "helpfulness" in registry.rules(), "it can still be asked for by its id"


def test_a_composite_stands_for_its_members() -> None:
    """PF-9 §3.1."""
    composites = "composites: {dialogue: {judges: [brevity, helpfulness]}}"
    registry = built({MANIFEST: f"{{categories: {{general_qa: {{judges: [dialogue]}}}}, {composites}}}"})
    assert ids(registry.category("general_qa"))[:2] == ["brevity", "helpfulness"]
    assert registry.composites["dialogue"].aggregate == "mean"


def test_kebab_and_snake_case_name_one_judge() -> None:
    registry = built(
        {
            "rules/tone_of_voice.yaml": yaml.dump(
                {**yaml.safe_load(REGISTRY[QUALITY]), "id": "tone-of-voice", "score_name": "tone"}
            ),
            MANIFEST: """
categories: {general_qa: {judges: [tone-of-voice, helpfulness]}}
thresholds: {tone-of-voice: 3.5}
""",
        }
    )
    assert registry.judge("tone-of-voice") is registry.judge("tone_of_voice") is registry.judge("Tone-Of-Voice")
    assert registry.threshold("tone_of_voice", "pre_full") == registry.threshold("tone-of-voice", "pre_full") == 3.5
    assert ids(registry.category("general_qa"))[0] == "tone_of_voice"


def test_what_is_not_there_is_a_key_error_that_names_what_was_meant() -> None:
    registry = built({QUALITY: "{dimensions: {facts: {description: F}}}"})
    with pytest.raises(UnknownJudge, match=r"no judge 'helpfullness'.*helpfulness") as raised:
        registry.judge("helpfullness")
    assert isinstance(raised.value, KeyError)
    with pytest.raises(UnknownCategory, match=r"no category 'general-qa'.*general_qa"):
        registry.category("general-qa")
    with pytest.raises(UnknownArchetype, match=r"no archetype 'conversations'.*conversation"):
        registry.for_archetype("conversations")
    with pytest.raises(UnknownJudge, match=r"helpfulness\.fact'.*helpfulness\.facts"):
        registry.threshold("helpfulness.fact")
    with pytest.raises(ValueError, match="no milestone 'pre_prod'; there are pre_merge, pre_ramp, pre_full"):
        registry.threshold("helpfulness", "pre_prod")
    with pytest.raises(ValueError, match="no classification 'safety'; there are safety_refusal, quality"):
        registry.classified("safety")


def test_each_judge_has_one_classification_for_all_verticals() -> None:
    """PF-9 FR-2, Decision 10."""
    registry = built()
    for vertical in SEEN_BY:
        assert set(ids(registry.classified("safety_refusal", vertical))) == SAFETY_JUDGES
        assert set(ids(registry.classified("quality", vertical))) == {"helpfulness", "brevity"}


def test_judges_are_found_by_archetype_and_by_its_sub_agents() -> None:
    """PF-9 FR-5: who names the archetype, who names none, and every safety judge."""
    registry = built({QUALITY: "{applies_to: [conversation]}", "rules/brevity.yaml": "{applies_to: [search]}"})
    assert set(ids(registry.for_archetype("conversation"))) == {"helpfulness"} | SAFETY_JUDGES
    assert set(ids(registry.for_archetype("search"))) == {"brevity"} | SAFETY_JUDGES
    assert set(ids(registry.for_sub_agent("chat"))) == {"helpfulness"} | SAFETY_JUDGES
    assert set(ids(registry.for_sub_agent("shop"))) == {"helpfulness"} | SAFETY_JUDGES
    assert set(ids(registry.for_sub_agent("finder"))) == {"brevity"} | SAFETY_JUDGES
    assert set(ids(registry.for_sub_agent("unheard_of"))) == SAFETY_JUDGES
    narrowed = built({"rules/refusal.yaml": "{applies_to: [search]}"})
    assert "refusal" in ids(narrowed.for_archetype("conversation")), "the linter refuses it; here it is not heeded"
    assert "refusal" in ids(narrowed.for_sub_agent("chat"))
    assert registry.judge("helpfulness").sub_agents == ("chat", "shop")


def test_an_archetype_that_has_no_sub_agents_does_not_stand_for_all() -> None:
    registry = built({QUALITY: "{applies_to: [quiet]}", MANIFEST: "{archetypes: {quiet: []}}"})
    assert "helpfulness" not in ids(registry.for_sub_agent("chat"))
    assert "helpfulness" in ids(registry.for_archetype("quiet"))


def test_a_vertical_sees_its_own_numbers_and_the_platforms_for_the_rest() -> None:
    """PF-9 §5.2: calibration, threshold and filter over the central judge; the rubric is shared."""
    registry = built(
        {OWN("shop"): "{floor: 3, tolerance: 0.1, enforcement: {pre_merge: block}, calibration_ref: PLT-1}"}
    )
    central, own = registry.judge("helpfulness"), registry.judge("helpfulness", "shop")
    assert (own.default_threshold, own.floor, own.tolerance, own.calibration_ref) == (4.5, 3.0, 0.1, "PLT-1")
    assert own.filter is not None
    assert own.filter.value == "shop"
    assert own.enforcement[Milestone.PRE_MERGE] is Enforcement.BLOCK
    assert (own.rule, own.version, own.classification) == (central.rule, central.version, central.classification)
    assert (central.default_threshold, central.floor, central.filter) == (4, 2.0, None)
    assert registry.judge("brevity", "shop") == replace(registry.judge("brevity"), vertical="shop")


def test_a_vertical_without_files_sees_what_the_platform_sees() -> None:
    registry = built()
    assert registry.verticals == {"shop", "travel"}
    assert registry.judge("helpfulness", "travel") == replace(registry.judge("helpfulness"), vertical="travel")
    assert registry.judge("helpfulness", "nobody_knows") is registry.judge("helpfulness")
    assert registry.category("general_qa", "nobody_knows") is registry.category("general_qa")


OVERLAYS = st.fixed_dictionaries(
    {"threshold": st.floats(4, 5) | st.fixed_dictionaries({m.value: st.floats(4, 5) for m in Milestone})},
    optional={
        "floor": st.floats(2, 4),
        "tolerance": st.floats(0, 0.2),
        "filter": st.just({"field": "sub_agent_id", "operator": "=", "value": "x"}),
        "enforcement": st.just({"pre_merge": "block"}),
        "recalibration_due": st.dates(date(2026, 11, 22), date(2027, 2, 18)).map(str),
    },
)


def seen(registry: Registry, vertical: str | None) -> Any:
    categories = {name: registry.category(name, vertical) for name in registry.category_files}
    limits = {(name, m): registry.threshold(name, m, vertical) for name in registry.rules() for m in (None, *Milestone)}
    return registry.all(vertical), categories, limits


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(OVERLAYS, OVERLAYS, st.sampled_from(["helpfulness", "brevity"]))
def test_what_one_vertical_calibrates_no_other_sees(before: Any, after: Any, judge: str) -> None:
    """PF-9 AC-8: one vertical's calibration cycle leaves the others' thresholds, and the platform's, as they are."""
    travels = {f"rules/travel/{judge}.yaml": yaml.dump({**SEED, "threshold": 4.25, "floor": 2.5})}
    one, other = (
        built({f"rules/shop/{judge}.yaml": yaml.dump({**SEED, **overlay}), **travels}) for overlay in (before, after)
    )
    for vertical in ("travel", None, "nobody_knows"):
        assert seen(one, vertical) == seen(other, vertical)
    assert other.judge(judge, "travel").default_threshold == 4.25
    wanted = after["threshold"] if isinstance(after["threshold"], float) else after["threshold"]["pre_full"]
    assert other.threshold(judge, "pre_full", "shop") == wanted, "and its own vertical sees it"


def test_a_judges_version_changes_with_what_decides_a_score_and_with_nothing_else() -> None:
    version = built().judge("helpfulness").version
    for same in (
        "{floor: 3}",
        "{threshold: 4.2}",
        "{tolerance: 0.3}",
        "{sampling_rate: 0.5}",
        "{calibration_ref: X-1}",
    ):
        assert built({QUALITY: same}).judge("helpfulness").version == version, same
    for other in (
        "{prompt: 'Rate {{output}} for {{input}}, strictly.'}",
        "{model: gpt-5}",
        "{temperature: 0.5}",
        "{score_range: [1, 10]}",
        "{task_introduction: You judge strictly.}",
        "{variables: {online: {input: input.text}}}",
        "{components: [greeting]}",
    ):
        assert built({QUALITY: other}).judge("helpfulness").version != version, other


def test_the_hash_of_a_registry_is_of_content_and_not_of_spelling() -> None:
    assert built().config_hash == built({MANIFEST: "{dataset: {items: 345}}"}).config_hash
    assert built().config_hash != built({QUALITY: "{floor: 2.5}"}).config_hash
    assert built().config_hash != built({"verticals/north.yaml": "{name: north, project: p}"}).config_hash


def test_every_safety_judge_blocks_at_every_milestone_for_everybody() -> None:
    registry = built()
    for vertical in SEEN_BY:
        for judge in registry.classified(Classification.SAFETY_REFUSAL, vertical):
            assert set(judge.enforcement.values()) == {Enforcement.BLOCK}
