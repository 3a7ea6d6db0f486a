"""Reads from git what a pull request changes, and which gates its target branch says that triggers (PC5 §5.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evalcore.gates.planning import Renamed
from evalcore.registry.files import GATE_PATHS
from evalcore.registry.gate_paths import DEFAULT
from evalcore.yaml.models import read_as
from rampgate.console import Failure
from rampgate.registry.rule_history import NoHistory, commit_of, git, git_bytes
from schemas.dead_letters import clean
from schemas.manifests import GatePathsFile

MOST_BYTES = 1_000_000
_PLAIN = ("100644", "100755")


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
        listed = git(configs, "ls-tree", "-z", commit, "--", GATE_PATHS).partition("\0")[0]
        if not listed:
            return Table(DEFAULT, "PC5's own")
        about, _, name = listed.partition("\t")
        mode, _, blob = about.split(" ")
        source = f"{configs / name} at {commit[:12]}"
        if mode not in _PLAIN:
            raise Failure(f"{source}: is no file")
        return Table(_parsed(source, git_bytes(configs, None, "cat-file", "blob", blob)), source)
    file = configs / GATE_PATHS
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        return Table(DEFAULT, "PC5's own")
    except OSError as error:
        raise Failure(f"{file}: {error.strerror or error}") from error
    return Table(_parsed(str(file), raw), str(file))


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


def _parsed(source: str, raw: bytes) -> GatePathsFile:
    parsed, findings = read_as(GatePathsFile, source, raw[: MOST_BYTES + 1])
    if parsed is None:
        told = "; ".join(f"line {one.line}: {one.field}: {one.message}" for one in findings[:3])
        raise Failure(f"{source}: {clean(told, 1_000)}; `rampgate rules validate` shows all findings")
    return parsed.model
