"""Writes the registry by which a pull request is judged: its target branch's, with the proposed prompts (PC5 FR-2)."""

from __future__ import annotations

import os.path
import shutil
from pathlib import Path
from typing import Any

from evalcore.registry.disk import read_tree
from evalcore.registry.files import Tree
from evalcore.registry.proposed import Proposal, laid_over
from rampgate.console import Failure
from rampgate.registry.rule_history import tree_at
from rampgate.registry.view import documents


def write_proposal(configs: Path, revision: str, folder: Path) -> tuple[Proposal, dict[str, Any]]:
    """Write the registry into `folder`, and return what was taken, with the document of `--json`. The proposed commit
    is read from git: nothing of it is run, and no link in it is followed. Raises Failure, NoHistory."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Failure(f"--to {folder}: name a folder that is empty, or not there yet")
    try:
        made = laid_over(read_tree(configs), tree_at(configs, revision))
        root = folder / "configs"
        shutil.copytree(configs, root)
        _write(made.tree, root)
    except OSError as error:
        raise Failure(f"the registry can't be copied to {folder}: {error}") from error
    return made, {
        "configs": root.as_posix(),
        "taken": list(made.taken),
        "new": list(made.new),
        "left": list(made.left),
        "errors": documents(made.findings),
    }


def _write(tree: Tree, root: Path) -> None:
    """Write the files of a tree as if `root` were its root; those beside it go beside that."""
    for name, content in tree.files.items():
        file = Path(os.path.normpath(root / name))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
