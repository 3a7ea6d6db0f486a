"""A file of the registry is written whole or not at all, and a new one never over one that is there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rampgate.console import Failure
from rampgate.files import append_file, create_files, replace_file
from tests.root import ROOT
from tests.unit.rampgate.checks.score_commands import alone, ran, scored
from tests.unit.rampgate.ci_gate.gate_rig import jsonl


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
    with pytest.raises(Failure, match=r"m\.yaml: can't be written: No space"):
        replace_file(path, "after")
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["m.yaml"]


def test_a_file_that_is_not_there_gets_the_usual_mode(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    replace_file(tmp_path / "m.yaml", "text")
    assert (tmp_path / "m.yaml").stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_regular_file_is_refused_and_stays_what_it_is(tmp_path: Path, linked: bool) -> None:
    """A rename would put a file in the place of a FIFO, or of the machine's null device; a link to one is one."""
    pipe = path = tmp_path / "pipe"
    os.mkfifo(pipe)
    if linked:
        path = tmp_path / "link"
        path.symlink_to(pipe)
    for write in (replace_file, append_file):
        with pytest.raises(Failure, match="is no regular file"):
            write(path, b"text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert {file.name for file in tmp_path.iterdir()} == {pipe.name, path.name}


@pytest.mark.parametrize("words", [("--report", "pipe.html"), ("--report", "pipe.md")])
def test_a_command_refuses_to_write_to_a_fifo_and_neither_waits_for_a_reader_nor_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, str]
) -> None:
    alone(tmp_path, monkeypatch)
    jsonl(tmp_path / "then.jsonl", *scored("helpful", [1, 2, 3, 4, 5] * 20))
    pipe = tmp_path / words[1]
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        code, _, err = ran("check", "drift", "then.jsonl", "then.jsonl", words[0], words[1])
    finally:
        os.close(reader)
    assert code == 2
    assert "regular file" in err
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_metrics_of_a_command_do_not_replace_a_fifo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)
    pipe = tmp_path / "m.prom"
    os.mkfifo(pipe)
    code, _, err = ran("check", "cadence", "--configs", str(ROOT / "configs"), "--metrics-file", str(pipe))
    assert (code, "is no regular file" in err) == (2, True), err
    assert stat.S_ISFIFO(pipe.stat().st_mode)
