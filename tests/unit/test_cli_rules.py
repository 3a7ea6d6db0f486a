"""`rampgate rules validate / list / diff`: PC5 AC-6, FR-14, §5.2; PF-9 AC-8, §5.10."""

from __future__ import annotations

import io
import subprocess
from datetime import date
from pathlib import Path

import pytest

from rampgate.cli.rule_jobs import agreed
from rampgate.tree_at import tree_at
from tests.unit.registry_copies import HERE, Ran, copied, edit, run
from tests.unit.test_rule_history import git

QUALITY = "rules/response_quality.yaml"


@pytest.fixture(autouse=True)
def _a_fixed_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.loading.today", lambda: date(2026, 11, 21))


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    return copied(tmp_path)


@pytest.fixture
def history(configs: Path) -> Path:
    """The shipped registry as the one commit of a repository."""
    git(configs.parent, "init", "-q")
    git(configs.parent, "add", ".")
    git(configs.parent, "commit", "-qm", "shipped")
    return configs


def validated(configs: Path, *paths: Path | str) -> Ran:
    return run(configs, "rules", "validate", *map(str, paths), "--json")


def test_the_shipped_registry_is_valid_in_all_forms() -> None:
    shipped = HERE / "configs"
    assert validated(shipped).json == {"valid": True, "errors": [], "warnings": []}
    assert run(shipped, "rules", "validate", "--format", "github") == Ran(0, "", "")
    text = run(shipped, "rules", "validate")
    assert (text.code, text.err) == (0, "")
    assert "valid, 0 errors, 0 warnings" in text.out
    assert validated(shipped, *sorted((shipped / "rules").glob("*.yaml"))).json["valid"]


def test_pc5_ac6_a_missing_field_is_told_with_file_line_rule_and_fix(configs: Path) -> None:
    edit(configs / QUALITY, "score_type: INTEGER\n", "")
    ran = validated(configs)
    assert ran.code == 1
    (error,) = [one for one in ran.json["errors"] if one["field"] == "score_type"]
    assert error["file"] == (configs / QUALITY).as_posix()
    assert error["severity"] == "error"
    assert all(error[name] for name in ("line", "column", "check", "clause", "message", "fix"))


def test_all_errors_are_told_at_once(configs: Path) -> None:
    edit(configs / QUALITY, "score_type: INTEGER\n", "")
    edit(configs / "rules/ux_quality.yaml", "enabled: true", "enabled: yes please")
    files = {error["file"] for error in validated(configs).json["errors"]}
    assert {(configs / QUALITY).as_posix(), (configs / "rules/ux_quality.yaml").as_posix()} <= files


@pytest.mark.parametrize("form", ["file", "folder", "vertical folder", "registry"])
def test_a_path_tells_its_own_problems_and_no_others(configs: Path, form: str) -> None:
    edit(configs / QUALITY, "tolerance: 0.2", "tolerance: -1")
    edit(configs / "rules/receipts/ux_quality.yaml", "baseline_source: provisional_seed", "baseline_source: guess")
    central, own = (configs / QUALITY).as_posix(), (configs / "rules/receipts/ux_quality.yaml").as_posix()
    path, told = {
        "file": (configs / QUALITY, {central}),
        "folder": (configs / "rules", {central, own}),
        "vertical folder": (configs / "rules/receipts", {own}),
        "registry": (configs, {central, own}),
    }[form]
    ran = validated(HERE / "configs", path)
    assert ran.code == 1
    assert {error["file"] for error in ran.json["errors"]} == told


def test_files_beside_the_rules_are_validated_too(configs: Path) -> None:
    vertical, overrides = configs / "verticals/receipts.yaml", configs / "enforcement-overrides.yaml"
    edit(vertical, "name: receipts", "nmae: receipts")
    overrides.write_text("overrides: 3\n")
    for path in (vertical, overrides):
        ran = validated(configs, path)
        assert (ran.code, {one["file"] for one in ran.json["errors"]}) == (1, {path.as_posix()})


def test_a_relative_path_is_told_as_it_was_given(configs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(configs / QUALITY, "tolerance: 0.2", "tolerance: -1")
    monkeypatch.chdir(configs.parent)
    for path in ("configs/rules/response_quality.yaml", "configs/rules", "./configs"):
        (error,) = validated(configs, path).json["errors"]
        assert error["file"] == "configs/rules/response_quality.yaml"
    monkeypatch.chdir(configs / "rules")
    (error,) = validated(configs, "response_quality.yaml").json["errors"]
    assert error["file"] == "response_quality.yaml"


def test_a_loose_folder_of_rule_files_is_validated_file_by_file(configs: Path, tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    for name in ("response_quality", "ux_quality"):
        (loose / f"{name}.yaml").write_text((configs / f"rules/{name}.yaml").read_text())
    assert validated(configs, loose).code == 0
    edit(loose / "ux_quality.yaml", "score_type: FLOAT", "score_type: FLAOT")
    ran = validated(configs, loose)
    assert (ran.code, {one["file"] for one in ran.json["errors"]}) == (1, {(loose / "ux_quality.yaml").as_posix()})


def test_a_path_that_is_not_there_is_bad_input_and_all_of_them_are_named(configs: Path, tmp_path: Path) -> None:
    ran = validated(configs, "no-such.yaml", "nor-this")
    assert (ran.code, ran.out) == (2, "")
    assert "no-such.yaml, nor-this: no such file" in ran.err
    (tmp_path / "empty").mkdir()
    assert validated(configs, tmp_path / "empty").code == 2
    assert validated(tmp_path / "nowhere").code == 2
    extension = tmp_path / "specs/verticals/receipts/eval/manifest-extension.yaml"
    assert "rampgate manifest validate" in validated(configs, extension).err


def test_warnings_alone_are_valid(configs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overdue seeds warn (PF-9 FR-4)."""
    monkeypatch.setattr("evalcore.loading.today", lambda: date(2027, 2, 19))
    ran = validated(configs)
    assert (ran.code, ran.json["valid"], ran.json["errors"]) == (0, True, [])
    assert len(ran.json["warnings"]) >= 16


def test_annotations_are_escaped_and_stand_beside_the_document(configs: Path) -> None:
    edit(configs / QUALITY, "name: ", 'x%0A::stop: "a,b:c%"\nname: ')
    ran = run(configs, "rules", "validate", "--json", "--format", "github")
    assert ran.code == 1
    assert not ran.json["valid"]
    lines = ran.err.splitlines()
    assert lines
    assert all(line.startswith(("::error file=", "::warning file=")) for line in lines)
    assert any("x%250A::stop" in line for line in lines)


def test_a_validation_leaves_its_metrics(configs: Path, tmp_path: Path) -> None:
    edit(configs / QUALITY, "tolerance: 0.2", "tolerance: -1")
    left = tmp_path / "metrics.prom"
    assert run(configs, "rules", "validate", "--metrics-file", str(left)).code == 1
    text = left.read_text()
    assert 'eval_rule_validation_failed_total{error_type="' in text
    assert 'rule_id="response_quality"} 1.0' in text
    assert "rampgate_" not in text


def test_judges_are_listed_as_a_vertical_sees_them(configs: Path) -> None:
    """PF-9 AC-8: receipts' own thresholds are its own."""
    platform = {judge["id"]: judge for judge in run(configs, "rules", "list", "--json").json["judges"]}
    receipts = run(configs, "rules", "list", "--vertical", "receipts", "--json").json
    seen = {judge["id"]: judge for judge in receipts["judges"]}
    assert len(platform) == len(seen) == 16
    assert platform["response_quality"]["thresholds"] == {"pre_merge": 4, "pre_ramp": 3, "pre_full": 4}
    assert seen["response_quality"]["thresholds"] == {"pre_merge": 4, "pre_ramp": 3.2, "pre_full": 4}
    for name in ("classification", "floor", "tolerance", "baseline_source", "calibration_ref", "recalibration_due"):
        assert name in seen["response_quality"]
    assert seen["jailbreaking"] == platform["jailbreaking"]


def test_a_categorys_judges_are_listed_with_the_inherited_ones(configs: Path) -> None:
    ran = run(configs, "rules", "list", "--vertical", "receipts", "--category", "receipt_scan", "--json")
    names = [judge["id"] for judge in ran.json["judges"]]
    assert {"response_quality", "jailbreaking", "safety_restricted", "sensitive_topics"} <= set(names)
    assert "greeting_quality" not in names
    table = run(configs, "rules", "list", "--vertical", "receipts", "--category", "receipt_scan").out
    assert "4 / 3.2 / 4" in table
    assert "2027-02-18" in table


def test_overdue_judges_stand_out_in_the_list(configs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.loading.today", lambda: date(2027, 2, 19))
    assert "2027-02-18 (overdue)" in run(configs, "rules", "list").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--vertical", "receits"), "did you mean receipts"),
        (("--category", "receipt_scam"), "did you mean receipt_scan"),
    ],
)
def test_a_misspelt_name_is_bad_input(configs: Path, arguments: tuple[str, ...], said: str) -> None:
    ran = run(configs, "rules", "list", *arguments, "--json")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_broken_registry_is_not_listed(configs: Path) -> None:
    edit(configs / QUALITY, "tolerance: 0.2", "tolerance: -1")
    ran = run(configs, "rules", "list")
    assert (ran.code, ran.out) == (2, "")
    assert "rampgate rules validate" in ran.err


def test_nothing_changed_is_no_difference(history: Path) -> None:
    edit(history / QUALITY, "name: ", "# a comment is no change\nname: ")
    ran = run(history, "rules", "diff", "--json")
    assert (ran.code, ran.json["changed"], ran.json["changes"]) == (0, False, [])
    assert "no judge has changed" in run(history, "rules", "diff").out


def test_a_difference_is_told_as_judge_field_and_values(history: Path) -> None:
    edit(history / QUALITY, "tolerance: 0.2", "tolerance: 0.1")
    edit(history / "rules/receipts/ux_quality.yaml", "threshold: 0.7", "threshold: 0.8")
    ran = run(history, "rules", "diff", "--json")
    assert ran.code == 1
    told = {(one["judge"], one["vertical"], one["field"], one["before"], one["after"]) for one in ran.json["changes"]}
    assert ("response_quality", None, "tolerance", 0.2, 0.1) in told
    assert ("ux_quality", "receipts", "thresholds.pre_ramp", 0.7, 0.8) in told
    assert not [one for one in told if one[0] == "ux_quality" and one[1] != "receipts"]
    text = run(history, "rules", "diff").out
    assert "response_quality: tolerance: 0.2 → 0.1" in text
    assert "ux_quality for receipts: thresholds.pre_ramp: 0.7 → 0.8" in text


def test_of_a_rubric_the_words_that_differ_are_shown(history: Path) -> None:
    """PC5 §5.7: who looks for what went wrong must not read the beginning, which is as it was."""
    edit(history / "rules/ux_quality.yaml", "## Scores", "Rate the output 0.2.\n\n  ## Scores")
    (line,) = [line for line in run(history, "rules", "diff").out.splitlines() if "prompt" in line]
    assert "Rate the output 0.2." in line.partition("→")[2]
    assert line.count("…") >= 2


def test_judges_that_came_and_went_are_told_once(history: Path) -> None:
    (history / "rules/ux_quality.yaml").rename(history / "rules/shopping_joy.yaml")
    edit(history / "rules/shopping_joy.yaml", "id: ux-quality", "id: shopping-joy")
    for file in (history / "rules/receipts/ux_quality.yaml",):
        file.unlink()
    for file in (history / "evaluation_manifest.yaml", history / "manifest-base.yaml"):
        file.write_text(file.read_text().replace("ux_quality", "shopping_joy").replace("ux-quality", "shopping-joy"))
    ran = run(history, "rules", "diff")
    assert ran.code == 1
    assert ran.out.count("shopping_joy: new") == ran.out.count("ux_quality: gone") == 1


def test_a_version_that_is_none_and_files_that_cannot_be_read_are_bad_input(history: Path) -> None:
    assert run(history, "rules", "diff", "nowhere").code == 2
    (history / QUALITY).write_text("a: [")
    ran = run(history, "rules", "diff", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert "response_quality.yaml" in ran.err


def test_an_earlier_version_is_read_from_git_and_not_from_the_disk(history: Path) -> None:
    before = tree_at(history, "HEAD")
    edit(history / QUALITY, "tolerance: 0.2", "tolerance: 0.1")
    (history / "rules/greeting_quality.yaml").unlink()
    after = tree_at(history, "HEAD")
    assert after.files == before.files
    assert b"tolerance: 0.2" in after.files[QUALITY]
    assert any(name.startswith("../prompts/components/") for name in after.files)
    assert (
        subprocess.run(["git", "-C", str(history), "status", "--porcelain"], capture_output=True).stdout.count(b"\n")
        == 2
    )


def test_what_lies_outside_the_repository_has_no_history(configs: Path) -> None:
    git(configs, "init", "-q")
    git(configs, "add", ".")
    git(configs, "commit", "-qm", "shipped")
    edit(configs / QUALITY, "tolerance: 0.2", "tolerance: 0.1")
    assert b"tolerance: 0.2" in tree_at(configs, "HEAD").files[QUALITY]
    ran = run(configs, "rules", "diff", "--json")
    assert {one["field"] for one in ran.json["changes"]} == {"tolerance"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "goes_on"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_at_a_terminal_a_sync_asks_and_no_is_the_default(
    typed: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    monkeypatch.setattr("sys.stderr", asked := Terminal())
    assert agreed(False, "Write this to Opik?")[0] is goes_on
    assert "Write this to Opik?" in asked.getvalue()
    assert agreed(True, "Write this to Opik?") == (True, 0.0)


def test_every_command_of_rules_shows_an_example(configs: Path) -> None:
    from typer.testing import CliRunner

    from rampgate.cli import app

    for name in ("validate", "list", "diff", "sync", "create", "rollback"):
        out = CliRunner().invoke(app, ["rules", name, "--help"], env={"COLUMNS": "200"}).stdout
        assert f"Example: rampgate rules {name}" in out
        assert "--json" in out
