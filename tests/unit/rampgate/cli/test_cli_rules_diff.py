"""`rampgate rules diff`: what changed since a version in git (PC5 FR-14, §5.7; PF-9 §5.10)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rampgate.registry.rule_history import tree_at
from tests.unit.rampgate.cli.registry_copies import copied, edit, run
from tests.unit.rampgate.registry.git_folders import committed

QUALITY = "rules/response_quality.yaml"


pytestmark = pytest.mark.usefixtures("a_fixed_day")


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    return copied(tmp_path)


@pytest.fixture
def history(configs: Path) -> Path:
    """The shipped registry as the one commit of a repository."""
    committed(configs.parent)
    return configs


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
    committed(configs)
    edit(configs / QUALITY, "tolerance: 0.2", "tolerance: 0.1")
    assert b"tolerance: 0.2" in tree_at(configs, "HEAD").files[QUALITY]
    ran = run(configs, "rules", "diff", "--json")
    assert {one["field"] for one in ran.json["changes"]} == {"tolerance"}
