"""How a registry's files are read: once for all who wait, again while they change, and not checked again unchanged."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from evalcore import reloading
from evalcore.registry import disk
from evalcore.registry.files import Tree
from tests.unit.evalcore.registry.registry_disk import rewritten, written
from tests.unit.evalcore.registry.registry_reloading import CENTRAL, alive


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path)


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
