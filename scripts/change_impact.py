"""Which verticals consume what a change touches, and who owns them: they review it (PF-9 Decision 18).

    scripts/change_impact.py configs/rules/response_quality.yaml     changed files
    scripts/change_impact.py --category general_qa --judge fetch_legal
    scripts/change_impact.py --proposed FETCH_HEAD                   what a commit changes, read from git and never run

The registry is the one of the folder this runs in: those who consume it now are asked. `--json` writes
`{verticals: [{vertical, owners, because}], owners}`, `--markdown` a comment for the pull request, empty where no one is
asked.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

from evalcore.change_impact import Touched, Version, affected_verticals, touched
from evalcore.manifest.discovery import components
from evalcore.registry.disk import read_tree, today
from evalcore.registry.files import COMPONENTS, EXTENSION, VERTICALS, Tree, assemble
from rampgate.registry.codeowners import CodeOwners
from rampgate.registry.rule_history import NoHistory, git, tree_at
from schemas.judges import judge_id


def version(tree: Tree, day: date) -> Version:
    """The registry of a tree. Leaves out unreadable files, which validation reports."""
    return Version(assemble(tree, day)[0], components(tree.below(COMPONENTS, ".xml"))[0], tree.root.as_posix())


def changed(root: Path, proposed: str) -> list[str]:
    """Files that differ between the commit both come from and the proposed one, from the repository's top."""
    listed = git(root, "diff", "--name-only", "--no-renames", "-z", f"HEAD...{proposed}", "--")
    return [name for name in listed.split("\0") if name]


def owned_file(vertical: str, tree: Tree) -> str:
    """The file whose CODEOWNERS entry names a vertical's owners."""
    extension = f"{VERTICALS}/{vertical}/eval/{EXTENSION}"
    return tree.shown(extension if extension in tree.files else f"verticals/{vertical}.yaml")


def comment(verticals: list[dict[str, Any]]) -> str:
    """The comment. It mentions the owners, which notifies them even where the job may not ask a team for a review."""
    rows = [
        f"| {one['vertical']} | {' '.join(one['owners']) or 'no one: see CODEOWNERS'} | {', '.join(one['because'])} |"
        for one in verticals
    ]
    head = "**These verticals use what this pull request changes.** Their owners review it (PF-9 Decision 18)."
    return "\n".join([head, "", "| vertical | owners | uses |", "| --- | --- | --- |", *rows, ""])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="changed files, from the repository's top")
    parser.add_argument("--category", action="append", default=[], help="whoever uses this category")
    parser.add_argument("--judge", action="append", default=[], help="whoever uses this judge")
    parser.add_argument("--proposed", metavar="REV", help="a commit; with it, files default to those it changes")
    parser.add_argument("--configs", type=Path, default=Path("configs"), help="the registry (default: configs)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", dest="as_json")
    form.add_argument("--markdown", action="store_true")
    given = parser.parse_args(arguments)
    day = today()
    try:
        tree = read_tree(given.configs)
        before, after, files = version(tree, day), None, given.files
        if given.proposed:
            after = version(tree_at(given.configs, given.proposed), day)
            files = files or changed(given.configs, given.proposed)
    except (NoHistory, OSError) as error:
        sys.stderr.write(f"change_impact: {error}\n")
        return 2
    named = Touched(frozenset(given.category), frozenset(map(judge_id, given.judge)))
    found = affected_verticals(touched(files, before, after) | named, before)
    owners = CodeOwners.of(Path())
    verticals: list[dict[str, Any]] = [
        {"vertical": name, "owners": list(owners.owners(owned_file(name, tree))), "because": why}
        for name, why in found.items()
    ]
    everybody = sorted({owner for one in verticals for owner in one["owners"]})
    if given.as_json:
        sys.stdout.write(json.dumps({"verticals": verticals, "owners": everybody}) + "\n")
        return 0
    if given.markdown:
        sys.stdout.write(comment(verticals) if verticals else "")
        return 0
    for one in verticals:
        sys.stdout.write(f"{one['vertical']}\t{' '.join(one['owners']) or '-'}\t{', '.join(one['because'])}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
