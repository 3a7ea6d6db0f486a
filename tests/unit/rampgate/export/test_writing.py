"""An export to a file that is killed goes on where it was, and its records tell of what the file has (issue 13)."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from rampgate.export.writing import to_file
from tests.fork_server import ran


def test_pf9_ac12_an_export_on_a_full_disk_ends_with_an_error_and_goes_on_where_there_is_room(
    tmp_path: Path,
) -> None:
    """Wherever the disk is full: no line without a record, none doubled or missing, and the same bytes in the end."""
    told = ran(tmp_path, module="tests.unit.rampgate.export.full_disk")
    assert told.returncode == 0, told.stderr
    *runs, whole = [json.loads(line) for line in told.stdout.splitlines()]
    assert (whole["said"], whole["full"]["final"]) == ("", True)
    assert len(runs) > 10
    for run in runs:
        assert run["said"] == "File too large", run
        assert (run["full"]["final"], run["full"]["uncovered"]) == (False, 0), run
        end = run["end"]
        assert (run["again"], end["final"], end["uncovered"], end["hidden"]) == (0, True, 0, []), run
        assert (end["sha256"], end["records"]) == (whole["end"]["sha256"], whole["end"]["records"]), run
        assert end["sent"] - end["records"] in (0, 1), "only the page on its way is read, and recorded, twice"
    assert any(run["full"]["lines"] for run in runs), "some keep what they have"


class Failed(Exception):
    pass


def test_pf9_ac12_an_export_killed_at_any_step_ends_with_the_same_lines_and_records_of_them(
    tmp_path: Path,
) -> None:
    """No line is doubled or missing; at no time is there one without a record; of each page the last record counts."""
    told = ran(tmp_path, module="tests.unit.rampgate.export.killed")
    assert told.returncode == 0, told.stderr
    not_killed, *runs = [json.loads(line) for line in told.stdout.splitlines()]
    assert not_killed["code"] == 0
    whole = not_killed["end"]
    assert (whole["lines"], whole["records"], whole["uncovered"], whole["hidden"]) == (14, 4, 0, [])
    assert len(runs) > 30
    for run in runs:
        assert run["code"] == (-signal.SIGKILL if run is not runs[-1] else 0), run
        assert run["killed"]["uncovered"] == 0, run
        end = run["end"]
        assert (run["again"], end["uncovered"], end["hidden"]) == (0, 0, []), run
        assert (end["sha256"], end["records"]) == (whole["sha256"], whole["records"]), run
        if not run["killed"]["final"]:
            assert end["names"] == 1, run
            assert end["sent"] - end["records"] in (0, 1), "only the page on its way is read, and recorded, twice"


async def written(file: Path, *lines: dict[str, str], inputs: str = "same", fails: bool = False) -> tuple[int, str]:
    """How many lines there were already, and the hash at the end."""
    async with to_file(file, inputs) as target:
        before = target.lines
        for line in lines:
            await target.add([line], after=line["response_id"])
        if fails:
            raise Failed
    return before, target.sha256


A, B = {"response_id": "a"}, {"response_id": "b"}


async def test_the_same_export_goes_on_after_a_failure_and_another_one_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out.jsonl"
    with pytest.raises(Failed):
        await written(file, A, fails=True)
    assert not file.exists()
    assert "1 lines are kept" in capsys.readouterr().err
    assert (await written(file, B, inputs="other"))[0] == 0
    assert file.read_text() == '{"response_id": "b"}\n'
    assert (await written(file, B))[0] == 1
    assert file.read_text() == '{"response_id": "a"}\n{"response_id": "b"}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


async def test_lines_that_are_not_what_the_note_says_are_no_beginning(tmp_path: Path) -> None:
    """A power cut may leave zeros where a page was; a file that was moved away is no page either."""
    file = tmp_path / "out.jsonl"
    for content in (b"", b'{"response_id": "x"}\n', b"\0" * 21):
        with pytest.raises(Failed):
            await written(file, A, fails=True)
        (held,) = tmp_path.glob("*.lines.unfinished")
        held.write_bytes(content)
        assert (await written(file, B))[0] == 0
        assert file.read_text() == '{"response_id": "b"}\n'


async def test_a_failure_before_any_line_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Failed):
        await written(tmp_path / "out.jsonl", fails=True)
    assert list(tmp_path.iterdir()) == []


async def test_lines_are_kept_where_their_owner_alone_reads_them(tmp_path: Path) -> None:
    async with to_file(tmp_path / "out.jsonl") as target:
        await target.add([A])
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
