"""What a proposal may change of the registry that judges it: words, and no limit (PC5 FR-2, FR-12)."""

from __future__ import annotations

import yaml

from evalcore.registry.files import assemble
from evalcore.registry.proposed import WORDS, laid_over
from evalcore.registry.registry import build
from tests.unit.evalcore.registry.registry_files import TODAY, registry

BREVITY = "rules/brevity.yaml"
OWN = {
    "description": "Other words.", "task_introduction": "You judge otherwise.", "prompt": "Judge {{output}} again.",
    "model": "gpt-5", "temperature": 0.5,
    "variables": {context: {"output": "output"} for context in ("offline", "online", "playground")},
}  # fmt: skip
LOOSER = {
    "floor": 1, "tolerance": 4, "threshold": 1, "enabled": False, "sampling_rate": 0.1, "score_range": [1, 50],
    "enforcement": {"pre_merge": "warn"}, "recalibration_due": "2027-01-01", "applies_to": ["search"],
    "classification": "safety_refusal", "score_name": "other", "filter": {"field": "x", "operator": "is_empty"},
}  # fmt: skip


def test_the_words_of_a_rule_file_are_taken_and_nothing_else() -> None:
    made = laid_over(registry(), registry({BREVITY: yaml.safe_dump(OWN | LOOSER)}))
    assert (made.taken, made.new, made.left, made.findings) == ((BREVITY,), (), (), ())
    assert (
        made.tree.files[BREVITY] == laid_over(registry(), registry({BREVITY: yaml.safe_dump(OWN)})).tree.files[BREVITY]
    )
    files, findings = assemble(made.tree, TODAY)
    assert findings == []
    was, now = build(assemble(registry(), TODAY)[0]).judge("brevity"), build(files).judge("brevity")
    asked = assemble(registry({BREVITY: yaml.safe_dump(OWN)}), TODAY)[0].rules["brevity"].model
    assert [getattr(now.rule, name) for name in WORDS] == [getattr(asked, name) for name in WORDS]
    assert asked.prompt == OWN["prompt"]
    assert now.version != was.version
    assert (now.floor, now.tolerance, now.thresholds, now.enforcement, now.fires, now.score_range) == (
        was.floor, was.tolerance, was.thresholds, was.enforcement, True, was.score_range
    )  # fmt: skip


def test_limits_alone_leave_the_file_as_it_is() -> None:
    made = laid_over(registry(), registry({BREVITY: yaml.safe_dump(LOOSER)}))
    assert (made.taken, made.left) == ((), (BREVITY,))
    assert made.tree.files == registry().files


def test_dimensions_keep_their_limits_and_none_is_lost() -> None:
    ours = {BREVITY: "{dimensions: {tone: {description: How., threshold: 3}, depth: {description: Deep., floor: 2}}}"}
    theirs = {BREVITY: "{dimensions: {tone: {description: Anew., threshold: 1}}}"}
    made = laid_over(registry(ours), registry(theirs))
    assert yaml.safe_load(made.tree.files[BREVITY])["dimensions"] == {
        "tone": {"description": "Anew.", "threshold": 3},
        "depth": {"description": "Deep.", "floor": 2},
    }


def test_manifest_verticals_and_overrides_are_the_targets_and_a_deleted_judge_stays() -> None:
    theirs = registry(
        {
            "evaluation_manifest.yaml": "{dataset: {items: 1}}",
            "rules/shop/helpfulness.yaml": "{threshold: 1, floor: 1}",
            "enforcement-overrides.yaml": "{overrides: [1]}",
            "verticals/shop.yaml": None,
            BREVITY: None,
        }
    )
    made = laid_over(registry(), theirs)
    assert made.tree.files == registry().files
    assert len(made.left) == 5
    assert (made.taken, made.new, made.findings) == ((), (), ()), "and nothing of them is judged at all"


def test_a_new_judge_comes_whole_and_a_broken_file_is_told_and_left() -> None:
    wit = registry().files[BREVITY].replace(b"brevity", b"wit")
    theirs = registry().with_file("rules/wit.yaml", wit).with_file(BREVITY, b"prompt: [")
    made = laid_over(registry(), theirs)
    assert (made.new, made.left) == (("rules/wit.yaml",), (BREVITY,))
    assert made.tree.files[BREVITY] == registry().files[BREVITY]
    assert {one.file for one in made.findings} == {"configs/rules/brevity.yaml"}
