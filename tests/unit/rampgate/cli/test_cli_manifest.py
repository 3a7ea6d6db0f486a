"""`rampgate manifest validate / resolve / show`: PC5 AC-6, AC-10, FR-14; PF-9 AC-7, FR-7, §5.6."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from evalcore.registry.disk import today
from evalcore.validation import validate_sources
from rampgate.cli import app
from rampgate.command import read_tree
from rampgate.registry.metrics import is_drift
from tests.shipped import LACKS
from tests.unit.rampgate.cli.registry_copies import HERE, Ran, copied, edit, files, run

MANIFEST = "evaluation_manifest.yaml"
EXTENSION = "specs/verticals/receipts/eval/manifest-extension.yaml"


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    return copied(tmp_path)


def resolved(configs: Path, *more: str) -> Ran:
    return run(configs, "manifest", "resolve", *more)


def test_pc5_ac10_the_shipped_manifest_is_valid_and_resolved() -> None:
    found = run(HERE / "configs", "manifest", "validate", "--json").json
    assert (found["valid"], found["errors"]) == (True, [])
    assert [one["field"] for one in found["warnings"]] == [*LACKS]
    assert resolved(HERE / "configs", "--check").code == 0


@pytest.mark.parametrize("field", ["thresholds", "global_metrics"])
def test_pc5_fr4_a_manifest_without_thresholds_or_global_metrics_is_an_error(configs: Path, field: str) -> None:
    """PC5 FR-4, of the manifest and of the source that it is made of."""
    for name, command in ((MANIFEST, "validate"), ("manifest-base.yaml", "resolve")):
        there = yaml.safe_load((configs / name).read_text())
        del there[field]
        (configs / name).write_text(yaml.safe_dump(there))
        ran = run(configs, "manifest", command, "--json")
        assert ran.code == 1
        assert ("missing-field", field) in {(one["check"], one["field"]) for one in ran.json["errors"]}


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ("", "ux_quality has no threshold, and its floor of 0.5 would decide alone"),
        ("  ux_quality: {pre_merge: 0.7, pre_full: 0.7}\n", "ux_quality has no threshold at pre_ramp"),
        ("  ux_quality: 0.7\n", None),
        ("  ux_quality: {default: 0.7, pre_full: 0.7}\n", None),
    ],
)
def test_pc5_fr4_an_enabled_judge_without_a_threshold_is_an_error(configs: Path, stated: str, says: str | None) -> None:
    """PC5 FR-4, FR-6: the threshold no longer falls silently to the floor."""
    edit(configs / "manifest-base.yaml", "  ux_quality: 0.7\n", stated)
    ran = resolved(configs, "--json")
    assert ran.code == (says is not None)
    assert (ran.json["outcome"] == "unsound") == (says is not None)
    if says is not None:
        edit(configs / MANIFEST, "  ux_quality: 0.7\n", stated)
        for command in ("manifest", "rules"):
            (error,) = run(configs, command, "validate", "--json").json["errors"]
            assert (error["check"], error["file"]) == ("judge-has-threshold", (configs / MANIFEST).as_posix())
            assert says in error["message"]
            assert "`ux_quality: …`" in error["fix"]
        edit(configs / "rules/ux_quality.yaml", "tolerance:", "threshold: 0.7\ntolerance:")
        assert run(configs, "rules", "validate").code == 0, "the judge's own file states one"


SCAN, FIRST = "  receipt_scan:\n", "    judges:\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "source"),
    [
        ("", "  ux_quality: 0.7\n", "", "configs/manifest-base.yaml"),
        (
            "",
            "  tool_use:\n",
            "  safety_judges:\n    judges: [grace, ux_quality]\n  tool_use:\n",
            "configs/manifest-base.yaml",
        ),
        ("  greeting:\n", FIRST, f"{FIRST}    - grace\n", "prompts/components/greeting.xml"),
        (SCAN, FIRST, f"{FIRST}    - grace\n", "specs/verticals/receipts/eval/judge-selection.yaml"),
        ("  receipts:\n", "    items: 60\n", "    itmes: 60\n", EXTENSION),
    ],
)
def test_pf9_fr7_a_remedy_names_the_source_of_the_manifest(
    configs: Path, before: str, old: str, new: str, source: str
) -> None:
    """PF-9 FR-7, §5.6: not the manifest that `manifest resolve` makes of it, unless that is kept by hand."""
    head, found, rest = (configs / MANIFEST).read_text().partition(before) if before else ("", "", "")
    whole = rest if before else (configs / MANIFEST).read_text()
    assert old in whole
    (configs / MANIFEST).write_text(head + found + whole.replace(old, new, 1))
    ran = run(configs, "manifest", "validate", "--json")
    assert ran.code == 1
    for error in ran.json["errors"]:
        assert error["file"] == (configs / MANIFEST).as_posix()
        assert error["fix"].endswith(
            f"write it in {configs.parent.as_posix()}/{source}, then run `rampgate manifest resolve`"
        )
    (configs / "manifest-base.yaml").unlink()
    assert not any("resolve" in error["fix"] for error in run(configs, "manifest", "validate", "--json").json["errors"])


def test_pf9_fr7_what_a_changed_source_breaks_is_mended_there(configs: Path) -> None:
    """PF-9 FR-7, §5.6: `resolve` finds it in a manifest that is not written yet, so that no one can change it."""
    edit(configs / "manifest-base.yaml", "  ux_quality: 0.7\n", "")
    (error,) = resolved(configs, "--json").json["errors"]
    assert f"write it in {(configs / 'manifest-base.yaml').as_posix()}, then run" in error["fix"]


def test_pf9_decision_18_a_category_of_the_platforms_is_changed_where_it_is_declared(configs: Path) -> None:
    """PF-9 FR-7, §5.6: in the component, or the manifest's base; the resolved manifest would lose the change."""
    edit(configs.parent / EXTENSION, "categories:\n", "categories:\n  greeting: {judges: [ux_quality]}\n")
    told = [
        error["fix"]
        for command in (("rules", "validate"), ("manifest", "validate", str(configs.parent / EXTENSION)))
        for error in run(configs, *command, "--json").json["errors"]
        if error["check"] == "category-not-redeclared"
    ]
    assert len(told) == 2
    assert all("the prompt component that declares it" in fix and MANIFEST not in fix for fix in told), told


@pytest.mark.parametrize("about", [[], [MANIFEST]])
def test_pc5_10_2_a_validation_of_the_manifest_leaves_its_metrics(
    configs: Path, tmp_path: Path, about: list[str]
) -> None:
    """As `rules validate` does: each finding of drift between manifest and rule files is counted (R-3)."""
    for file in (MANIFEST, "manifest-base.yaml"):
        edit(configs / file, "thresholds:", "thresholds:\n  no_such_judge: 0.5")
    left, paths = tmp_path / "manifest.prom", [str(configs / file) for file in about]
    assert run(configs, "manifest", "validate", *paths, "--metrics-file", str(left)).code == 1
    found = validate_sources(read_tree(configs), today()).findings
    (drift,) = re.findall(r"^eval_manifest_drift_total (\S+)$", left.read_text(), re.MULTILINE)
    assert "threshold-of-a-judge" in [one.check for one in found]
    assert float(drift) == sum(map(is_drift, found))
    assert "rampgate_" not in left.read_text()


def test_resolving_again_leaves_the_file_untouched(configs: Path) -> None:
    before = (configs / MANIFEST).stat()
    assert resolved(configs, "--json").json["outcome"] == "unchanged"
    after = (configs / MANIFEST).stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_changed_source_is_stale_for_check_and_written_by_resolve(configs: Path) -> None:
    edit(configs / "manifest-base.yaml", "data_integrity: 0.9", "data_integrity: 0.95")
    before = (configs / MANIFEST).read_text()
    stale = resolved(configs, "--check")
    assert stale.code == 1
    assert {"-  data_integrity: 0.9", "+  data_integrity: 0.95"} <= {line.strip() for line in stale.out.splitlines()}
    assert (configs / MANIFEST).read_text() == before

    validated = run(configs, "manifest", "validate", "--json")
    assert validated.code == 0
    assert sorted(one["field"] for one in validated.json["warnings"]) == sorted([*LACKS, "thresholds.data_integrity"])

    assert resolved(configs).code == 0
    assert yaml.safe_load((configs / MANIFEST).read_text())["thresholds"]["data_integrity"] == 0.95
    assert resolved(configs, "--check").code == 0


def test_pf9_ac7_the_categories_of_resolve_are_exactly_those_declared(configs: Path, tmp_path: Path) -> None:
    components = tmp_path / "prompts/components"
    (components / "greeting.xml").unlink()
    (components / "recipes.xml").write_text(
        '<component id="recipes" version="1"><capability category="recipe_search" archetype="conversation">'
        '<judges><judge id="response-quality"/></judges></capability><prompt>x</prompt></component>'
    )
    resolved(configs)  # greeting_quality is still in a composite, so that nothing is left without a use
    manifest = yaml.safe_load((configs / MANIFEST).read_text())
    declared = set(re.findall(r'category="(\w+)"', "".join(file.read_text() for file in components.glob("*.xml"))))
    extensions = (tmp_path / EXTENSION).parents[2].glob("*/eval/manifest-extension.yaml")
    own = {name for file in extensions for name in yaml.safe_load(file.read_text())["categories"]}
    assert set(manifest["categories"]) == declared | own
    assert "recipe_search" in declared
    assert "greeting" not in manifest["categories"]
    assert manifest["categories"]["recipe_search"]["judges"] == ["response_quality"]


def test_a_hand_edit_is_shown_and_not_overwritten(configs: Path) -> None:
    edit(configs / MANIFEST, "  ux_quality: 0.7", "  ux_quality: 0.6")
    edited = (configs / MANIFEST).read_bytes()
    for more in ([], ["--check"]):
        refused = resolved(configs, *more)
        assert refused.code == 1
        assert "thresholds.ux_quality" in refused.out
        assert "0.6 here; its sources give 0.7" in refused.out
        assert "--force" in refused.out
        assert (configs / MANIFEST).read_bytes() == edited
    assert resolved(configs, "--json").json["outcome"] == "edited"
    assert resolved(configs, "--check", "--force").code == 1
    assert (configs / MANIFEST).read_bytes() == edited
    assert resolved(configs, "--force").code == 0
    assert (configs / MANIFEST).read_bytes() == (HERE / "configs" / MANIFEST).read_bytes()


def test_a_merge_conflict_in_the_manifest_is_a_hand_edit(configs: Path) -> None:
    edit(configs / MANIFEST, "thresholds:\n", "<<<<<<< ours\n=======\n>>>>>>> theirs\nthresholds:\n")
    assert resolved(configs).code == 1
    assert resolved(configs, "--force").code == 0
    assert resolved(configs, "--check").code == 0


def test_line_ends_of_a_checkout_are_no_edit(configs: Path) -> None:
    path = configs / MANIFEST
    windows = path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(windows)
    assert resolved(configs, "--check").code == 0
    assert resolved(configs).code == 0
    assert path.read_bytes() == windows
    edit(configs / "manifest-base.yaml", "data_integrity: 0.9", "data_integrity: 0.95")
    assert resolved(configs, "--json").json["outcome"] == "written"


def test_a_manifest_that_is_not_there_is_written(configs: Path) -> None:
    shipped = (configs / MANIFEST).read_bytes()
    (configs / MANIFEST).unlink()
    assert resolved(configs, "--check", "--json").json["errors"][0]["check"] == "manifest-is-there"
    assert resolved(configs).code == 0
    assert (configs / MANIFEST).read_bytes() == shipped


def test_what_is_declared_wrongly_is_told_whole_and_nothing_is_written(configs: Path, tmp_path: Path) -> None:
    edit(configs / "manifest-base.yaml", "jailbreaking: true", "jailbreaking: 0.5")
    edit(tmp_path / EXTENSION, "inherits_from: general_qa", "inherits_from: genral_qa")
    (tmp_path / "prompts/components/greeting.xml").write_text("<component>")
    before = files(tmp_path)
    refused = resolved(configs, "--force", "--json")
    assert refused.code == 1
    assert refused.json["outcome"] == "unsound"
    told = {Path(one["file"]).name for one in refused.json["errors"]}
    assert {"manifest-extension.yaml", "greeting.xml"} <= told
    assert files(tmp_path) == before


def test_a_read_only_manifest_is_left_alone(configs: Path) -> None:
    edit(configs / "manifest-base.yaml", "data_integrity: 0.9", "data_integrity: 0.95")
    (configs / MANIFEST).chmod(0o444)
    before = (configs / MANIFEST).read_bytes()
    refused = resolved(configs)
    assert refused.code == 2
    assert "read-only" in refused.err
    assert MANIFEST in refused.err
    assert (configs / MANIFEST).read_bytes() == before
    assert not list(configs.glob(".*"))


def test_a_manifest_that_is_no_file_is_bad_input(configs: Path) -> None:
    (configs / MANIFEST).unlink()
    (configs / MANIFEST).mkdir()
    assert resolved(configs).code in (1, 2)
    (configs / MANIFEST).rmdir()
    (configs / MANIFEST).symlink_to("nowhere.yaml")
    assert resolved(configs).code == 2


def test_a_link_is_written_through_and_keeps_its_mode(configs: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.yaml"
    (configs / MANIFEST).rename(kept)
    kept.chmod(0o640)
    (configs / MANIFEST).symlink_to(kept)
    edit(configs / "manifest-base.yaml", "data_integrity: 0.9", "data_integrity: 0.95")
    assert resolved(configs).code == 0
    assert (configs / MANIFEST).is_symlink()
    assert "data_integrity: 0.95" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o640


def test_a_folder_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    for command in ("validate", "resolve", "show"):
        gone = run(tmp_path / "gone", "manifest", command)
        assert gone.code == 2
        assert "gone" in gone.err
        assert "--configs" in gone.err
        assert gone.out == ""


def test_pc5_ac6_a_violated_field_is_named_in_all_three_forms(configs: Path) -> None:
    edit(configs / MANIFEST, "  version: 7", "  version: seven")
    text = run(configs, "manifest", "validate")
    assert (text.code, "dataset.version" in text.out) == (1, True)
    document = run(configs, "manifest", "validate", "--json")
    [error] = document.json["errors"]
    assert (error["field"], error["severity"]) == ("dataset.version", "error")
    assert error["line"] == (configs / MANIFEST).read_text().splitlines().index("  version: seven") + 1
    github = run(configs, "manifest", "validate", "--report", "github")
    assert github.code == 1
    assert re.search(r"^::error file=.*evaluation_manifest\.yaml,line=\d+,col=3,title=", github.err, re.M)
    both = run(configs, "manifest", "validate", "--report", "github", "--json")
    assert json.loads(both.out) == document.json
    assert "::error " in both.err


def test_check_annotates_a_stale_manifest_as_an_error(configs: Path) -> None:
    edit(configs / "manifest-base.yaml", "data_integrity: 0.9", "data_integrity: 0.95")
    ran = resolved(configs, "--check", "--report", "github")
    assert ran.code == 1
    assert re.search(r"^::error file=\S*evaluation_manifest\.yaml,line=\d+", ran.err, re.M)
    validated = run(configs, "manifest", "validate", "--report", "github")
    assert (validated.code, "::warning " in validated.err) == (0, True)


def test_findings_of_what_the_manifest_is_made_of_are_its_own(configs: Path, tmp_path: Path) -> None:
    selection = tmp_path / "specs/verticals/receipts/eval/judge-selection.yaml"
    edit(selection, "ux_quality", "ux_qualty")
    edit(configs / "rules/ux_quality.yaml", "score_type: FLOAT", "score_type: FLOT")
    found = run(configs, "manifest", "validate", "--json")
    assert found.code == 1
    assert {Path(one["file"]).name for one in found.json["errors"]} == {"judge-selection.yaml"}
    one = run(configs, "manifest", "validate", str(selection), "--json")
    assert one.code == 1
    assert {one["file"] for one in one.json["errors"]} == {selection.as_posix()}
    extension = run(configs, "manifest", "validate", str(tmp_path / EXTENSION), "--json")
    assert extension.json["errors"] == []


def test_a_source_is_seen_with_the_registry_it_lies_beside(
    configs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(tmp_path / EXTENSION, "inherits_from: general_qa", "inherits_from: genral_qa")
    edit(configs / "manifest-base.yaml", "aggregate: min", "aggregate: least")
    monkeypatch.chdir(HERE)
    for path, field in ((tmp_path / EXTENSION, "inherits_from"), (configs / "manifest-base.yaml", "aggregate")):
        ran = CliRunner().invoke(app, ["manifest", "validate", str(path), "--json"])
        assert ran.exit_code == 1
        errors = json.loads(ran.stdout)["errors"]
        assert {one["file"] for one in errors} == {path.as_posix()}
        assert errors[0]["field"].endswith(field)


def test_pc5_r3_a_manifest_elsewhere_is_seen_with_the_registrys_rules(configs: Path, tmp_path: Path) -> None:
    other = tmp_path / "proposed.yaml"
    other.write_text((configs / MANIFEST).read_text().replace("- tool_compliance\n", "- tool_complience\n", 1))
    found = run(configs, "manifest", "validate", str(other), "--json")
    assert found.code == 1
    assert {one["file"] for one in found.json["errors"]} == {other.as_posix()}
    assert "did you mean 'tool_compliance'?" in found.json["errors"][0]["message"]
    assert run(configs, "manifest", "validate", str(tmp_path / "gone.yaml")).code == 2
    stranger = tmp_path / "manifest-extension.yaml"
    stranger.write_text("vertical: x\n")
    assert run(configs, "manifest", "validate", str(stranger)).code == 2


def test_show_tells_what_fires_and_each_threshold(configs: Path) -> None:
    found = run(configs, "manifest", "show", "--json").json
    assert found["dataset"] == {"name": "consumer-agent-eval", "version": 7, "items": 345, "project": "consumer-agent"}
    assert "jailbreaking" in found["categories"]["greeting"]["fires"]
    assert "jailbreaking" not in found["categories"]["greeting"]["judges"]
    assert len(found["judges"]) == 18
    assert "greeting_quality" in run(configs, "manifest", "show").out


def test_a_category_is_listed_for_a_vertical_as_eval_config_does(configs: Path) -> None:
    arguments = ("rules", "list", "--category", "receipt_scan", "--json")
    receipts = run(configs, *arguments, "--vertical", "receipts").json
    platform = run(configs, *arguments).json
    assert (receipts["vertical"], receipts["category"]) == ("receipts", "receipt_scan")
    thresholds = {whose: {one["id"]: one["thresholds"] for one in found["judges"]} for whose, found in
                  (("receipts", receipts), ("platform", platform))}  # fmt: skip
    assert thresholds["receipts"]["response_quality"]["pre_ramp"] == 3.2
    assert thresholds["platform"]["response_quality"]["pre_ramp"] == 3
    assert "3.2" in run(configs, *arguments[:-1], "--vertical", "receipts").out


@pytest.mark.parametrize(
    ("words", "hint"),
    [("manifest show --vertical recipts", "receipts"), ("rules list --category greting", "greeting")],
)
def test_show_names_the_near_miss(configs: Path, words: str, hint: str) -> None:
    ran = run(configs, *words.split())
    assert ran.code == 2
    assert hint in ran.err


def test_show_of_a_broken_registry_names_what_is_broken(configs: Path) -> None:
    edit(configs / "rules/ux_quality.yaml", "score_type: FLOAT", "score_type: FLOT")
    ran = run(configs, "manifest", "show", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert "ux_quality.yaml" in ran.err
    assert "score_type" in ran.err
