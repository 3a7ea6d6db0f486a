"""`validate_rule_file` and `validate_manifest` (PC5 FR-8, FR-14, AC-6, AC-10; §9.1): one file, wherever it lies, with
its own findings."""

from __future__ import annotations

import os.path
import re
from pathlib import Path

import pytest

import evalcore
from evalcore.validation import validate_manifest, validate_rule_file
from evalcore.yaml.findings import ValidationResult
from tests.shipped import LACKS
from tests.unit.evalcore.yaml.documents_files import PC5_5_3, REST, TODAY, written
from tests.unit.rampgate.cli.registry_copies import HERE, copied

CONFIGS = HERE / "configs"
RULES = sorted(CONFIGS.glob("rules/*.yaml"))
OWN = sorted(CONFIGS.glob("rules/*/*.yaml"))
assert RULES
assert OWN


def in_the_registry(path: Path) -> str:
    return path.relative_to(CONFIGS).as_posix()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return copied(tmp_path)


# Where a file lies.


@pytest.mark.parametrize("path", [*RULES, *OWN], ids=in_the_registry)
def test_pc5_fr14_every_shipped_rule_file_holds(path: Path) -> None:
    assert validate_rule_file(path, today=TODAY).findings == ()
    assert validate_rule_file(Path(os.path.relpath(path)), today=TODAY).findings == ()


def test_pc5_ac10_the_shipped_manifest_holds(copy: Path) -> None:
    for path in (CONFIGS / "evaluation_manifest.yaml", copy / "evaluation_manifest.yaml"):
        found = validate_manifest(path, today=TODAY)
        assert (bool(found), [one.field for one in found.findings]) == (True, [*LACKS])


def test_pc5_ac10_a_new_entry_of_the_manifest_is_validated_the_same_way(tmp_path: Path) -> None:
    entry = "  returns:\n    judges: [response_quality, ux_quallity]\n"
    path = written(tmp_path / "m.yaml", PC5_5_3.replace("categories:\n", f"categories:\n{entry}") + REST)
    (told,) = validate_manifest(path, root=CONFIGS, today=TODAY).errors
    assert (told.field, told.check) == ("categories.returns.judges[1]", "manifest-judge-exists")
    assert "did you mean 'ux_quality'?" in told.message


@pytest.mark.parametrize("path", RULES, ids=in_the_registry)
def test_pc5_ac1_a_rule_file_that_lies_in_no_registry_is_judged_alone(path: Path, tmp_path: Path) -> None:
    lone = written(tmp_path / path.name, path.read_text(encoding="utf-8"))
    assert validate_rule_file(lone, today=TODAY).findings == ()


def test_a_verticals_file_that_lies_in_no_registry_is_judged_alone(tmp_path: Path) -> None:
    for path in OWN:
        lone = written(tmp_path / path.name, path.read_text(encoding="utf-8"))
        assert validate_rule_file(lone, today=TODAY).findings == ()


def test_findings_name_the_file_as_it_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "rules" / "a.yaml", "name: 1\n")
    monkeypatch.chdir(tmp_path)
    for path in (Path("rules/a.yaml"), Path("./rules/../rules/a.yaml"), tmp_path / "rules" / "a.yaml"):
        result = validate_rule_file(path, today=TODAY)
        assert result.path == path
        assert {finding.file for finding in result.findings} == {path.as_posix()}
    monkeypatch.chdir(tmp_path / "rules")
    assert {finding.file for finding in validate_rule_file(Path("a.yaml"), today=TODAY).findings} == {"a.yaml"}


def test_a_path_may_be_text(tmp_path: Path) -> None:
    path = written(tmp_path / "a.yaml", "name: 1\n")
    assert not validate_rule_file(str(path), today=TODAY).valid
    assert not validate_manifest(str(path), today=TODAY).valid


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
    for path in (tmp_path / "no.yaml", tmp_path / "rules" / "no.yaml"):
        with pytest.raises(FileNotFoundError, match=re.escape(str(path))):
            validate(path)
    with pytest.raises(IsADirectoryError, match="is no file"):
        validate(tmp_path)


def test_pc5_fr8_both_are_callable_from_the_package_as_the_document_has_them() -> None:
    for found in (
        evalcore.validate_rule_file(RULES[0]),
        evalcore.validate_manifest(CONFIGS / "evaluation_manifest.yaml"),
    ):
        assert isinstance(found, ValidationResult)
        assert bool(found) is found.valid


# What lies around it.


def test_a_broken_neighbour_is_not_this_files_fault(copy: Path) -> None:
    written(copy / "rules" / "ux_quality.yaml", "{{{")
    written(copy / "rules" / "receipts" / "ux_quality.yaml", "threshold: [")
    assert validate_rule_file(copy / "rules" / "fetch_legal.yaml", today=TODAY).findings == ()
    assert validate_rule_file(copy / "rules" / "receipts" / "fetch_legal.yaml", today=TODAY).findings == ()
    assert validate_manifest(copy / "evaluation_manifest.yaml", today=TODAY).errors == []


def test_a_broken_file_is_told_whole_however_many_others_are_broken(copy: Path) -> None:
    text = RULES[0].read_text(encoding="utf-8")
    for number in range(60):
        written(copy / "rules" / f"a{number}.yaml", text + "anything: 1\n")
    path = written(copy / "rules" / "zeal.yaml", text.replace("floor: 3.0", "floor: 9") + "anything: 1\n")
    checks = {finding.check for finding in validate_rule_file(path, today=TODAY).findings}
    assert {"unknown-field", "id-fits-file", "floor-fits-scale"} <= checks


def test_a_judge_that_is_missing_is_the_manifests_fault(copy: Path) -> None:
    """PC5 R-3, §9.5: the manifest is cross-checked with the rules there are."""
    (copy / "rules" / "greeting_quality.yaml").unlink()
    errors = validate_manifest(copy / "evaluation_manifest.yaml", today=TODAY).errors
    assert {"manifest-judge-exists", "threshold-of-a-judge"} <= {finding.check for finding in errors}
    assert all("greeting_quality" in finding.message for finding in errors)
    assert validate_rule_file(copy / "rules" / "fetch_legal.yaml", today=TODAY).findings == ()


def test_a_verticals_file_is_seen_over_its_central_judge(copy: Path) -> None:
    path = copy / "rules" / "receipts" / "ux_quality.yaml"
    written(path, path.read_text(encoding="utf-8").replace("threshold: 0.7", "threshold: 0.6"))
    (told,) = validate_rule_file(path, today=TODAY).errors
    assert (told.check, told.field, told.clause) == ("vertical-threshold-holds", "threshold", "PF-9 §5.2")
