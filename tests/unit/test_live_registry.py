"""The registry that serves (PC5 NFR-1, FR-10, §5.7): never half-loaded, never worse than what served before, and no
lookup waits for a file."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from registry_disk import rewritten, written
from registry_files import TODAY

from evalcore import live, loading
from evalcore.live import BrokenRegistry, LiveRegistry
from evalcore.tree import Tree
from schemas.judges import Enforcement, Milestone

CENTRAL, MANIFEST = "rules/helpfulness.yaml", "evaluation_manifest.yaml"


def alive(root: Path, ttl: float | None = None, **more: Any) -> LiveRegistry:
    return LiveRegistry(root, ttl, **({"today": lambda: TODAY, "settle": 0.001} | more))


def wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until, "it never came to hold"
        time.sleep(0.002)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path)


def test_an_edit_is_served_after_a_refresh_and_not_before(root: Path) -> None:
    """PC5 FR-10, §5.7: no restart."""
    registry = alive(root)
    assert registry.current().threshold("brevity") == 4
    rewritten(root / "rules/brevity.yaml", "threshold: 4", "threshold: 3")
    assert registry.current().threshold("brevity") == 4
    result = registry.refresh()
    assert result.valid
    assert registry.last is result
    assert registry.current().threshold("brevity") == 3


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (CENTRAL, b"threshold: [4"),
        (CENTRAL, b""),
        (CENTRAL, b"\xff\xfe\x00"),
        (MANIFEST, b"categories: {}"),
        ("rules/extra.yaml", b"name: Half a judge"),
        ("rules/shop/helpfulness.yaml", b"threshold: 1"),
    ],
)
def test_a_broken_new_version_leaves_the_last_good_one_serving_and_says_so(
    root: Path, file: str, content: bytes
) -> None:
    registry = alive(root)
    served = registry.current()
    (root / file).write_bytes(content)
    result = registry.refresh()
    assert not result.valid
    assert registry.current() is registry.loaded() is served
    assert all(problem.file and problem.fix for problem in result.errors)
    (told,) = [problem for problem in result.warnings if problem.check == "still-serving"]
    assert served.config_hash in told.message
    assert "keeps serving" in told.message


def test_a_repaired_version_is_served_at_the_next_refresh(root: Path) -> None:
    registry = alive(root)
    registry.current()
    rewritten(root / CENTRAL, "threshold: 4", "threshold: 40")
    assert not registry.refresh().valid
    rewritten(root / CENTRAL, "threshold: 40", "threshold: 3")
    assert registry.refresh().valid
    assert registry.current().threshold("helpfulness") == 3


def test_putting_back_what_served_changes_nothing(root: Path) -> None:
    """PC5 AC-7: a revert; the very registry that served goes on, with its metrics."""
    registry = alive(root)
    served = registry.current()
    rewritten(root / CENTRAL, "threshold: 4", "threshold: 40")
    registry.refresh()
    rewritten(root / CENTRAL, "threshold: 40", "threshold: 4")
    assert registry.refresh().valid
    assert registry.current() is served


def test_files_that_are_removed_are_a_broken_version(root: Path) -> None:
    registry = alive(root)
    served = registry.current()
    (root / CENTRAL).unlink()
    assert not registry.refresh().valid
    for folder in (root / "rules", root.parent / "specs"):
        shutil.rmtree(folder)
    (root / MANIFEST).unlink()
    result = registry.refresh()
    assert not result.valid, "an empty folder is a mount that is gone, not a registry without judges"
    assert registry.current() is served


@pytest.mark.parametrize("gone", ["removed", "a file", "a closed door"])
def test_a_folder_that_can_not_be_read_leaves_the_last_good_one_serving(root: Path, gone: str) -> None:
    def closed(_: Path) -> Tree:
        raise PermissionError(13, "Permission denied", str(root))

    registry = alive(root)
    served = registry.current()
    if gone == "a closed door":
        registry._reading = closed
    else:
        shutil.rmtree(root)
        if gone == "a file":
            root.write_text("x")
    result = registry.refresh()
    assert [problem.check for problem in result.errors] == ["unreadable"]
    assert str(root) in result.errors[0].message
    assert registry.current() is served


def test_a_first_version_that_is_broken_serves_nothing_and_says_everything(root: Path) -> None:
    rewritten(root / CENTRAL, "score_type: INTEGER", "score_type: INT")
    rewritten(root / "rules/brevity.yaml", "floor: 2", "floor: low")
    registry = alive(root)
    for _ in range(2):
        with pytest.raises(BrokenRegistry, match="can't be served") as raised:
            registry.current()
        assert isinstance(raised.value, ValueError)
        found = {(Path(problem.file).name, problem.field) for problem in raised.value.result.errors}
        assert found >= {("helpfulness.yaml", "score_type"), ("brevity.yaml", "floor")}
        assert "helpfulness.yaml" in str(raised.value)
    assert registry.loaded() is None
    rewritten(root / CENTRAL, "score_type: INT", "score_type: INTEGER")
    rewritten(root / "rules/brevity.yaml", "floor: low", "floor: 2")
    assert registry.current().threshold("brevity") == 4, "repaired files are taken without being asked for"


def test_a_folder_that_is_not_there_serves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BrokenRegistry, match="no such folder"):
        alive(tmp_path / "nowhere").current()


@pytest.mark.parametrize("broken", [False, True])
def test_a_refresh_of_unchanged_files_reads_them_once_and_checks_nothing(
    root: Path, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: list[Path] = []

    def reading(of: Path) -> Tree:
        readings.append(of)
        return loading.read_tree(of)

    registry = alive(root, reading=reading)
    served = registry.current()
    if broken:
        (root / CENTRAL).write_text("threshold: [4")
    before = registry.refresh()
    readings.clear()
    monkeypatch.setattr(live, "checked", lambda *_: pytest.fail("the files were checked again"))
    assert registry.refresh() == before
    assert readings == [root]
    assert registry.current() is served


def test_files_that_change_while_they_are_read_are_read_until_they_stand_still(root: Path) -> None:
    """A checkout under way: half of it is valid, and is never served."""
    old = loading.read_tree(root)
    rewritten(root / "rules/brevity.yaml", "threshold: 4", "threshold: 3")
    half = loading.read_tree(root)
    rewritten(root / CENTRAL, "threshold: 4", "threshold: 3")
    whole = loading.read_tree(root)
    coming = [old, old, half, whole, whole]
    registry = alive(root, reading=lambda _: coming.pop(0))
    assert registry.current().threshold("brevity") == 4
    registry.refresh()
    assert coming == []
    assert registry.current().threshold("brevity") == registry.current().threshold("helpfulness") == 3


def test_a_first_reading_too_waits_for_files_that_stand_still(root: Path) -> None:
    whole = loading.read_tree(root)
    half = replace(whole, files={name: raw for name, raw in whole.files.items() if "brevity" not in name})
    coming = [half, whole, whole]
    assert alive(root, reading=lambda _: coming.pop(0)).current().rules() == [
        "brevity", "helpfulness", "honesty", "refusal"
    ]  # fmt: skip


def test_files_that_never_stand_still_are_no_version(root: Path) -> None:
    tree = loading.read_tree(root)
    count = iter(range(1_000_000))

    def reading(_: Path) -> Tree:
        return tree.with_file(CENTRAL, tree.files[CENTRAL] + f"# {next(count)}\n".encode())

    registry = alive(root, settle=0)
    served = registry.current()
    registry._reading = reading
    result = registry.refresh()
    assert "keep changing" in result.errors[0].message
    assert registry.current() is served


def test_the_files_are_looked_at_again_when_their_time_is_up(root: Path) -> None:
    now = [100.0]
    registry = alive(root, 60.0, clock=lambda: now[0])
    registry.current()
    rewritten(root / CENTRAL, "threshold: 4", "threshold: 3")
    now[0] = 159.9
    assert registry.current().threshold("helpfulness") == 4
    assert registry._looking.acquire(blocking=False), "nobody looks"
    registry._looking.release()
    now[0] = 160.1
    assert registry.current().threshold("helpfulness") == 4, "who notices goes on with what serves"
    wait_for(lambda: registry.loaded().threshold("helpfulness") == 3)  # type: ignore[union-attr]
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
        return loading.read_tree(of)

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
        assert threading.active_count() == before, "one look at a time"
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
        versions.append(loading.read_tree(root))
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


def test_many_first_callers_read_the_files_once(root: Path) -> None:
    readings: list[int] = []

    def reading(of: Path) -> Tree:
        readings.append(1)
        time.sleep(0.01)
        return loading.read_tree(of)

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


def test_an_override_that_has_ended_ends_in_a_running_process_too(root: Path) -> None:
    """PC5 §5.2: the files are the same, and what they allowed must not go on. It blocks; the registry goes on serving,
    also in a process that starts now."""
    entry = (
        "{judge: helpfulness, milestone: pre_ramp, enforcement: warn, pull_request: '#1', approved_by: owner, "
        "justification: why, approved_on: 2026-11-01, expires: 2026-11-30}"
    )
    written(
        root.parent,
        {CENTRAL: "{enforcement: {pre_ramp: warn}}", "enforcement-overrides.yaml": f"{{overrides: [{entry}]}}"},
    )
    day = [TODAY]
    registry = alive(root, today=lambda: day[0])
    assert registry.current().judge("helpfulness").enforcement[Milestone.PRE_RAMP] is Enforcement.WARN
    day[0] = date(2026, 12, 1)
    result = registry.refresh()
    assert registry.current().judge("helpfulness").enforcement[Milestone.PRE_RAMP] is Enforcement.BLOCK
    assert result.valid
    assert "looser-needs-override" in {problem.check for problem in result.warnings}
    assert registry.refresh() == result
    fresh = alive(root, today=lambda: day[0])
    assert fresh.current().judge("helpfulness").enforcement[Milestone.PRE_RAMP] is Enforcement.BLOCK
