"""The rule files and manifests that PC5 and PF-9 print, under `validate_rule_file` and `validate_manifest`."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from evalcore.validation import validate_manifest, validate_rule_file
from tests.unit.evalcore.yaml.documents_files import (
    PC5_3_1,
    PC5_5_2,
    PC5_5_3,
    PF9_5_10,
    REST,
    SEEDED,
    TODAY,
    fields,
    written,
)
from tests.unit.rampgate.cli.registry_copies import copied


def test_pc5_5_2_the_documents_rule_file_holds_once_classification_is_added(tmp_path: Path) -> None:
    """PF-9 §5.8 adds `classification` to PC5's schema."""
    text = PC5_3_1 + PC5_5_2
    path = written(tmp_path / "capability_alignment.yaml", text)
    errors = validate_rule_file(path, today=TODAY).errors
    assert fields(errors) == {
        "classification": "missing-field",
        "calibration.seeded_on": "calibration-day-stated",
    }
    whole = text + "classification: quality\n" + SEEDED.replace("05-24", "11-20")
    assert validate_rule_file(written(path, whole), today=TODAY).valid


def test_pc5_3_1_the_rule_file_of_before_names_every_field_that_threshold_discipline_adds(tmp_path: Path) -> None:
    path = written(tmp_path / "capability_alignment.yaml", PC5_3_1)
    assert fields(validate_rule_file(path, today=TODAY).errors) == dict.fromkeys(
        ["classification", "floor", "tolerance", "baseline_source", "calibration_ref", "recalibration_due"],
        "missing-field",
    )


def test_pc5_5_2_placeholders_of_the_document_are_told_one_by_one(tmp_path: Path) -> None:
    text = (PC5_3_1 + PC5_5_2 + "classification: quality\n" + SEEDED).replace(
        "temperature: 1.0", "temperature: <float>"
    )
    text = text.replace("enabled: true", "enabled: <bool>").replace("INTEGER #", "INTEGER | FLOAT | BOOLEAN #")
    text = text.replace("recalibration_due: 2027-02-18", "recalibration_due: <YYYY-MM-DD>")
    text = text.replace("  pre_merge: warn", "  pre_merge: warn | block")
    path = written(tmp_path / "capability_alignment.yaml", text)
    assert fields(validate_rule_file(path, today=TODAY).errors) == {
        "temperature": "wrong-type",
        "enabled": "wrong-type",
        "score_type": "unknown-value",
        "recalibration_due": "wrong-value",
        "enforcement.pre_merge": "unknown-value",
    }


def test_pc5_5_3_the_documents_manifest_holds_once_each_shipped_judge_has_a_threshold(tmp_path: Path) -> None:
    """PC5 FR-4: it states three, and of each other judge the floor would decide alone."""
    path = written(tmp_path / "evaluation_manifest.yaml", PC5_5_3)
    errors = validate_manifest(path, root=Path("configs"), today=TODAY).errors
    assert {(found.check, found.field) for found in errors} == {("judge-has-threshold", "thresholds")}
    written(path, PC5_5_3 + REST)
    result = validate_manifest(path, root=Path("configs"), today=TODAY)
    assert result.errors == []
    known = {"safety-everywhere", "rollout-sample-composed", "tolerance-is-seen"}
    assert {finding.check for finding in result.warnings} <= known


def test_pc5_ac5_the_dotted_form_of_a_threshold_holds_beside_the_single_one(tmp_path: Path) -> None:
    dotted = "  capability_alignment: 4\n  capability_alignment.pre_full: 4.5\n"
    text = PC5_5_3.replace("  capability_alignment: 4 # INTEGER score ≥ 4 passes\n", dotted) + REST
    assert dotted in text
    path = written(tmp_path / "evaluation_manifest.yaml", text)
    assert validate_manifest(path, root=Path("configs"), today=TODAY).errors == []


def test_pc5_9_5_a_threshold_of_another_score_type_is_told_in_the_manifest(tmp_path: Path) -> None:
    text = PC5_5_3.replace("jailbreaking: true", "jailbreaking: 0.9") + REST.replace("ux_quality: 0.7", "ux_quality: 4")
    path = written(tmp_path / "evaluation_manifest.yaml", text)
    errors = validate_manifest(path, root=Path("configs"), today=TODAY).errors
    assert fields(errors) == dict.fromkeys(["thresholds.jailbreaking", "thresholds.ux_quality"], "threshold-fits-scale")


def test_pf9_5_10_the_documents_vertical_file_holds_alone_once_it_has_the_day_of_its_seed(tmp_path: Path) -> None:
    path = written(tmp_path / "response_quality.yaml", PF9_5_10 + SEEDED)
    assert validate_rule_file(path, today=date(2026, 5, 26)).valid


def test_pf9_5_10_on_the_judges_own_scale_its_threshold_is_told_with_the_number_that_is_meant(tmp_path: Path) -> None:
    """PC5 scores response_quality from 1 to 5; 0.55 of that scale is 3.2."""
    path = written(copied(tmp_path) / "rules" / "receipts" / "response_quality.yaml", PF9_5_10 + SEEDED)
    (told,) = validate_rule_file(path, today=date(2026, 5, 26)).errors
    assert (told.field, told.check, told.line) == ("threshold", "threshold-fits-scale", 7)
    assert "3.2" in told.fix


def test_pf9_ac9_its_due_day_warns_from_the_day_after(tmp_path: Path) -> None:
    path = written(tmp_path / "response_quality.yaml", PF9_5_10 + SEEDED)
    for day, overdue in ((date(2026, 8, 22), False), (date(2026, 8, 23), True)):
        result = validate_rule_file(path, today=day)
        assert result.valid
        assert ("recalibration-overdue" in {finding.check for finding in result.warnings}) is overdue


def test_pf9_ac3_a_threshold_without_a_source_names_fr_3(tmp_path: Path) -> None:
    text = PF9_5_10.replace("baseline_source: provisional_seed\n", "")
    (told, *_) = validate_rule_file(written(tmp_path / "ux_quality.yaml", text), today=TODAY).errors
    assert (told.field, told.clause) == ("baseline_source", "PF-9 FR-3")


def test_pf9_ac15_a_reserved_id_names_r_4_and_the_other_way(tmp_path: Path) -> None:
    text = (PC5_3_1 + PC5_5_2 + "classification: quality\nid: user_signal_annotation\n").replace(
        "score_name: Capability Alignment & Feature Boundaries", "score_name: annotation"
    )
    path = written(tmp_path / "user_signal_annotation.yaml", text)
    errors = [found for found in validate_rule_file(path, today=TODAY).errors if found.check == "reserved-prefix"]
    assert "R-4" in errors[0].message
    assert "PF-9 review" in errors[0].fix
