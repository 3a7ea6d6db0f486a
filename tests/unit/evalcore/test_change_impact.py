"""Who consumes what a change touches, and whom CI asks for a review (PF-9 §5.6, Decisions 17 and 18)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from evalcore.change_impact import Touched, Version, affected_verticals, touched
from evalcore.manifest.discovery import components
from evalcore.registry.disk import read_tree
from evalcore.registry.files import COMPONENTS, Tree, assemble
from tests.root import ROOT
from tests.unit.rampgate.registry.git_folders import committed, git

SCRIPT = ROOT / "scripts" / "change_impact.py"
DAY = date(2026, 11, 21)
EXTENSION = "../specs/verticals/shopping/eval/manifest-extension.yaml"
SELECTION = "../specs/verticals/shopping/eval/judge-selection.yaml"
SHOPPING = {
    EXTENSION: b"vertical: shopping\ncategories:\n  cart_advice: {inherits_from: shopping_list}\n  greeting: {}\n",
    SELECTION: b"vertical: shopping\ncategories:\n  cart_advice: {quality_judges: [ux_quality]}\n",
}


EVERYBODY = ["receipts", "remediation", "rewards_assistant", "shopping"]


@pytest.fixture(scope="module")
def shipped() -> Tree:
    tree = read_tree(ROOT / "configs")
    return Tree(Path("configs"), tree.files)


def version(tree: Tree) -> Version:
    return Version(assemble(tree, DAY)[0], components(tree.below(COMPONENTS, ".xml"))[0], "configs")


def with_files(tree: Tree, files: dict[str, bytes]) -> Tree:
    return Tree(tree.root, {**tree.files, **files})


def asked(tree: Tree, *files: str, after: Tree | None = None) -> list[str]:
    before = version(tree)
    return list(affected_verticals(touched(files, before, version(after) if after else None), before))


def edited(tree: Tree, name: str, old: str, new: str) -> Tree:
    text = tree.files[name].decode()
    assert old in text
    return tree.with_file(name, text.replace(old, new).encode())


def test_a_category_asks_those_who_declare_reuse_or_inherit_it(shipped: Tree) -> None:
    before = version(with_files(shipped, SHOPPING))

    def of(category: str) -> list[str]:
        return list(affected_verticals(Touched(frozenset({category})), before))

    assert of("general_qa") == ["receipts", "rewards_assistant"]
    assert of("shopping_list") == ["rewards_assistant", "shopping"]
    assert of("greeting") == ["rewards_assistant", "shopping"]
    assert of("receipt_scan") == ["receipts"]
    assert of("cart_advice") == ["shopping"]
    assert of("nobody_has_it") == []


def test_a_judge_asks_those_whose_categories_it_fires_on(shipped: Tree) -> None:
    tree = with_files(shipped, SHOPPING)
    assert asked(tree, "configs/rules/greeting_quality.yaml") == ["rewards_assistant", "shopping"]
    assert asked(tree, "configs/rules/product-routing.yaml") == ["rewards_assistant"]


@pytest.mark.parametrize("judge", ["jailbreaking", "sensitive_topics", "data_integrity"])
def test_safety_and_global_judges_ask_everybody(shipped: Tree, judge: str) -> None:
    tree = with_files(shipped, SHOPPING)
    assert asked(tree, f"configs/rules/{judge}.yaml") == EVERYBODY


def test_a_judge_asks_those_who_set_something_for_it(shipped: Tree) -> None:
    own = shipped.files["rules/receipts/ux_quality.yaml"]
    tree = with_files(shipped, {**SHOPPING, "rules/shopping/privacy_location.yaml": own})
    assert "shopping" in asked(tree, "configs/rules/privacy_location.yaml")


def test_what_a_vertical_sets_for_itself_asks_nobody_else(shipped: Tree) -> None:
    """PF-9 AC-8."""
    tree = with_files(shipped, SHOPPING)
    assert asked(tree, "configs/rules/receipts/ux_quality.yaml", "configs/verticals/receipts.yaml") == ["receipts"]
    assert asked(tree, "specs/verticals/receipts/eval/judge-selection.yaml") == ["receipts"]


def test_a_component_asks_by_the_categories_it_declares_before_and_after(shipped: Tree) -> None:
    name, shown = "../prompts/components/greeting.xml", "prompts/components/greeting.xml"
    tree = with_files(shipped, SHOPPING)
    assert asked(tree, shown) == ["rewards_assistant", "shopping"]
    after = edited(tree, name, 'category="greeting"', 'category="general_qa"')
    assert asked(tree, shown, after=after) == ["receipts", "rewards_assistant", "shopping"]


def test_of_a_manifest_only_what_differs_asks(shipped: Tree) -> None:
    tree = with_files(shipped, SHOPPING)
    manifest = "configs/evaluation_manifest.yaml"
    assert asked(tree, manifest) == EVERYBODY
    assert asked(tree, manifest, after=tree) == []
    threshold = edited(tree, "evaluation_manifest.yaml", "greeting_quality: 4", "greeting_quality: 3")
    assert asked(tree, manifest, after=threshold) == ["rewards_assistant", "shopping"]
    shared = edited(tree, "evaluation_manifest.yaml", "version: 7", "version: 8")
    assert asked(tree, manifest, after=shared) == EVERYBODY


def test_a_new_vertical_that_joins_an_archetype_asks_nobody_else(shipped: Tree) -> None:
    """PF-9 AC-5: onboarding is no business of the others."""
    joined = edited(
        shipped, "evaluation_manifest.yaml", "archetypes:\n  conversation:\n", "archetypes:\n  conversation:\n  - new\n"
    )
    after = with_files(joined, SHOPPING)
    files = [after.shown(name) for name in (EXTENSION, SELECTION)]
    assert "receipts" not in asked(shipped, "configs/evaluation_manifest.yaml", files[1], after=after)


OVERRIDE = """overrides:
- {judge: JUDGE, milestone: pre_ramp, enforcement: warn, pull_request: '#1', justification: why,
   approved_on: 2026-11-20, expires: 2026-12-20MORE}
"""


def test_an_exception_asks_those_it_holds_for(shipped: Tree) -> None:
    tree = with_files(shipped, SHOPPING)

    def excepted(judge: str, more: str = "") -> Tree:
        content = OVERRIDE.replace("JUDGE", judge).replace("MORE", more).encode()
        return tree.with_file("enforcement-overrides.yaml", content)

    file = "configs/enforcement-overrides.yaml"
    assert asked(tree, file, after=excepted("greeting-quality")) == ["rewards_assistant", "shopping"]
    assert asked(tree, file, after=excepted("ux_quality", ", vertical: receipts")) == ["receipts"]
    assert asked(excepted("greeting_quality"), file) == ["rewards_assistant", "shopping"]
    assert asked(excepted("greeting_quality"), file, after=excepted("greeting_quality")) == []


def test_other_files_ask_nobody(shipped: Tree) -> None:
    assert asked(shipped, "README.md", "docs/registry.md", "evalcore/change_impact.py", "rules/x.yaml") == []


def run(folder: Path, *arguments: str) -> Any:
    command = [sys.executable, str(SCRIPT), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_ci_reads_a_proposed_commit_without_checking_it_out(tmp_path: Path) -> None:
    for folder in ("configs", "prompts", "specs", ".github"):
        shutil.copytree(ROOT / folder, tmp_path / folder)

    committed(tmp_path)
    git(tmp_path, "checkout", "--quiet", "-b", "proposed")
    component = tmp_path / "prompts" / "components" / "general_qa.xml"
    component.write_text(component.read_text().replace('<judge id="ux_quality"/>', ""))
    committed(tmp_path)
    git(tmp_path, "checkout", "--quiet", "main")
    answer = run(tmp_path, "--proposed", "proposed", "--json")
    assert answer == {
        "verticals": [
            {"vertical": "receipts", "owners": ["@rampgate/receipts"], "because": ["category general_qa"]},
            {
                "vertical": "rewards_assistant",
                "owners": ["@rampgate/rewards-assistant"],
                "because": ["category general_qa"],
            },
        ],
        "owners": ["@rampgate/receipts", "@rampgate/rewards-assistant"],
    }
    assert run(tmp_path, "--proposed", "main", "--json") == {"verticals": [], "owners": []}
    assert run(tmp_path, "--category", "receipt_scan", "--json")["owners"] == ["@rampgate/receipts"]


def test_a_commit_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True, timeout=60)
    command = [sys.executable, str(SCRIPT), "--proposed", "no-such-commit", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "no-such-commit" in done.stderr
    assert done.stdout == ""
