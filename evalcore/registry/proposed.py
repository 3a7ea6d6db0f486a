"""Lays the prompts that a pull request proposes over the registry of its target branch (PC5 FR-2, FR-12). Pure.

A gate judges a proposed rubric by limits that the proposal can't move: of a rule file it takes what words the question
to the model, and nothing that decides what its answer is worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import yaml

from evalcore.registry.files import Tree
from evalcore.yaml.findings import Finding
from evalcore.yaml.models import read
from schemas.judges import RuleFile

WORDS: Final = ("description", "task_introduction", "prompt", "variables", "model", "temperature")
"""Fields of a rule file that a proposal may change."""


@dataclass(frozen=True)
class Proposal:
    """The target's files with the proposed prompts. `taken` names the rule files of which words were taken, `new` those
    of judges that the target lacks, `left` the other files of the registry in which the two differ. `findings` are of
    proposed rule files that can't be read: they are left, too."""

    tree: Tree
    taken: tuple[str, ...]
    new: tuple[str, ...]
    left: tuple[str, ...]
    findings: tuple[Finding, ...]


def laid_over(target: Tree, proposed: Tree) -> Proposal:
    """Returns the target's tree with the proposed prompts. A judge that is deleted stays; one that is new comes whole,
    but fires only where the target's manifest has it, or as a safety judge."""
    files = dict(target.files)
    taken, new, left, findings = list[str](), list[str](), list[str](), list[Finding]()
    for name in sorted({*target.files, *proposed.files}):
        ours, theirs = target.files.get(name), proposed.files.get(name)
        if ours == theirs:
            continue
        if theirs is None or not _is_central(name):
            left.append(name)
            continue
        reading = read(RuleFile, proposed.shown(name), theirs)
        if reading.parsed is None:
            findings += reading.findings
            left.append(name)
        elif ours is None:
            files[name] = theirs
            new.append(name)
        else:
            files[name] = _worded(target.shown(name), ours, reading.parsed.document.data)
            (taken if files[name] != ours else left).append(name)
    return Proposal(Tree(target.root, files, target.refused), tuple(taken), tuple(new), tuple(left), tuple(findings))


def _is_central(name: str) -> bool:
    """Tells whether the file is a central rule file; a vertical's holds limits only."""
    folder, _, file = name.partition("/")
    return folder == "rules" and "/" not in file and file.endswith(".yaml")


def _worded(shown: str, ours: bytes, theirs: dict[str, Any]) -> bytes:
    """Returns our file with their words; our own where nothing of them differs, or ours can't be read."""
    reading = read(RuleFile, shown, ours)
    if reading.parsed is None:
        return ours
    data = reading.parsed.document.data
    worded = data | {name: theirs[name] for name in WORDS if name in theirs}
    parts = theirs.get("dimensions") or {}
    if data.get("dimensions"):
        worded["dimensions"] = {
            name: {**part, "description": parts.get(name, part)["description"]}
            for name, part in data["dimensions"].items()
        }
    if worded == data:
        return ours
    return str(yaml.safe_dump(worded, sort_keys=False, allow_unicode=True)).encode()
