"""Tests side by side: a file's tests share a process and so its fixtures, a long fault test goes alone."""

from __future__ import annotations

import inspect

from tests import conftest


def test_a_file_is_shared_out_as_one_and_a_fault_test_alone() -> None:
    """Else each process sets up a module's fixtures anew (xdist 3.8 does, of its own groups, under pytest 9.2)."""
    assert "FilesTogether" in inspect.getsource(conftest.pytest_xdist_make_scheduler)
    scheduler = conftest.FilesTogether.__new__(conftest.FilesTogether)
    shared = [scheduler._split_scope(f"tests/stream/test_ways.py::test_{name}") for name in ("a", "b[x::y]")]
    assert shared == ["tests/stream/test_ways.py"] * 2
    alone = [scheduler._split_scope(f"tests/fault/test_kills_fault.py::test_{name}") for name in ("a", "b[x]")]
    assert len(set(alone)) == 2
