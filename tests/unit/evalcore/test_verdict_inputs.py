"""The shipped state keeps its verdicts (PF-9 NFR-4) until somebody changes them on purpose, where a reviewer sees it
(PC5 NFR-5); and verticals leave one another alone (PF-9 AC-8)."""

from __future__ import annotations

import json

import pytest

from evalcore.manifest.resolving import resolve
from evalcore.registry.files import MANIFEST, VERTICALS, Tree
from tests.root import ROOT
from tests.unit.evalcore.verdict_inputs import DAY, SNAPSHOT, inputs, registry, shipped, text

SHOPPING = {
    "verticals/shopping.yaml": "name: shopping\nproject: shopping-eval\n",
    f"{VERTICALS}/shopping/eval/manifest-extension.yaml": (
        "vertical: shopping\ncategories:\n  cart_advice: {inherits_from: shopping_list}\n  greeting: {}\n"
        "archetypes:\n  conversation: [shopping]\n"
    ),
    f"{VERTICALS}/shopping/eval/judge-selection.yaml": (
        "vertical: shopping\ncategories:\n  cart_advice: {quality_judges: [ux_quality, response_quality]}\n"
    ),
}
OWN = """
classification: quality
baseline_source: provisional_seed
calibration_ref: PLT-1
recalibration_due: 2026-12-31
calibration: {seeded_on: 2026-11-20}
threshold: THRESHOLD
tolerance: 0
enforcement: {pre_merge: block}
filter: {field: sub_agent_id, operator: equals, value: shopping}
"""


def with_shopping(ux_quality: str, response_quality: str) -> Tree:
    """The shipped registry and a vertical that sets something for two judges, with the manifest that comes of it."""
    tree = shipped()
    rules = {"ux_quality": ux_quality, "response_quality": response_quality}
    files = {f"rules/shopping/{judge}.yaml": OWN.replace("THRESHOLD", value) for judge, value in rules.items()}
    added = {name: content.encode() for name, content in {**SHOPPING, **files}.items()}
    tree = Tree(tree.root, {**tree.files, **added})
    resolution = resolve(tree, DAY)
    assert resolution.sound, resolution.findings
    assert resolution.text is not None
    return tree.with_file(MANIFEST, resolution.text.encode())


def test_the_shipped_verdicts_are_those_that_were_reviewed() -> None:
    """PF-9 NFR-4. A failure here is a change of verdicts: if it is meant, run
    `python -m tests.unit.evalcore.verdict_inputs`, and say in the pull request which production signal justifies it."""
    assert json.loads(text(registry(shipped()))) == json.loads(SNAPSHOT.read_text())


def test_a_vertical_that_comes_changes_no_verdict_of_those_who_are_there() -> None:
    """PF-9 NFR-4, AC-8."""
    before, after = registry(shipped()), registry(with_shopping("0.99", "4.9"))
    assert inputs(after) == inputs(before)
    for there in ("receipts", "rewards_assistant"):
        assert inputs(after, there) == inputs(before, there)
    assert after.threshold("ux_quality", "pre_full", "shopping") == 0.99
    assert after.threshold("response_quality", "pre_ramp", "shopping") == 4.9


def test_one_verticals_calibration_leaves_the_others_as_they_are() -> None:
    """PF-9 AC-8: when one vertical's calibration cycle runs, the other's thresholds are unaffected."""
    before, after = registry(with_shopping("0.9", "4.5")), registry(with_shopping("0.99", "4.9"))
    for there in (None, "receipts", "rewards_assistant"):
        assert inputs(after, there) == inputs(before, there)
    assert inputs(after, "shopping") != inputs(before, "shopping")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("evaluation_manifest.yaml", "greeting_quality: 4", "greeting_quality: 4.5"),
        ("rules/ux_quality.yaml", "tolerance: 0.05", "tolerance: 0.01"),
        ("rules/response_quality.yaml", "Score the agent's output", "Rate the agent's output"),
        ("rules/response_quality.yaml", "temperature: 0\n", "temperature: 0.5\n"),
        ("rules/greeting_quality.yaml", "sampling_rate: 1.0", "sampling_rate: 0.5"),
        ("rules/greeting_quality.yaml", "enabled: true", "enabled: false"),
    ],
)
def test_what_would_change_a_verdict_is_noticed(name: str, old: str, new: str) -> None:
    tree = shipped()
    content = tree.files[name].decode()
    assert old in content
    changed = tree.with_file(name, content.replace(old, new, 1).encode())
    assert text(registry(changed)) != text(registry(tree))


@pytest.mark.parametrize("name", ["rules/ux_quality.yaml", "evaluation_manifest.yaml"])
def test_a_comment_changes_no_verdict(name: str) -> None:
    tree = shipped()
    changed = tree.with_file(name, tree.files[name] + b"\n# a remark\n")
    assert text(registry(changed)) == text(registry(tree))


def test_the_snapshot_lies_where_the_handbook_says() -> None:
    handbook = (ROOT / "docs" / "registry.md").read_text()
    assert "tests/unit/snapshots/verdict_inputs.json" in handbook
    assert "tests.unit.evalcore.verdict_inputs" in handbook
