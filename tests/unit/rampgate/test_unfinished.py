"""Answers of a run that was killed: the next one with the same inputs goes on with them, and no other run does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rampgate.unfinished import LONGEST, Part, Unfinished, unfinished

INPUTS = ("drift", [("helpfulness", "v1")])


class Killed(Exception):
    pass


async def answered(work: Unfinished, *keys: str, part: str = "run 0") -> None:
    for key in keys:
        await work.part(part).put(key, key.upper().encode())


async def kept(work: Unfinished, *keys: str, part: str = "run 0") -> list[bytes | None]:
    return await work.part(part).get_many(keys)


async def killed(file: Path, *keys: str, at: float = 1_000.0) -> None:
    async def run() -> None:
        with unfinished(file, *INPUTS, now=lambda: at) as work:
            await answered(work, *keys)
            raise Killed

    with pytest.raises(Killed):
        await run()


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_killed_run_goes_on_by_parts_and_an_ended_one_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "drift-baseline.jsonl"
    await killed(file, "a", "b")
    with unfinished(file, *INPUTS, now=lambda: 1_100.0) as work:
        assert await kept(work, "a", "b", "c") == [b"A", b"B", None]
        assert await kept(work, "a", part="run 1") == [None], "each run reaches the model"
        assert await work.part("run 0").put("a", b"another") == b"A", "the first answer stands"
    assert files(tmp_path) == []
    with unfinished(file, *INPUTS, now=lambda: 1_200.0) as work:
        assert await kept(work, "a") == [None]


async def test_other_inputs_and_half_a_day_later_ask_anew(tmp_path: Path) -> None:
    file = tmp_path / "drift-baseline.jsonl"
    await killed(file, "a")
    with unfinished(file, "capture", now=lambda: 1_001.0) as work:
        assert await kept(work, "a") == [None]
    for later in (1_001.0 + LONGEST, 999.0):
        await killed(file, "a")
        with unfinished(file, *INPUTS, now=lambda at=later: at) as work:
            assert await kept(work, "a") == [None]


async def test_a_line_that_the_kill_cut_off_is_asked_again(tmp_path: Path) -> None:
    file = tmp_path / "drift-baseline.jsonl"
    await killed(file, "a", "b")
    (left,) = tmp_path.iterdir()
    left.write_bytes(left.read_bytes()[:-7])
    await killed(file, "b", "c", at=1_001.0)
    with unfinished(file, *INPUTS, now=lambda: 1_002.0) as work:
        assert await kept(work, "a", "b", "c") == [b"A", b"B", b"C"]


async def test_two_runs_at_once_do_not_share_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each would be half of the other's, and an unchanged judge would look too much like itself."""
    file = tmp_path / "drift-baseline.jsonl"
    with unfinished(file, *INPUTS) as one:
        await answered(one, "a")
        with unfinished(file, *INPUTS) as other:
            assert await kept(other, "a") == [None]
        assert "another run" in capsys.readouterr().err
        assert len(files(tmp_path)) == 1


async def test_where_nothing_can_be_written_the_run_goes_on_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with unfinished(tmp_path / "no folder" / "x.jsonl", *INPUTS) as work:
        await answered(work, "a")
    assert "begins again" in capsys.readouterr().err


async def test_a_failure_before_any_answer_leaves_no_file(tmp_path: Path) -> None:
    await killed(tmp_path / "drift-baseline.jsonl")
    assert files(tmp_path) == []


async def test_on_a_full_disk_the_run_goes_on_and_says_once_that_no_more_is_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = os.open("/dev/full", os.O_WRONLY)
    part = Part("run 0", file)
    for key in "abc":
        await part.put(key, key.encode())
    os.close(file)
    assert await part.get_many(["a", "b", "c"]) == [b"a", b"b", b"c"], "this run asks nothing twice"
    told = capsys.readouterr().err
    assert told.count("no more is kept") == 1
    assert "No space left on device" in told
