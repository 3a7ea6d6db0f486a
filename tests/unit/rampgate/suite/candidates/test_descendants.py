"""What a candidate has started ends with it, also what left its session (issue 32, line 18)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rampgate.suite.candidates.command import CommandCandidate
from rampgate.suite.candidates.entry_point import EntryPointCandidate
from rampgate.suite.candidates.processes import Started

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found by /proc")
LEAVES = """
import os, subprocess, sys, time

SLEEPS = [sys.executable, "-c", "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"]


def session(case):
    started(case["input"])
    return "done"


def orphan(case):
    if os.fork() == 0:
        started(case["input"])
        os._exit(0)
    os.wait()
    return "done"


def without_environment(case):
    started(case["input"], {})
    return "done"


def started(file, environment=None):
    nowhere = subprocess.DEVNULL
    subprocess.Popen(
        [*SLEEPS, file], start_new_session=True, env=environment, stdin=nowhere, stdout=nowhere, stderr=nowhere
    )
    while not os.path.exists(file) or not open(file).read():
        time.sleep(0.01)


if __name__ == "__main__":
    import json
    print(globals()[sys.argv[1]](json.load(sys.stdin)))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "leaves.py").write_text(LEAVES)
    yield tmp_path
    for file in tmp_path.glob("*.pid"):
        with suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGKILL)


def runs(file: Path) -> bool:
    """Whether the process goes on. One that no one waited for has ended."""
    try:
        stat = Path("/proc", file.read_text(), "stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


@pytest.mark.parametrize("way", ["session", "orphan"])
def test_what_a_command_left_in_a_session_of_its_own_ends_with_its_case(folder: Path, way: str) -> None:
    candidate, file = CommandCandidate((sys.executable, "leaves.py", way), folder), folder / "child.pid"
    assert asyncio.run(candidate.answer({"input": str(file)})) == {"output": "done\n"}
    assert not runs(file)


@pytest.mark.parametrize("way", ["session", "orphan", "without_environment"])
def test_what_an_entry_point_left_in_a_session_of_its_own_ends_with_its_process(folder: Path, way: str) -> None:
    file = folder / "child.pid"

    async def asked() -> None:
        candidate = EntryPointCandidate(f"leaves:{way}", folder, sys.executable)
        try:
            assert await candidate.answer({"input": str(file)}) == {"output": "done"}
            assert runs(file)
        finally:
            await candidate.close()

    asyncio.run(asked())
    assert not runs(file)


def test_what_a_process_has_started_is_looked_for_before_it_may_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no environment is found as a child alone, while its parent runs."""
    kill = Started.kill

    async def kill_later(started: Started) -> None:
        await asyncio.sleep(0.3)  # on a busy machine the process ends meanwhile, once its channel is closed
        await kill(started)

    monkeypatch.setattr(Started, "kill", kill_later)
    test_what_an_entry_point_left_in_a_session_of_its_own_ends_with_its_process(folder, "without_environment")


def test_what_other_cases_started_goes_on(folder: Path) -> None:
    """Each process has a mark of its own."""
    first, second = folder / "first.pid", folder / "second.pid"

    async def asked() -> None:
        candidate = EntryPointCandidate("leaves:orphan", folder, sys.executable)
        try:
            await asyncio.gather(*(candidate.answer({"input": str(file)}) for file in (first, second)))
            one, _ = candidate.waiting
            os.kill(one.pid, signal.SIGKILL)
            await asyncio.to_thread(one.wait)
            assert runs(first)
            assert runs(second)
            await candidate.answer({"input": str(folder / "third.pid")})
            assert runs(first) or runs(second)
        finally:
            await candidate.close()

    asyncio.run(asked())
    assert not runs(first)
    assert not runs(second)
