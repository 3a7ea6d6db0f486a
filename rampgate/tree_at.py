"""A registry's files as they were at an earlier version, read from git and never checked out (PC5 FR-10, §5.7)."""

from __future__ import annotations

import os.path
from pathlib import Path
from tempfile import TemporaryDirectory

from evalcore import loading
from evalcore.tree import COMPONENTS, VERTICALS, Tree
from rampgate.rule_history import NoHistory, commit_of, git, git_bytes

_READ = {".yaml", ".yml", ".json", ".xml"}
_PLAIN = ("100644", "100755")


def tree_at(root: Path, rev: str) -> Tree:
    """What `loading.read_tree(root)` would have read at `rev`. Folders beside `root` that lie outside its repository
    have no history here, and are taken as they are now. Raises NoHistory."""
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
        files = dict(loading.read_tree(top / prefix).files)
    if len(inside) < len(here) and root.is_dir():
        now = loading.read_tree(root).files
        files |= {name: content for name, content in now.items() if name.startswith("../")}
    return Tree(root, files)


def _listed(root: Path, commit: str, folders: list[str]) -> dict[str, str]:
    """Object id by path from the repository's top."""
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
