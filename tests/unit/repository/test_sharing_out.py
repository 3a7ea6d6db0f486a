"""Tests side by side: a file's tests share a process and so its fixtures, a long fault test goes alone."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from unittest.mock import patch

from xdist.scheduler import LoadFileScheduling

from tests import conftest


def test_a_file_is_shared_out_as_one_and_a_fault_test_alone() -> None:
    """Else each process sets up a module's fixtures anew (xdist 3.8 does, of its own groups, under pytest 9.2)."""
    assert "FilesTogether" in inspect.getsource(conftest.pytest_xdist_make_scheduler)
    scheduler = conftest.FilesTogether.__new__(conftest.FilesTogether)
    shared = [scheduler._split_scope(f"tests/stream/test_ways.py::test_{name}") for name in ("a", "b[x::y]")]
    assert shared == ["tests/stream/test_ways.py"] * 2
    alone = [scheduler._split_scope(f"tests/fault/test_kills_fault.py::test_{name}") for name in ("a", "b[x]")]
    assert len(set(alone)) == 2


def test_unit_tests_fill_the_waits_of_the_others_and_nothing_is_left_out() -> None:
    queue = {"tests/fault/test_a.py::test_x": {"x": False}, "tests/stream/test_b.py": {"b": False}}
    queue |= {f"tests/unit/test_{n}.py": {f"{n}": False} for n in range(6)}

    class Scheduler(conftest.FilesTogether):
        def __init__(self) -> None:
            self.collection, self.workqueue = None, OrderedDict(queue)

    scheduler = Scheduler()
    with patch.object(LoadFileScheduling, "schedule"):
        scheduler.schedule()
    assert dict(scheduler.workqueue) == queue
    assert [scope.split("/")[1] for scope in scheduler.workqueue] == [
        *("fault", "unit", "unit", "stream", "unit", "unit", "unit", "unit")
    ]
