"""Rolling back takes earlier files from history, refuses what would lose work, and rewrites nothing (PC5 AC-7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rampgate.registry.rule_history import NoHistory, changed_since, restore
from tests.unit.rampgate.registry.git_folders import committed, git


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
    committed(tmp_path)
    for name in ("rules/a", "rules/receipts/a", "rules/new", "evaluation_manifest", "other"):
        (configs / f"{name}.yaml").write_text("bad")
    committed(tmp_path)
    return configs


def back(root: Path, rev: str, judge: str = "a") -> list[str]:
    files = changed_since(root, rev, judge)
    restore(root, rev, files)
    return [file.as_posix() for file in files]


@pytest.mark.parametrize("judge", ["a", "A"])
def test_a_judges_files_come_back_in_either_spelling_and_nothing_else(root: Path, judge: str) -> None:
    head = git(root, "rev-parse", "HEAD")
    assert back(root, "HEAD~1", judge) == ["rules/a.yaml", "rules/receipts/a.yaml"]
    assert {(root / f"rules/{name}.yaml").read_text() for name in ("a", "receipts/a")} == {"good"}
    assert {(root / f"{name}.yaml").read_text() for name in ("evaluation_manifest", "other", "rules/new")} == {"bad"}
    assert git(root, "rev-parse", "HEAD") == head
    assert back(root, "HEAD~1", judge) == []


def test_a_judge_that_was_not_there_goes(root: Path) -> None:
    assert back(root, "HEAD~1", "new") == ["rules/new.yaml"]
    assert not (root / "rules/new.yaml").exists()


def test_a_change_that_no_commit_has_is_not_lost(root: Path) -> None:
    (root / "rules/a.yaml").write_text("work of an afternoon")
    with pytest.raises(NoHistory, match=r"rules/a\.yaml.*not committed"):
        back(root, "HEAD~1")
    assert (root / "rules/a.yaml").read_text() == "work of an afternoon"
    assert (root / "rules/receipts/a.yaml").read_text() == "bad"


def test_a_new_file_that_no_commit_has_is_not_lost(root: Path) -> None:
    (root / "rules/fresh.yaml").write_text("x")
    with pytest.raises(NoHistory, match="fresh"):
        back(root, "HEAD~1", "fresh")
    assert (root / "rules/fresh.yaml").exists()


def test_nothing_changed_is_nothing_to_do(root: Path) -> None:
    assert back(root, "HEAD") == back(root, "HEAD~1", "b") == []


@pytest.mark.parametrize("rev", ["nowhere", "--output=x", "", "HEAD~9"])
def test_a_version_that_is_none_is_refused(root: Path, rev: str) -> None:
    with pytest.raises(NoHistory):
        back(root, rev)
    assert (root / "rules/a.yaml").read_text() == "bad"


def test_a_folder_without_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoHistory):
        back(tmp_path, "HEAD")
