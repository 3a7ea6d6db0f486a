"""Writes the folder of a suite or a spec as it is in a commit: its candidate can be asked again, its queries read."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rampgate.registry.rule_history import NoHistory, commit_of, git, git_bytes
from rampgate.suite.suite_files import Suite


def unpacked(file: Path, ref: str, into: Path) -> tuple[Path, str]:
    """Writes the file's folder as it is in the commit into `into`, and returns the file there and the commit. Raises
    NoHistory."""
    folder = file.absolute().parent
    commit = commit_of(folder, ref)
    archive = git_bytes(folder, None, "archive", "--format=tar", commit)  # git's own scope is the folder it runs in
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        opened.extractall(into, filter="data")
    if not (into / file.name).is_file():
        raise NoHistory(f"{file} is not there; name a commit that has it")
    return into / file.name, commit


def suite_at(file: Path, ref: str, into: Path, read: Callable[[Path], Suite]) -> Suite:
    """Returns the suite as it is in the commit, its folder written into `into`. Raises NoHistory, and what `read`
    raises.

    What git does not keep, such as an interpreter of its own, is used where it stands today.
    """
    there, commit = unpacked(file, ref, into)
    suite = read(there)
    return with_interpreter(replace(suite, code=commit if suite.unnamed else ""), file.absolute().parent)


def commit_here(folder: Path) -> str:
    """Returns the commit whose content the folder has: git's, empty where tracked files differ from it; where git does
    not know the folder, the one that CI names."""
    try:
        changed = git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
        return "" if changed else commit_of(folder, "HEAD")
    except NoHistory:
        return os.environ.get("GITHUB_SHA", "")


def with_interpreter(suite: Suite, home: Path) -> Suite:
    """Returns the suite with the interpreter that stands in `home`, where its own folder has none."""
    told = suite.file.candidate
    if "/" not in told.python or (suite.folder / told.python).exists():
        return suite
    candidate = told.model_copy(update={"python": str((home / told.python).absolute())})
    return replace(suite, file=suite.file.model_copy(update={"candidate": candidate}))
