"""CODEOWNERS as GitHub reads it, and what this repository's says (PF-9 Decision 18a; PC5 §5.6, FR-12)."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore.registry.disk import read_tree
from rampgate.registry.codeowners import CodeOwners
from tests.root import ROOT

PLATFORM = ("@rampgate/eval-platform",)


@pytest.mark.parametrize(
    ("pattern", "matched", "not_matched"),
    [
        ("*", ["a", "a/b.py"], []),
        ("*.js", ["a.js", "b/c/a.js"], ["a.jsx"]),
        ("/build/logs/", ["build/logs/a", "build/logs/b/c"], ["x/build/logs/a", "build/logs"]),
        ("docs/*", ["docs/getting-started.md"], ["docs/build-app/troubleshooting.md", "x/docs/a"]),
        ("apps/", ["apps/a", "x/apps/a/b"], ["apps"]),
        ("/docs/", ["docs/a", "docs/b/c"], ["x/docs/a"]),
        ("/scripts", ["scripts", "scripts/a/b"], ["x/scripts"]),
        ("**/logs", ["logs/a", "build/logs/a", "deeply/nested/logs"], ["logs.txt"]),
        ("/a/**/z", ["a/z", "a/b/z", "a/b/c/z/y"], ["a/bz"]),
        ("/requirements*.lock", ["requirements-dev.lock"], ["x/requirements.lock", "requirements-dev.lock.txt"]),
        ("a?.py", ["ab.py", "x/ab.py"], ["a.py", "a/.py"]),
        ("/a.b", ["a.b"], ["aXb"]),
    ],
)
def test_a_pattern_matches_what_github_says_it_does(pattern: str, matched: list[str], not_matched: list[str]) -> None:
    owners = CodeOwners(f"{pattern} @o")
    assert [path for path in matched if owners.owners(path) != ("@o",)] == []
    assert [path for path in not_matched if owners.owners(path)] == []


def test_the_last_match_wins_also_when_it_names_nobody() -> None:
    owners = CodeOwners("* @all # everybody\n\n# more\n/a/ @team user@example.com\n/a/b\n")
    assert owners.owners("x") == ("@all",)
    assert owners.owners("a/x") == ("@team", "user@example.com")
    assert owners.owners("a/b/x") == ()


def test_it_is_looked_for_where_github_does(tmp_path: Path) -> None:
    assert CodeOwners.of(tmp_path).owners("x") == ()
    (tmp_path / "CODEOWNERS").write_text("* @top")
    assert CodeOwners.of(tmp_path).owners("x") == ("@top",)
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "CODEOWNERS").write_text("* @first")
    assert CodeOwners.of(tmp_path).owners("x") == ("@first",)


@pytest.mark.parametrize(
    "path",
    [
        "configs/rules/response_quality.yaml",
        "configs/rules/a_new_judge.yaml",
        "configs/manifest-base.yaml",
        "configs/evaluation_manifest.yaml",
        "prompts/components/greeting.xml",
    ],
)
def test_the_platform_reviews_what_all_verticals_share(path: str) -> None:
    assert CodeOwners.of(ROOT).owners(path) == PLATFORM


def test_exceptions_are_signed_off_by_a_spec_owner() -> None:
    """PC5 §5.2: a pull request's label and a spec owner's sign-off."""
    assert CodeOwners.of(ROOT).owners("configs/enforcement-overrides.yaml") == ("@rampgate/spec-owners",)


def test_every_vertical_owns_its_files() -> None:
    owners = CodeOwners.of(ROOT)
    tree = read_tree(ROOT / "configs")
    names = [Path(name) for name in tree.files if not name.endswith(".xml")]
    of_verticals = [name for name in names if "verticals" in name.parts or len(name.parts) == 3]
    assert len(of_verticals) >= 6
    for name in of_verticals:
        path = Path(tree.shown(name.as_posix())).relative_to(ROOT).as_posix()
        line = owners.line(path)
        vertical = name.stem if name.parent.name == "verticals" else name.parts[-3 if "eval" in name.parts else -2]
        assert line is not None
        assert vertical in line.pattern, f"give {path} a line of its own"
        assert line.owners
        assert line.owners != PLATFORM
