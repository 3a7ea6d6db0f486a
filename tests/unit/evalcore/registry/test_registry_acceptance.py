"""Acceptance criteria as far as they are about files and the linter, on the files that are shipped: PF-9 AC-5, AC-9,
AC-15. What they say of calls and answers is tested with the API."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml

from evalcore.manifest.resolving import resolve
from evalcore.registry import disk
from evalcore.registry.files import MANIFEST, assemble
from evalcore.registry.judge import overdue
from evalcore.registry.registry import build
from evalcore.validation import checked, validate_tree
from evalcore.yaml.findings import Severity, ValidationResult
from tests.root import ROOT
from tests.shipped import LACKS

TODAY = date(2026, 11, 21)
CONFIGS = ROOT / "configs"
SHIPPED = disk.read_tree(CONFIGS)
RULES = sorted(name for name in SHIPPED.files if name.startswith("rules/"))
CENTRAL = [name for name in RULES if name.count("/") == 1]


def test_what_is_shipped_has_no_finding_but_what_it_leaves_to_an_installation() -> None:
    found = validate_tree(SHIPPED, TODAY)
    assert [one.field for one in found.warnings] == [*LACKS]
    assert {one.check for one in found.warnings} == {"rollout-sample-composed", "tolerance-is-seen"}
    assert found == ValidationResult(CONFIGS, tuple(found.warnings))


def test_pf9_ac5_a_vertical_is_files_alone() -> None:
    """PF-9 AC-5, with the files of §5.10 for a vertical that no one has heard of: they resolve, they hold, and gates
    find that vertical's judges and limits. The platform and other verticals keep theirs."""
    before = build(assemble(SHIPPED, TODAY)[0])
    files = {
        "verticals/travel.yaml": "name: travel\nproject: travel-eval\n",
        "../specs/verticals/travel/eval/manifest-extension.yaml": (
            "vertical: travel\ncategories:\n  fare_question:\n"
            '    description: "User asks what a trip costs"\n    inherits_from: general_qa\n'
        ),
        "../specs/verticals/travel/eval/judge-selection.yaml": (
            "vertical: travel\ncategories:\n  fare_question:\n    quality_judges:\n"
            "      - response_quality\n      - tool_compliance\n      - ux_quality\n      - fetch_legal\n"
        ),
        "rules/travel/response_quality.yaml": (
            "classification: quality\nbaseline_source: provisional_seed\ncalibration_ref: PLT-XXXX-travel-bootstrap\n"
            "recalibration_due: 2027-02-18\ncalibration: {seeded_on: 2026-11-20}\nthreshold: 4.2\n"
            "filter:\n  field: sub_agent_id\n  operator: equals\n  value: travel\n"
        ),
    }
    tree = SHIPPED
    for name, text in files.items():
        tree = tree.with_file(name, text.encode())
    resolution = resolve(tree, TODAY)
    assert resolution.sound
    tree = tree.with_file(MANIFEST, str(resolution.text).encode())
    assert [one.field for one in validate_tree(tree, TODAY).findings] == [*LACKS]
    after = build(assemble(tree, TODAY)[0])
    assert {judge.id for judge in after.category("fare_question", "travel")} == {
        *("response_quality", "tool_compliance", "ux_quality", "fetch_legal"),
        *("data_integrity", "jailbreaking", "safety_restricted", "sensitive_topics"),
    }
    assert after.threshold("response_quality", "pre_ramp", "travel") == 4.2
    for seen in (None, "receipts", "rewards_assistant"):
        for judge in before.all(seen):
            assert after.judge(judge.id, seen) == judge


def test_pf9_ac9_a_seed_past_due_warns_in_ci_and_blocks_a_ramp() -> None:
    """PF-9 AC-9."""
    rules = [rule for _, _, rule in assemble(SHIPPED, TODAY)[0].every_rule()]
    assert {rule.document.file for rule in rules} == {SHIPPED.shown(name) for name in RULES}
    own = ("recalibration-overdue", "recalibration_due")  # the limit of a judge's drift has another field
    for due in {rule.model.recalibration_due for rule in rules}:
        ending = [rule for rule in rules if rule.model.recalibration_due == due]
        for today in (due, due + timedelta(days=1)):
            found = [one for one in checked(SHIPPED, today)[1] if (one.check, one.field) == own]
            for rule in ending:
                told, late = [one for one in found if one.file == rule.document.file], overdue(rule.model, today)
                if today == due:
                    assert (told, late) == ([], None)
                    continue
                assert [one.severity for one in told] == [Severity.WARNING]
                assert late is not None
                assert [late.at[milestone] for milestone in late.at] == ["warn", "block", "block"]
        assert validate_tree(SHIPPED, due + timedelta(days=400)).valid


@pytest.mark.parametrize("declared", ["user_signal_thumbs", "user-signal-mood"])
@pytest.mark.parametrize("name", ["rules/ux_quality.yaml", "rules/receipts/ux_quality.yaml"])
def test_pf9_ac15_an_id_with_the_reserved_prefix_fails_and_names_the_way(name: str, declared: str) -> None:
    """PF-9 AC-15."""
    text = re.sub(r"^id: .*\n", "", SHIPPED.files[name].decode(), flags=re.MULTILINE)
    tree = SHIPPED.with_file(name, f"id: {declared}\n{text}".encode())
    found = [one for one in checked(tree, TODAY)[1] if one.check == "reserved-prefix"]
    assert [(one.line, one.field, one.severity) for one in found] == [(1, "id", Severity.ERROR)]
    assert "R-4" in found[0].message
    assert "PF-9 review" in found[0].fix
    assert "not through the judge registry" in found[0].fix


def test_pc5_10_1_every_shipped_judge_has_its_threshold_in_the_manifest() -> None:
    """Phase 5: who asks what gates a promotion finds it in one place, on the judge's scale."""
    stated, registry = yaml.safe_load(SHIPPED.files[MANIFEST])["thresholds"], build(assemble(SHIPPED, TODAY)[0])
    for name in CENTRAL:
        said, judge = stated[Path(name).stem], registry.judge(Path(name).stem)
        assert judge.thresholds == (said if isinstance(said, dict) else dict.fromkeys(judge.thresholds, said)), name
