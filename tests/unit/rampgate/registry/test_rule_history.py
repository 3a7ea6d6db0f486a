"""Rolling back takes earlier files from history, refuses what would lose work, and rewrites nothing (PC5 AC-7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rampgate.registry.rule_history import NoHistory, changed_since, restore
from tests.unit.rampgate.registry.git_folders import git


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two commits: the second breaks judge a, centrally and for receipts, changes the manifest and adds judge new."""
    configs = tmp_path / "configs"
    (configs / "rules/receipts").mkdir(parents=True)
    for name, text in {"a": "good", "b": "same"}.items():
        (configs / f"rules/{name}.yaml").write_text(text)
    (configs / "rules/receipts/a.yaml").write_text("good")
    (configs / "evaluation_manifest.yaml").write_text("one")
    (configs / "other.yaml").write_text("one")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "good")
    for name in ("rules/a", "rules/receipts/a", "rules/new", "evaluation_manifest", "other"):
        (configs / f"{name}.yaml").write_text("bad")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "bad")
    return configs


def test_everything_of_the_registry_comes_back_and_nothing_else(root: Path) -> None:
    head = git(root, "rev-parse", "HEAD")
    changed = restore(root, "HEAD~1")
    names = ["evaluation_manifest.yaml", "rules/a.yaml", "rules/new.yaml", "rules/receipts/a.yaml"]
    assert [file.as_posix() for file in changed] == names
    assert (root / "rules/a.yaml").read_text() == "good"
    assert (root / "rules/receipts/a.yaml").read_text() == "good"
    assert (root / "evaluation_manifest.yaml").read_text() == "one"
    assert not (root / "rules/new.yaml").exists()
    assert (root / "other.yaml").read_text() == "bad"
    assert git(root, "rev-parse", "HEAD") == head
    assert restore(root, "HEAD~1") == []


def test_one_judge_alone_comes_back_in_either_spelling(root: Path) -> None:
    changed = restore(root, "HEAD~1", ["A"])
    assert [file.as_posix() for file in changed] == ["rules/a.yaml", "rules/receipts/a.yaml"]
    assert (root / "evaluation_manifest.yaml").read_text() == "bad"


def test_a_change_that_no_commit_has_is_not_lost(root: Path) -> None:
    (root / "rules/a.yaml").write_text("work of an afternoon")
    with pytest.raises(NoHistory, match=r"rules/a\.yaml.*not committed"):
        restore(root, "HEAD~1")
    assert (root / "rules/a.yaml").read_text() == "work of an afternoon"
    assert (root / "evaluation_manifest.yaml").read_text() == "bad"


def test_a_new_file_that_no_commit_has_is_not_lost(root: Path) -> None:
    (root / "rules/fresh.yaml").write_text("x")
    with pytest.raises(NoHistory, match="fresh"):
        restore(root, "HEAD~1")
    assert (root / "rules/fresh.yaml").exists()


def test_nothing_changed_is_nothing_to_do(root: Path) -> None:
    assert restore(root, "HEAD") == []
    assert changed_since(root, "HEAD~1", ["b"]) == []


@pytest.mark.parametrize("rev", ["nowhere", "--output=x", "", "HEAD~9"])
def test_a_version_that_is_none_is_refused(root: Path, rev: str) -> None:
    with pytest.raises(NoHistory):
        restore(root, rev)
    assert (root / "rules/a.yaml").read_text() == "bad"


def test_a_folder_without_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoHistory):
        restore(tmp_path, "HEAD")
