"""Makes of a candidate what it would be with a changed part reverted: a copy of the suite's folder with that part's
files as they are in the baseline's commit, and its values as they were there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from rampgate.console import Failure
from rampgate.suite.runs.base_folder import NoBase, suite_at, with_interpreter
from rampgate.suite.suite_files import NO_CODE, Suite, files_of


@dataclass(frozen=True)
class Sides:
    """The suite as it is, and as it is in the baseline's commit."""

    candidate: Suite
    baseline: Suite

    @property
    def changed(self) -> list[str]:
        """The parts that differ, those that one side alone has among them."""
        now, then = self.candidate.parts, self.baseline.parts
        return sorted(name for name in {*now, *then} if now.get(name) != then.get(name))


def sides(file: Path, ref: str, into: Path, read: Callable[[Path], Suite]) -> Sides:
    """Read both; the baseline's folder is written into `into`. Raises Failure where there is nothing to revert."""
    try:
        found = Sides(read(file), suite_at(file, ref, into, read))
    except NoBase as error:
        raise Failure(f"--base {ref}: {error}") from error
    _check(file, found, ref)
    return found


def with_reverted(both: Sides, names: Collection[str], folder: Path) -> Suite:
    """The candidate's suite with these parts as they were, in `folder`, which is made. Raises Failure."""
    suite, then = both.candidate, both.baseline
    shutil.copytree(suite.folder, folder, symlinks=True, ignore=shutil.ignore_patterns(*NO_CODE))
    parts, values = dict(suite.parts), dict(suite.values)
    for name in names:
        for one in (parts, values):
            one.pop(name, None)
        for path in files_of(suite.file.candidate.parts.get(name), folder):
            path.unlink()
        if name in then.parts:
            parts[name] = then.parts[name]
        if name in then.values:
            values[name] = then.values[name]
        for path in files_of(then.file.candidate.parts.get(name), then.folder):
            target = folder / path.relative_to(then.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    home = with_interpreter(replace(suite, folder=folder), suite.folder)
    return replace(home, parts=parts, values=values)


def _check(file: Path, both: Sides, ref: str) -> None:
    """Raises Failure where reverting would revert nothing, or not all."""
    if not both.changed:
        raise Failure(
            f"{file}: no part differs from {ref}; what makes the cases fall is in no part of `candidate.parts`, or "
            "--base is another commit than the baseline's"
        )
    told = both.candidate.file.candidate
    home = both.candidate.folder.resolve()
    if not (home / told.folder).resolve().is_relative_to(home):
        raise Failure(f"{file}: candidate.folder: {told.folder} is not in the suite's folder, whose copy is changed")
    of_files = [name for name in both.changed if _of_files(both, name)]
    if told.url is not None and of_files:
        raise Failure(
            f"{file}: candidate.parts.{of_files[0]}: what an address is made of can't be reverted from here; "
            "only parts with a `value` can"
        )


def _of_files(both: Sides, name: str) -> bool:
    each = (one.file.candidate.parts.get(name) for one in (both.candidate, both.baseline))
    return any(part is not None and part.files is not None for part in each)
