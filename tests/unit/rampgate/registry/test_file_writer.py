"""A file of the registry is written whole or not at all, and a new one never over one that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rampgate.registry.file_writer import create_files, replace_file


def test_a_new_file_is_not_written_over_one_that_appeared_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("theirs")
    with pytest.raises(FileExistsError):
        create_files({tmp_path / "a": "ours", tmp_path / "b": "ours"})
    assert (tmp_path / "b").read_text() == "theirs"
    assert not (tmp_path / "a").exists()


def test_folders_are_made_and_line_ends_kept(tmp_path: Path) -> None:
    create_files({tmp_path / "deep/down/a": "é\n"})
    assert (tmp_path / "deep/down/a").read_bytes() == "é\n".encode()


def test_a_crash_while_writing_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("before")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, "after")
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["m.yaml"]


def test_a_file_that_is_not_there_gets_the_usual_mode(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    replace_file(tmp_path / "m.yaml", "text")
    assert (tmp_path / "m.yaml").stat().st_mode == usual.stat().st_mode
