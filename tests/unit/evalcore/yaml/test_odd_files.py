"""What lies in a registry's folders and is no file to be read: it is told by name, and reading never hangs or fails."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from evalcore.validation import validate_root, validate_rule_file
from evalcore.yaml.findings import Finding
from tests.shipped import LACKS

TODAY = date(2026, 11, 21)


def circle(path: Path) -> None:
    other = path.with_name("other.yaml")
    path.symlink_to(other)
    other.symlink_to(path)


ODD: dict[str, Callable[[Path], None]] = {
    "a link in a circle": circle,
    "a link that leads nowhere": lambda path: path.symlink_to("nowhere.yaml"),
    "a pipe": os.mkfifo,
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("configs", "specs", "prompts"):
        shutil.copytree(name, tmp_path / name)
    return tmp_path / "configs"


def told(root: Path) -> list[Finding]:
    return [finding for finding in validate_root(root, TODAY).findings if finding.check == "file-not-readable"]


@pytest.mark.timeout(10)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("folder", ["rules", "rules/receipts", "verticals"])
def test_what_is_no_file_is_told_by_name_and_nothing_hangs(root: Path, odd: str, folder: str) -> None:
    path = root / folder / "odd.yaml"
    ODD[odd](path)
    (finding, *_) = [one for one in told(root) if one.file == path.as_posix()]
    assert finding.fix
    assert finding.clause
    with pytest.raises(OSError):  # noqa: PT011  # which one is the system's matter
        validate_rule_file(path, today=TODAY)


def test_a_manifest_that_cannot_be_read_is_told_and_is_not_called_missing(root: Path) -> None:
    (root / "evaluation_manifest.yaml").unlink()
    circle(root / "evaluation_manifest.yaml")
    assert "evaluation_manifest.yaml" in {Path(finding.file).name for finding in told(root)}
    assert "manifest-is-there" not in {finding.check for finding in validate_root(root, TODAY).findings}


@pytest.mark.parametrize(
    "name", ["rules/odd.yaml", "rules/more", "verticals/odd.yaml", "../specs/verticals/receipts/eval/agreement.yaml"]
)
def test_a_link_out_of_the_registry_is_refused_and_nothing_behind_it_is_quoted(
    root: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """In a pull request it could lead to any file of the machine that checks it."""
    away = tmp_path_factory.mktemp("away")
    (away / "secret.yaml").write_text("password: hunter2\n  - [\n")
    link = root / name
    link.unlink(missing_ok=True)
    link.symlink_to(away if name == "rules/more" else away / "secret.yaml")
    found = validate_root(root, TODAY)
    assert not found.valid
    assert [one.message for one in found.findings if "leads out of the registry" in one.message]
    assert "hunter2" not in str(found)


def test_a_folder_that_leads_back_to_itself_ends(root: Path) -> None:
    (root / "rules" / "again").symlink_to(root / "rules")
    assert not validate_root(root, TODAY).valid


def test_what_editors_leave_behind_is_no_file_of_ours(root: Path) -> None:
    for name in (".ux_quality.yaml.swp", "ux_quality.yaml~", "#ux_quality.yaml#", "README.md", ".DS_Store"):
        (root / "rules" / name).write_bytes(b"\x00")
    assert [one.field for one in validate_root(root, TODAY).findings] == [*LACKS]


def test_a_registry_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="no such folder"):
        validate_root(tmp_path / "nowhere")
