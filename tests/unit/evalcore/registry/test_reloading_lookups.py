"""Lookups while the files are looked at again (PC5 NFR-1): none waits for a file, and none sees half a version. How a
registry's files are read: once for all who wait, again while they change, and not checked again unchanged."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalcore import reloading
from evalcore.registry import disk
from evalcore.registry.files import Tree
from tests.unit.evalcore.registry.registry_disk import rewritten, written
from tests.unit.evalcore.registry.registry_reloading import CENTRAL, alive


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path)


def wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until, "it never came to hold"
        time.sleep(0.002)


def test_the_files_are_looked_at_again_when_their_time_is_up(root: Path) -> None:
    now = [100.0]
    registry = alive(root, 60.0, clock=lambda: now[0])
    registry.current()
    rewritten(root / CENTRAL, "threshold: 4", "threshold: 3")
    now[0] = 159.9
    assert registry.current().threshold("helpfulness") == 4
    assert registry._looking.acquire(blocking=False), "no one looks"
    registry._looking.release()
    now[0] = 160.1
    assert registry.current().threshold("helpfulness") == 4, "who notices goes on with what serves"
    wait_for(lambda: (found := registry.loaded()) is not None and found.threshold("helpfulness") == 3)
    rewritten(root / CENTRAL, "threshold: 3", "threshold: 2.5")
    now[0] = 219.0
    assert registry.current().threshold("helpfulness") == 3, "counted from the look before"


def test_lookups_go_on_while_the_files_are_read(root: Path) -> None:
    """The reading is held up for as long as the lookups take: they can't have waited for it."""
    now, held = [0.0], threading.Event()
    reading_now = threading.Event()
    registry = alive(root, 1.0, clock=lambda: now[0])
    served = registry.current()

    def reading(of: Path) -> Tree:
        reading_now.set()
        assert held.wait(20)
        return disk.read_tree(of)

    registry._reading = reading
    rewritten(root / CENTRAL, "threshold: 4", "threshold: 3")
    now[0] = 5.0
    try:
        assert registry.current() is served
        assert reading_now.wait(20)
        before = threading.active_count()
        for _ in range(1000):
            assert registry.current() is served
            assert registry.loaded() is served
        assert threading.active_count() <= before, "one look at a time"
    finally:
        held.set()
    wait_for(lambda: registry.loaded() is not served)
    assert registry.current().threshold("helpfulness") == 3


def test_a_look_by_time_that_finds_broken_files_tells_and_tries_again(root: Path) -> None:
    now = [0.0]
    registry = alive(root, 1.0, clock=lambda: now[0])
    served = registry.current()
    (root / CENTRAL).write_text("threshold: [4")
    now[0] = 2.0
    registry.current()
    wait_for(lambda: registry.last is not None and not registry.last.valid)
    assert registry.current() is served
    written(root.parent, {CENTRAL: "{threshold: 3}"})
    now[0] = 4.0
    wait_for(lambda: registry.current().threshold("helpfulness") == 3)


def test_where_no_thread_can_be_had_lookups_go_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    now = [0.0]
    registry = alive(root, 1.0, clock=lambda: now[0])
    served = registry.current()
    rewritten(root / CENTRAL, "threshold: 4", "threshold: 3")
    now[0] = 5.0
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_left)
        assert registry.current() is served
    wait_for(lambda: registry.current().threshold("helpfulness") == 3)


def test_without_a_time_nobody_looks(root: Path) -> None:
    registry = alive(root, None, clock=lambda: 1e12)
    registry.current()
    registry._reading = lambda _: pytest.fail("it was read")
    assert registry.current().threshold("helpfulness") == 4


def test_many_threads_see_one_whole_version_at_any_moment(root: Path) -> None:
    """Two judges have the same threshold in each version; a mixture of versions would show."""
    versions = []
    for value in (3, 4):
        threshold = f"{{threshold: {value}}}"
        written(root.parent, {CENTRAL: threshold, "rules/brevity.yaml": threshold})
        versions.append(disk.read_tree(root))
    turn = [0]
    registry = alive(root, reading=lambda _: versions[turn[0] % 2], settle=0)
    stop, wrong, seen = threading.Event(), [], set()

    def look() -> None:
        while not stop.is_set():
            found = registry.current()
            one, other = found.threshold("helpfulness", "pre_full"), found.threshold("brevity", "pre_full")
            seen.add(one)
            if one != other or found.judge("brevity").default_threshold != one:
                wrong.append((one, other))

    registry.current()
    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(20):
        turn[0] = number
        assert registry.refresh().valid
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert seen == {3, 4}


@pytest.mark.parametrize("broken", [False, True])
def test_a_refresh_of_unchanged_files_reads_them_once_and_checks_nothing(
    root: Path, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: list[Path] = []

    def reading(of: Path) -> Tree:
        readings.append(of)
        return disk.read_tree(of)

    registry = alive(root, reading=reading)
    served = registry.current()
    if broken:
        (root / CENTRAL).write_text("threshold: [4")
    before = registry.refresh()
    readings.clear()
    monkeypatch.setattr(reloading, "checked", lambda *_: pytest.fail("the files were checked again"))
    assert registry.refresh() == before
    assert readings == [root]
    assert registry.current() is served


def test_many_first_callers_read_the_files_once(root: Path) -> None:
    readings: list[int] = []

    def reading(of: Path) -> Tree:
        readings.append(1)
        time.sleep(0.01)
        return disk.read_tree(of)

    registry = alive(root, reading=reading)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(registry.current())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(readings) == 2, "and a second time to see that they stand still"
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_files_that_change_while_they_are_read_are_read_until_they_stand_still(root: Path) -> None:
    """A checkout under way: half of it is valid, and is never served."""
    old = disk.read_tree(root)
    rewritten(root / "rules/brevity.yaml", "threshold: 4", "threshold: 3")
    half = disk.read_tree(root)
    rewritten(root / CENTRAL, "threshold: 4", "threshold: 3")
    whole = disk.read_tree(root)
    coming = [old, old, half, whole, whole]
    registry = alive(root, reading=lambda _: coming.pop(0))
    assert registry.current().threshold("brevity") == 4
    registry.refresh()
    assert coming == []
    assert registry.current().threshold("brevity") == registry.current().threshold("helpfulness") == 3


def test_a_first_reading_too_waits_for_files_that_stand_still(root: Path) -> None:
    whole = disk.read_tree(root)
    half = replace(whole, files={name: raw for name, raw in whole.files.items() if "brevity" not in name})
    coming = [half, whole, whole]
    assert alive(root, reading=lambda _: coming.pop(0)).current().rules() == [
        "brevity", "helpfulness", "honesty", "refusal"
    ]  # fmt: skip


def test_files_that_never_stand_still_are_no_version(root: Path) -> None:
    tree = disk.read_tree(root)
    count = iter(range(1_000_000))

    def reading(_: Path) -> Tree:
        return tree.with_file(CENTRAL, tree.files[CENTRAL] + f"# {next(count)}\n".encode())

    registry = alive(root, settle=0)
    served = registry.current()
    registry._reading = reading
    result = registry.refresh()
    assert "keep changing" in result.errors[0].message
    assert registry.current() is served
