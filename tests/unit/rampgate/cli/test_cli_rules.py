"""`rampgate rules validate / list`: PC5 AC-6, FR-14, §5.2; PF-9 AC-8, §5.10."""

from __future__ import annotations

import io
import re
from datetime import date
from pathlib import Path

import pytest

from rampgate.command import Context
from rampgate.report.model import Report
from tests.shipped import LACKS
from tests.unit.rampgate.cli.registry_copies import HERE, Ran, copied, edit, run

QUALITY = "rules/response_quality.yaml"


pytestmark = pytest.mark.usefixtures("a_fixed_day")


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    return copied(tmp_path)


def validated(configs: Path, *paths: Path | str) -> Ran:
    return run(configs, "rules", "validate", *map(str, paths), "--json")


def test_the_shipped_registry_is_valid_in_all_forms() -> None:
    shipped = HERE / "configs"
    found = validated(shipped).json
    assert (found["valid"], found["errors"]) == (True, [])
    assert [one["field"] for one in found["warnings"]] == [*LACKS]
    github = run(shipped, "rules", "validate", "--report", "github")
    assert (github.code, github.err.count("::warning ")) == (0, len(LACKS))
    text = run(shipped, "rules", "validate")
    assert (text.code, text.err) == (0, "")
    assert f"valid, 0 errors, {len(LACKS)} warnings" in text.out
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
    monkeypatch.setattr("evalcore.registry.disk.today", lambda: date(2027, 2, 19))
    ran = validated(configs)
    assert (ran.code, ran.json["valid"], ran.json["errors"]) == (0, True, [])
    assert len(ran.json["warnings"]) >= 16


def test_annotations_are_escaped_and_stand_beside_the_document(configs: Path) -> None:
    edit(configs / QUALITY, "name: ", 'x%0A::stop: "a,b:c%"\nname: ')
    ran = run(configs, "rules", "validate", "--json", "--report", "github")
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


OWN = "rules/receipts/response_quality.yaml"


@pytest.mark.parametrize(
    ("file", "line", "field", "check", "clause"),
    [
        (QUALITY, "temperature: 0\n", "temperature", "missing-field", "PC5 FR-3"),
        (QUALITY, "calibration_ref: PLT-596\n", "calibration_ref", "missing-field", "PF-9 §5.8"),
        (OWN, "calibration_ref: PLT-XXXX-receipts-bootstrap\n", "calibration_ref", "missing-field", "PF-9 §5.8"),
        (OWN, "classification: quality\n", "classification", "missing-field", "PF-9 FR-2, AC-2"),
        (QUALITY, "  seeded_on: 2026-11-20\n", "calibration.seeded_on", "calibration-day-stated", "PF-9 FR-3, FR-4"),
        (OWN, "  seeded_on: 2026-11-20\n", "calibration.seeded_on", "calibration-day-stated", "PF-9 FR-3, FR-4"),
    ],
)
def test_pc5_fr3_pf9_ac2_5_8_each_field_of_a_rule_file_is_demanded(
    configs: Path, file: str, line: str, field: str, check: str, clause: str
) -> None:
    """PC5 FR-3; PF-9 FR-2, FR-3, AC-2, §5.8: in the registry and alone."""
    edit(configs / file, line, "" if not line.startswith("  ") else "  window_days: 30\n")
    for ran in (validated(configs), validated(configs, configs / file)):
        assert ran.code == 1
        (error,) = ran.json["errors"]
        assert (error["file"], error["field"], error["check"]) == ((configs / file).as_posix(), field, check)
        assert clause in error["clause"]


def test_pf9_fr3_a_calibration_without_its_day_is_an_error(configs: Path) -> None:
    """PF-9 FR-3, FR-4: no due day is counted from today."""
    seed = "baseline_source: provisional_seed"
    edit(configs / OWN, seed, "baseline_source: production_distribution")
    edit(configs / OWN, "  seeded_on: 2026-11-20\n", "  window_days: 30\n  percentile: 5\n  sigma: 2\n")
    (error,) = validated(configs).json["errors"]
    assert (error["check"], error["field"]) == ("calibration-day-stated", "calibration.calibrated_on")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (QUALITY, "recalibration_due: 2027-02-18\n", ""),
        (QUALITY, "recalibration_due: 2027-02-18\n", "recalibration_due: soon\n"),
        (QUALITY, "recalibration_due: 2027-02-18\n", "recalibration_due:\n"),
        (QUALITY, "  seeded_on: 2026-11-20\n", "  seeded_on: 2026-02-01\n"),
        (QUALITY, "  recalibration_due: 2027-02-18\n", ""),
        ("../specs/verticals/receipts/eval/agreement.yaml", "set_on: 2026-11-20", "set_on: 2026-02-01"),
    ],
)
def test_pf9_fr4_no_remedy_names_a_day_that_has_passed(configs: Path, file: str, old: str, new: str) -> None:
    """PF-9 FR-4: what is written as it says has to be valid, today and next year."""
    edit(configs / file, old, new)
    errors = validated(configs).json["errors"]
    assert errors
    for error in errors:
        named = [date.fromisoformat(day) for day in re.findall(r"\d{4}-\d\d-\d\d", error["fix"])]
        assert all(day >= date(2026, 11, 21) for day in named), error["fix"]
        assert error["fix"]


def test_pf9_fr4_a_day_that_is_too_late_is_told_with_the_last_that_is_not(configs: Path) -> None:
    edit(configs / QUALITY, "recalibration_due: 2027-02-18\n", "recalibration_due: 2027-03-01\n")
    (error,) = validated(configs).json["errors"]
    assert error["fix"] == "write 2027-02-18 or an earlier day"


NOT_DRIFT = (QUALITY, "tolerance: 0.2", "tolerance: -1")
MANIFEST = "evaluation_manifest.yaml"
GROUP = "composites:\n  alone: {judges: [alone, ux_quality]}\n"


@pytest.mark.parametrize(
    ("change", "added", "drifts"),
    [
        (NOT_DRIFT, None, 0),
        ((QUALITY, "enabled: true", "enabled: false"), None, 0),  # switched off, and known to both
        ((MANIFEST, "  ux_quality: 0.7\n", "  ux_quality: 0.7\n  grace: 4\n"), None, 1),
        ((MANIFEST, "  - data_integrity\n", "  - data_integrity\n  - grace\n"), None, 1),
        ((MANIFEST, "  - data_integrity\n", "  - data_integrity\n  - grace\n  - wit\n"), None, 2),
        ((MANIFEST, "  ux_quality: 0.7\n", "  ux_quality: 0.7\n  alone: 4\n"), "alone", 1),
        ((MANIFEST, "composites:\n", GROUP), "alone", 1),
    ],
)
def test_pc5_r3_10_2_each_drift_of_manifest_and_rules_is_counted_and_no_other_error(
    configs: Path, tmp_path: Path, change: tuple[str, str, str], added: str | None, drifts: int
) -> None:
    """PC5 §10.2, R-3: a judge that does not exist, a threshold of none, a rule that nothing uses. A composite that no
    category names is no use of its parts."""
    edit(configs / change[0], *change[1:])
    if added is not None:
        text = (configs / QUALITY).read_text().replace("response_quality", added).replace("response-quality", added)
        (configs / f"rules/{added}.yaml").write_text(text.replace("Response Quality", added))
    left = tmp_path / "metrics.prom"
    run(configs, "rules", "validate", "--metrics-file", str(left))
    assert f"\neval_manifest_drift_total {drifts:.1f}\n" in left.read_text()


def test_judges_are_listed_as_a_vertical_sees_them(configs: Path) -> None:
    """PF-9 AC-8: receipts' own thresholds are its own."""
    platform = {judge["id"]: judge for judge in run(configs, "rules", "list", "--json").json["judges"]}
    receipts = run(configs, "rules", "list", "--vertical", "receipts", "--json").json
    seen = {judge["id"]: judge for judge in receipts["judges"]}
    assert len(platform) == len(seen) == 18
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


def test_pf9_fr1_judges_are_listed_by_id_classification_and_sub_agent(configs: Path) -> None:
    """FR-1: the registry is queried by each of the three; several of them, and a category, hold together."""

    def listed(*arguments: str) -> list[str]:
        ran = run(configs, "rules", "list", *arguments, "--json")
        assert ran.code == 0, ran.err
        return [judge["id"] for judge in ran.json["judges"]]

    assert listed("--id", "response-quality", "--vertical", "receipts") == ["response_quality"]
    shown = run(configs, "rules", "list", "--id", "response_quality", "--vertical", "receipts", "--json").json
    assert shown["judges"][0]["thresholds"]["pre_ramp"] == 3.2
    safety, every = listed("--classification", "safety_refusal"), listed()
    assert {"jailbreaking", "safety_restricted", "sensitive_topics"} <= set(safety) < set(every)
    assert set(listed("--classification", "quality")) == set(every) - set(safety)
    own = listed("--sub-agent", "shopping_list")
    assert "shopping_list_quality" in own
    assert "shopping_list_quality" not in listed("--sub-agent", "offer_discovery")
    assert set(safety) <= set(own) < set(every), "safety judges score every sub-agent"
    both = listed("--sub-agent", "shopping_list", "--classification", "quality")
    assert both == [name for name in own if name not in safety]
    assert listed("--id", "jailbreaking", "--classification", "quality") == []
    category = ("--category", "receipt_scan", "--vertical", "receipts")
    assert listed("--classification", "quality", *category) == [one for one in listed(*category) if one not in safety]
    assert listed("--id", "response_quality", *category) == ["response_quality"]
    assert listed("--id", "greeting_quality", *category) == [], "it does not fire on the category"
    table = run(configs, "rules", "list", "--classification", "safety_refusal").out
    assert f"{len(safety)} judges" in table


def test_overdue_judges_stand_out_in_the_list(configs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.registry.disk.today", lambda: date(2027, 2, 19))
    assert "2027-02-18 (overdue)" in run(configs, "rules", "list").out


def test_pf9_fr4_the_list_shows_the_day_of_a_floor_that_is_due_before_its_threshold(
    configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalcore.registry.disk.today", lambda: date(2027, 1, 15))
    floor = "{baseline_source: production_distribution, recalibration_due: 2027-01-14, calibration_ref: PLT-1,"
    floor += " calibration: {calibrated_on: 2026-11-20, window_days: 30, percentile: 5, sigma: 2}}"
    own = configs / "rules" / "receipts" / "response_quality.yaml"
    edit(own, "threshold:\n", f"floor: 3\nfloor_provenance: {floor}\nthreshold:\n")
    shown = run(configs, "rules", "list", "--id", "response_quality", "--vertical", "receipts")
    assert shown.code == 0, shown.err
    assert "2027-01-14 (overdue)" in shown.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--vertical", "receits"), "did you mean receipts"),
        (("--category", "receipt_scam"), "did you mean receipt_scan"),
        (("--id", "ux-qualty"), "--id: no id 'ux_qualty'; did you mean ux_quality"),
        (("--classification", "safety"), "safety_refusal"),
        (("--sub-agent", "recipts"), "did you mean receipts"),
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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "goes_on"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_at_a_terminal_a_sync_asks_and_no_is_the_default(
    typed: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    monkeypatch.setattr("sys.stderr", asked := Terminal())
    context, plan = Context.of(), Report("Sync", "planned", "pass")
    assert context.confirm(plan, "Write this to Opik?", yes=True)
    assert (asked.getvalue(), context.waited) == ("", 0.0)
    assert context.confirm(plan, "Write this to Opik?", yes=False) is goes_on
    assert "Write this to Opik?" in asked.getvalue().partition("Sync: ")[2]
    assert context.waited > 0


def test_every_command_of_rules_shows_an_example(configs: Path) -> None:
    from typer.testing import CliRunner

    from rampgate.cli import app

    for name in ("validate", "list", "diff", "sync", "create", "rollback"):
        out = CliRunner().invoke(app, ["rules", name, "--help"], env={"COLUMNS": "200"}).stdout
        assert f"Example: rampgate rules {name}" in out
        assert "--json" in out
