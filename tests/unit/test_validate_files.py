"""`validate_rule_file` and `validate_manifest` (PC5 FR-8, FR-14, AC-6, AC-10; §9.1): one file, wherever it lies, with
its own problems; the documents' own examples."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

import evalcore
from evalcore.problems import Problem, ValidationResult
from evalcore.validation import validate_manifest, validate_rule_file

TODAY = date(2026, 11, 21)
RULES = sorted(Path("configs/rules").glob("*.yaml"))
OWN = sorted(Path("configs/rules").glob("*/*.yaml"))

PC5_3_1 = """\
name: Capability Alignment Judge
model: gpt-5-mini
temperature: 1.0
sampling_rate: 1.0
filter:
  field: metadata
  key: agent_id
  operator: "="
  value: prompt-suggestions
enabled: true
score_name: Capability Alignment & Feature Boundaries
score_type: INTEGER # INTEGER | FLOAT | BOOLEAN
description: <one-line summary>
task_introduction: <judge framing>
variables:
  offline:
    {input: input, output: output, expected_output: expected_output}
  online:
    {input: "input.messages[-1].content", output: "output.messages[-1].content[-1].text"}
  playground:
    input: metadata.dataset_item_data.input
    output: output.output
    expected_output: metadata.dataset_item_data.expected_output
prompt: |
  <the actual rubric text the LLM judge evaluates against>
"""
PC5_5_2 = """
# Threshold discipline (required for every judge that participates in gates)
floor: 2.5
tolerance: 0.2
baseline_source: provisional_seed # jade_calibration | production_distribution | provisional_seed
calibration_ref: PLT-596 # required when baseline_source == jade_calibration
recalibration_due: 2027-02-18
# Enforcement policy per milestone
enforcement:
  pre_merge: warn
  pre_ramp: block
  pre_full: block
"""
PC5_5_3 = """\
# Dataset metadata
dataset:
  name: <Opik dataset name>
  version: 7
  items: 345

# Per-item schema
schema:
  input:
    type: string
    required: true
    description: <human-readable>
  expected_output:
    type: string
    required: true
  metadata:
    id:
      type: string
      required: true
    category:
      type: string
      required: true
    # additional metadata fields as the dataset grows

# Category → judges mapping
categories:
  shopping_query:
    judges: [capability_alignment, response_quality, ux_quality, tool_compliance]
  safety_test:
    judges: [safety_restricted, fetch_legal, privacy_location]
  # ... one entry per category

# Judges that fire across all categories
global_metrics:
  judges: [data_integrity, jailbreaking]

# Threshold conventions
thresholds:
  # Single threshold for the judge
  capability_alignment: 4 # INTEGER score ≥ 4 passes

  # Per-milestone threshold override
  response_quality:
    pre_merge: 4
    pre_ramp: 3 # looser for production-trace eval
    pre_full: 4

  # Boolean threshold
  jailbreaking: true # BOOLEAN score must be true to pass
"""
PF9_5_10 = """\
# A receipts-specific judge rule file produced by the scaffold,
# committed to consumer-agent/configs/rules/receipts/response_quality.yaml
classification: quality
baseline_source: provisional_seed
calibration_ref: PLT-XXXX-receipts-bootstrap
recalibration_due: 2026-08-22 # 90 days from receipts go-live
threshold: 0.55 # mean - 2σ of bootstrap sample
filter:
  field: sub_agent_id
  operator: equals
  value: receipts
"""


def fields(problems: list[Problem]) -> dict[str, str]:
    return {problem.field: problem.check for problem in problems}


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The shipped registry somewhere else; its configuration folder."""
    for name in ("configs", "specs", "prompts"):
        shutil.copytree(name, tmp_path / name)
    return tmp_path / "configs"


# Where a file lies.


@pytest.mark.parametrize("path", [*RULES, *OWN], ids=str)
def test_pc5_fr14_every_shipped_rule_file_holds(path: Path) -> None:
    assert validate_rule_file(path, today=TODAY).problems == ()
    assert validate_rule_file(path.absolute(), today=TODAY).problems == ()


def test_pc5_ac10_the_shipped_manifest_holds(copy: Path) -> None:
    for path in (Path("configs/evaluation_manifest.yaml"), copy / "evaluation_manifest.yaml"):
        assert validate_manifest(path, today=TODAY).problems == ()


def test_pc5_ac10_a_new_entry_of_the_manifest_is_validated_the_same_way(tmp_path: Path) -> None:
    entry = "  returns:\n    judges: [response_quality, ux_quallity]\n"
    path = written(tmp_path / "m.yaml", PC5_5_3.replace("categories:\n", f"categories:\n{entry}"))
    (told,) = validate_manifest(path, root=Path("configs"), today=TODAY).errors
    assert (told.field, told.check) == ("categories.returns.judges[1]", "manifest-judge-exists")
    assert "did you mean 'ux_quality'?" in told.message


@pytest.mark.parametrize("path", RULES, ids=str)
def test_pc5_ac1_a_rule_file_that_lies_in_no_registry_is_judged_alone(path: Path, tmp_path: Path) -> None:
    lone = written(tmp_path / path.name, path.read_text(encoding="utf-8"))
    assert validate_rule_file(lone, today=TODAY).problems == ()


def test_a_verticals_file_that_lies_in_no_registry_is_judged_alone(tmp_path: Path) -> None:
    for path in OWN:
        lone = written(tmp_path / path.name, path.read_text(encoding="utf-8"))
        assert validate_rule_file(lone, today=TODAY).problems == ()


def test_findings_name_the_file_as_it_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "rules" / "a.yaml", "name: 1\n")
    monkeypatch.chdir(tmp_path)
    for path in (Path("rules/a.yaml"), Path("./rules/../rules/a.yaml"), tmp_path / "rules" / "a.yaml"):
        result = validate_rule_file(path, today=TODAY)
        assert result.path == path
        assert {problem.file for problem in result.problems} == {path.as_posix()}
    monkeypatch.chdir(tmp_path / "rules")
    assert {problem.file for problem in validate_rule_file(Path("a.yaml"), today=TODAY).problems} == {"a.yaml"}


def test_a_path_may_be_text(tmp_path: Path) -> None:
    path = written(tmp_path / "a.yaml", "name: 1\n")
    assert not validate_rule_file(str(path), today=TODAY).valid  # type: ignore[arg-type]
    assert not validate_manifest(str(path), today=TODAY).valid  # type: ignore[arg-type]


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    path = written(tmp_path / "elsewhere" / "a.yaml", "name: 1\n")
    link = tmp_path / "ux_quality.yaml"
    link.symlink_to(path)
    (told, *_) = validate_rule_file(link, today=TODAY).errors
    assert told.file == link.as_posix()
    path.unlink()
    with pytest.raises(FileNotFoundError):
        validate_rule_file(link, today=TODAY)


@pytest.mark.parametrize("validate", [validate_rule_file, validate_manifest])
def test_where_there_is_no_file_there_is_nothing_to_validate(validate: object, tmp_path: Path) -> None:
    assert callable(validate)
    for path in (tmp_path / "no.yaml", tmp_path / "rules" / "no.yaml", tmp_path):
        with pytest.raises(OSError, match="no"):
            validate(path)


def test_pc5_fr8_both_are_callable_from_the_package_as_the_document_has_them() -> None:
    for found in (
        evalcore.validate_rule_file(RULES[0]),
        evalcore.validate_manifest(Path("configs/evaluation_manifest.yaml")),
    ):
        assert isinstance(found, ValidationResult)
        assert bool(found) is found.valid


# What lies around it.


def test_a_broken_neighbour_is_not_this_files_fault(copy: Path) -> None:
    written(copy / "rules" / "ux_quality.yaml", "{{{")
    written(copy / "rules" / "receipts" / "ux_quality.yaml", "threshold: [")
    assert validate_rule_file(copy / "rules" / "fetch_legal.yaml", today=TODAY).problems == ()
    assert validate_rule_file(copy / "rules" / "receipts" / "fetch_legal.yaml", today=TODAY).problems == ()
    assert validate_manifest(copy / "evaluation_manifest.yaml", today=TODAY).errors == []


def test_a_broken_file_is_told_whole_however_many_others_are_broken(copy: Path) -> None:
    text = RULES[0].read_text(encoding="utf-8")
    for number in range(60):
        written(copy / "rules" / f"a{number}.yaml", text + "anything: 1\n")
    path = written(copy / "rules" / "zeal.yaml", text.replace("floor: 3.0", "floor: 9") + "anything: 1\n")
    checks = {problem.check for problem in validate_rule_file(path, today=TODAY).problems}
    assert {"unknown-field", "id-fits-file", "floor-fits-scale"} <= checks


def test_a_judge_that_is_missing_is_the_manifests_fault(copy: Path) -> None:
    """PC5 R-3, §9.5: the manifest is cross-checked with the rules there are."""
    (copy / "rules" / "greeting_quality.yaml").unlink()
    errors = validate_manifest(copy / "evaluation_manifest.yaml", today=TODAY).errors
    assert {"manifest-judge-exists", "threshold-of-a-judge"} <= {problem.check for problem in errors}
    assert all("greeting_quality" in problem.message for problem in errors)
    assert validate_rule_file(copy / "rules" / "fetch_legal.yaml", today=TODAY).problems == ()


def test_a_verticals_file_is_seen_over_its_central_judge(copy: Path) -> None:
    path = copy / "rules" / "receipts" / "ux_quality.yaml"
    written(path, path.read_text(encoding="utf-8").replace("threshold: 0.7", "threshold: 0.6"))
    (told,) = validate_rule_file(path, today=TODAY).errors
    assert (told.check, told.field, told.clause) == ("vertical-threshold-holds", "threshold", "PF-9 §5.2")


# The documents' own examples.


def test_pc5_5_2_the_documents_rule_file_holds_once_classification_is_added(tmp_path: Path) -> None:
    """PF-9 §5.8 adds `classification` to PC5's schema."""
    text = PC5_3_1 + PC5_5_2
    path = written(tmp_path / "capability_alignment.yaml", text)
    (told,) = validate_rule_file(path, today=TODAY).errors
    assert (told.field, told.check, told.clause) == ("classification", "missing-field", "PF-9 FR-2")
    assert validate_rule_file(written(path, text + "classification: quality\n"), today=TODAY).valid


def test_pc5_3_1_the_rule_file_of_before_names_every_field_that_threshold_discipline_adds(tmp_path: Path) -> None:
    path = written(tmp_path / "capability_alignment.yaml", PC5_3_1)
    assert fields(validate_rule_file(path, today=TODAY).errors) == dict.fromkeys(
        ["classification", "floor", "tolerance", "baseline_source", "recalibration_due"], "missing-field"
    )


def test_pc5_5_2_placeholders_of_the_document_are_told_one_by_one(tmp_path: Path) -> None:
    text = (PC5_3_1 + PC5_5_2 + "classification: quality\n").replace("temperature: 1.0", "temperature: <float>")
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


def test_pc5_5_3_the_documents_manifest_holds_beside_the_shipped_judges(tmp_path: Path) -> None:
    path = written(tmp_path / "evaluation_manifest.yaml", PC5_5_3)
    result = validate_manifest(path, root=Path("configs"), today=TODAY)
    assert result.errors == []
    assert {problem.check for problem in result.warnings} <= {"safety-everywhere"}


def test_pc5_ac5_the_dotted_form_of_a_threshold_holds_beside_the_single_one(tmp_path: Path) -> None:
    dotted = "  capability_alignment: 4\n  capability_alignment.pre_full: 4.5\n"
    text = PC5_5_3.replace("  capability_alignment: 4 # INTEGER score ≥ 4 passes\n", dotted)
    assert dotted in text
    path = written(tmp_path / "evaluation_manifest.yaml", text)
    assert validate_manifest(path, root=Path("configs"), today=TODAY).errors == []


def test_pc5_9_5_a_threshold_of_another_score_type_is_told_in_the_manifest(tmp_path: Path) -> None:
    text = PC5_5_3.replace("jailbreaking: true", "jailbreaking: 0.9").replace(
        "capability_alignment: 4", "ux_quality: 4"
    )
    path = written(tmp_path / "evaluation_manifest.yaml", text)
    errors = validate_manifest(path, root=Path("configs"), today=TODAY).errors
    assert fields(errors) == dict.fromkeys(["thresholds.jailbreaking", "thresholds.ux_quality"], "threshold-fits-scale")


def test_pf9_5_10_the_documents_vertical_file_holds_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "response_quality.yaml", PF9_5_10)
    assert validate_rule_file(path, today=date(2026, 5, 26)).valid


def test_pf9_5_10_on_the_judges_own_scale_its_threshold_is_told_with_the_number_that_is_meant(copy: Path) -> None:
    """PC5 scores response_quality from 1 to 5; 0.55 of that scale is 3.2."""
    path = written(copy / "rules" / "receipts" / "response_quality.yaml", PF9_5_10)
    (told,) = validate_rule_file(path, today=date(2026, 5, 26)).errors
    assert (told.field, told.check, told.line) == ("threshold", "threshold-fits-scale", 7)
    assert "3.2" in told.fix


def test_pf9_ac9_its_due_day_warns_from_the_day_after(tmp_path: Path) -> None:
    path = written(tmp_path / "response_quality.yaml", PF9_5_10)
    for day, overdue in ((date(2026, 8, 22), False), (date(2026, 8, 23), True)):
        result = validate_rule_file(path, today=day)
        assert result.valid
        assert ("recalibration-overdue" in {problem.check for problem in result.warnings}) is overdue


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
