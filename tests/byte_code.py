"""Compiles the tests once, before a run's processes collect them: each would rewrite all assertions for itself, which
takes longer than the rest of its collection."""

from __future__ import annotations

import compileall
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.root import ROOT


def write(config: pytest.Config) -> None:
    """Writes what pytest and Python read in place of each source that has not changed since, whether or not the
    environment lets imports write it."""
    state = config.stash[rewrite.assertstate_key]
    for source in (ROOT / "tests").rglob("*.py"):
        if source.name == "conftest.py" or source.match("test_*.py"):
            _write_rewritten(source, config, state)
        else:
            compileall.compile_file(source, quiet=2)


def _write_rewritten(source: Path, config: pytest.Config, state: object) -> None:
    folder = rewrite.get_cache_dir(source)
    compiled = folder / f"{source.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(source, compiled) is None and rewrite.try_makedirs(folder):
        source_hash, code = rewrite._rewrite_test(source, config)
        rewrite._write_pyc(state, code, source_hash, compiled)
