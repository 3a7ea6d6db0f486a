"""Reads an earlier version of the registry's files from git and puts it into the working tree (PC5 FR-10, §5.7).

It reads history and never rewrites it: nothing here commits, resets or moves a branch. The next commit records the
change.
"""

from __future__ import annotations

import os.path
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from evalcore.registry import disk
from evalcore.registry.files import COMPONENTS, VERTICALS, Tree
from rampgate.settings import SettingsError
from schemas.judges import judge_id

SECONDS = 60.0
_READ = {".yaml", ".yml", ".json", ".xml"}
_PLAIN = ("100644", "100755")


class NoHistory(SettingsError):
    """Git can't provide the version; the message says why and what to do."""


def changed_since(root: Path, rev: str, judge: str) -> list[Path]:
    """The judge's rule files, central and every vertical's, that differ between `rev` and the working tree, relative to
    `root`. Raises NoHistory."""
    commit = commit_of(root, rev)
    names = git(root, "diff", "--name-only", "--no-renames", "--relative", "-z", commit, "--", ".").split("\0")
    new = git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", ".").split("\0")
    found = [Path(name) for name in sorted({*names, *new}) if name.startswith("rules/") and name.endswith(".yaml")]
    return [file for file in found if len(file.parts) in (2, 3) and judge_id(file.stem) == judge_id(judge)]


def before_last_change(root: Path, judge: str) -> str:
    """The commit before the one that last changed the judge's files, central or a vertical's. Raises NoHistory."""
    stem = judge_id(judge).replace("_", "[-_]")
    paths = [f":(icase,glob)rules/{folder}{stem}.yaml" for folder in ("", "*/")]
    last = git(root, "log", "-1", "--format=%H", "--", *paths).strip()
    if not last:
        raise NoHistory(f"{root}: no commit has a rule file of judge {judge_id(judge)!r}")
    before = git(root, "rev-list", "--parents", "-1", last).split()
    if len(before) < 2:
        hint = "name a version with --to, or have all of the history (git fetch --unshallow)"
        raise NoHistory(f"{root}: commit {last[:12]} is the first there is here; {hint}")
    return before[1]


def require_committed(root: Path, files: list[Path]) -> None:
    """Raise NoHistory where one of the files has an uncommitted change."""
    if not files:
        return
    names = [_literal(file) for file in files]
    if dirty := git(root, "status", "--porcelain", "--untracked-files=all", "--", *names).splitlines():
        listed = ", ".join(line[3:] for line in dirty)
        raise NoHistory(f"{listed}: changed and not committed; commit it or put it back, then roll back")


def restore(root: Path, rev: str, files: list[Path]) -> None:
    """Bring these files back to `rev`, removing those that did not exist then.

    Raises NoHistory, before it touches anything, where one of them has an uncommitted change.
    """
    require_committed(root, files)
    if files:
        git(root, "restore", f"--source={commit_of(root, rev)}", "--worktree", "--", *map(_literal, files))


def commit_of(root: Path, rev: str) -> str:
    """The full id of a commit. Raises NoHistory."""
    return git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}").strip()


def _literal(file: Path) -> str:
    return f":(literal){file.as_posix()}"


def git(root: Path, *arguments: str) -> str:
    """The output of git, run in `root`. Raises NoHistory."""
    return git_bytes(root, None, *arguments).decode("utf-8", "surrogateescape")


def git_bytes(root: Path, given: bytes | None, *arguments: str) -> bytes:
    """The output of git as bytes; `given` goes to its stdin. Raises NoHistory."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], input=given, capture_output=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoHistory(f"git can't be run: {error}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"git {arguments[0]} finds nothing for {arguments[-1]!r}"
        raise NoHistory(f"{root}: {said}")
    return done.stdout


def tree_at(root: Path, rev: str) -> Tree:
    """The tree that `disk.read_tree(root)` would have read at `rev`. Raises NoHistory.

    Folders outside the repository have no history here: their files are read as they are on disk.
    """
    commit, prefix = commit_of(root, rev), git(root, "rev-parse", "--show-prefix").strip()
    here = [os.path.normpath(prefix or "."), *(os.path.normpath(prefix + name) for name in (COMPONENTS, VERTICALS))]
    inside = [name for name in here if not name.startswith("..")]
    names = _listed(root, commit, inside)
    with TemporaryDirectory(prefix="rampgate-") as made:
        top = Path(made)
        for name, content in zip(names, _contents(root, [names[name] for name in names]), strict=True):
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_bytes(content)
        if not (top / prefix).is_dir():
            raise NoHistory(f"{root}: was not there at {rev}")
        files = dict(disk.read_tree(top / prefix).files)
    if len(inside) < len(here) and root.is_dir():
        now = disk.read_tree(root).files
        files |= {name: content for name, content in now.items() if name.startswith("../")}
    return Tree(root, files)


def _listed(root: Path, commit: str, folders: list[str]) -> dict[str, str]:
    """The git object id of each file, by its path from the repository's top."""
    listed = git(root, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *folders)
    found = {}
    for line in filter(None, listed.split("\0")):
        about, _, name = line.partition("\t")
        mode, _, blob = about.split(" ")
        if mode in _PLAIN and Path(name).suffix.lower() in _READ:
            found[name] = blob
    return found


def _contents(root: Path, blobs: list[str]) -> list[bytes]:
    out, found, at = git_bytes(root, "\n".join(blobs).encode(), "cat-file", "--batch"), [], 0
    for _ in blobs:
        end = out.index(b"\n", at)
        size = int(out[at:end].rsplit(b" ", 1)[1])
        found.append(out[end + 1 : end + 1 + size])
        at = end + size + 2
    return found
