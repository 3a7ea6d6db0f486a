"""Runs `rampgate gate proposal`: writes the registry by which a pull request is judged (PC5 FR-2)."""

from __future__ import annotations

import os.path
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.gate.report import proposal_report

if TYPE_CHECKING:
    from evalcore.registry.files import Tree


@command(proposal_report, flags="configs")
def gate_proposal(
    context: Context,
    revision: Annotated[str, Argument(metavar="REF", help="the pull request's last commit, in this repository")],
    to: Annotated[Path, Option(metavar="FOLDER", help="an empty folder, or one that is not there yet")],
) -> Document:
    """Write the registry by which a pull request is judged: the files that are checked out, with its prompts.

    Of a central rule file it takes prompt, introduction, description, bindings, model and temperature. Limits,
    manifest, verticals' files, overrides and canaries stay as they are here. The commit is read from git and nothing of
    it is run, and no link in it is followed. Exit code 1 if a proposed rule file has an error.

    Example: rampgate gate proposal FETCH_HEAD --to /tmp/proposal
    """
    from evalcore.registry.proposed import laid_over
    from rampgate.registry.rule_history import tree_at
    from rampgate.registry.view import finding_answer

    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise Failure(f"--to {to}: name a folder that is empty, or not there yet")
    configs = context.settings.configs
    made = laid_over(context.tree, tree_at(configs, revision))
    try:
        shutil.copytree(configs, to / "configs")
        _write(made.tree, to / "configs")
    except OSError as error:
        raise Failure(f"the registry can't be copied to {to}: {error}") from error
    fields = {
        "configs": (to / "configs").as_posix(),
        "taken": list(made.taken),
        "new": list(made.new),
        "left": list(made.left),
        "errors": [finding_answer(one).model_dump() for one in made.findings],
    }
    return Document(fields, 1 if made.findings else 0)


def _write(tree: Tree, root: Path) -> None:
    """Write the files of a tree as if `root` were its root; those beside it go beside that."""
    for name, content in tree.files.items():
        file = Path(os.path.normpath(root / name))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
