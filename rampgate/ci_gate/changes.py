"""Reads from git what a pull request changes, which gates its target branch says that triggers, and which exceptions to
enforcement it adds (PC5 §5.2, §5.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from evalcore.gates.overrides import Renamed
from evalcore.registry.files import GATE_PATHS, OVERRIDES
from evalcore.registry.gate_paths import DEFAULT
from evalcore.yaml.models import read_as
from rampgate.console import Failure
from rampgate.registry.rule_history import NoHistory, commit_of, git, git_bytes
from schemas.dead_letters import clean
from schemas.files import FileModel
from schemas.manifests import GatePathsFile, Override, OverridesFile

MOST_BYTES = 1_000_000
_PLAIN = ("100644", "100755")
FileT = TypeVar("FileT", bound=FileModel)


@dataclass(frozen=True)
class Table:
    """The table of paths, and where it stands."""

    paths: GatePathsFile
    source: str


def changes(repository: Path, base: str, head: str = "HEAD") -> list[str | Renamed]:
    """The files that differ between `head` and the commit at which it left `base`, as a pull request shows them. Raises
    NoHistory.

    What is not committed does not count. No configuration and no file of the pull request hides a change: renames are
    told with both names, and submodules are compared whatever `.gitmodules` says.
    """
    wanted = commit_of(repository, head)
    options = ("--name-status", "-z", "--find-renames", "--no-ext-diff", "--no-relative", "--ignore-submodules=none")
    listed = git_bytes(repository, None, "diff", *options, _left(repository, base, wanted), wanted, "--")
    return list(_read(listed.decode("utf-8", "replace")))


def table_at(repository: Path, configs: Path, base: str | None) -> Table:
    """The table of the registry `configs`; PC5's where it has none. Raises Failure, NoHistory.

    With `base` it is that branch's: no pull request decides which gates it triggers. A registry of another repository
    is read as it is on disk.
    """
    if base is not None and _top(configs) == _top(repository):
        commit = commit_of(repository, base)
        source, raw = f"{configs / GATE_PATHS} at {commit[:12]}", _at(configs, commit, GATE_PATHS)
        return Table(_parsed(GatePathsFile, source, raw), source) if raw is not None else Table(DEFAULT, "PC5's own")
    file = configs / GATE_PATHS
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        return Table(DEFAULT, "PC5's own")
    except OSError as error:
        raise Failure(f"{file}: {error.strerror or error}") from error
    return Table(_parsed(GatePathsFile, str(file), raw), str(file))


def exceptions_added(repository: Path, configs: Path, base: str | None, head: str) -> list[Override]:
    """The entries of enforcement-overrides.yaml that `head` has and `base` lacks. Raises Failure, NoHistory."""
    if base is None or _top(configs) != _top(repository):
        return []
    commits = [commit_of(repository, one) for one in (base, head)]
    before, after = [_at(configs, commit, OVERRIDES) for commit in commits]
    if after is None or after == before:
        return []
    known, _ = read_as(OverridesFile, OVERRIDES, before or b"overrides: []")
    added = _parsed(OverridesFile, f"{configs / OVERRIDES} at {commits[1][:12]}", after).overrides
    return [one for one in added if known is None or one not in known.model.overrides]


def _at(configs: Path, commit: str, name: str) -> bytes | None:
    """A file of the registry as the commit has it; None where it has none. Raises Failure, NoHistory."""
    listed = git(configs, "ls-tree", "-z", commit, "--", name).partition("\0")[0]
    if not listed:
        return None
    mode, _, blob = listed.partition("\t")[0].split(" ")
    if mode not in _PLAIN:
        raise Failure(f"{configs / name} at {commit[:12]}: is no file")
    return git_bytes(configs, None, "cat-file", "blob", blob)


def _left(repository: Path, base: str, head: str) -> str:
    """The commit at which `head` left `base`. Raises NoHistory."""
    try:
        return git(repository, "merge-base", commit_of(repository, base), head).strip()
    except NoHistory as error:
        raise NoHistory(f"{error}; have the history of both (git fetch --unshallow, or fetch-depth: 0)") from error


def _read(listed: str) -> Iterator[str | Renamed]:
    """Reads `git diff --name-status -z`: a status, then one name, or two of a renamed file."""
    fields = iter(listed.split("\0"))
    for status in fields:
        if not status:
            return
        name = next(fields)
        yield Renamed(name, next(fields)) if status[0] in "RC" else name


def _top(folder: Path) -> str | None:
    """The top of the repository that a folder belongs to; None outside of one."""
    try:
        return git(folder, "rev-parse", "--show-toplevel").strip()
    except NoHistory:
        return None


def _parsed(kind: type[FileT], source: str, raw: bytes) -> FileT:
    parsed, findings = read_as(kind, source, raw[: MOST_BYTES + 1])
    if parsed is None:
        told = "; ".join(f"line {one.line}: {one.field}: {one.message}" for one in findings[:3])
        raise Failure(f"{source}: {clean(told, 1_000)}; `rampgate rules validate` shows all findings")
    return parsed.model
