"""Says which gates a changed file triggers, by the table of paths (PC5 §5.5). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from schemas.judges import Milestone
from schemas.manifests import GatePathsFile, PathClass

ALL: Final = list(Milestone)
DEFAULT: Final = GatePathsFile(
    paths=[
        # What is written about agents, or tries them, is not what they say.
        PathClass(gates=[], files=["tests/**", "docs/**", ".github/**"]),
        PathClass(
            gates=ALL,
            files=[
                "prompts/**", "**/prompts/**", "configs/rules/**", "configs/evaluation_manifest.yaml",
                "src/consumer_agent/agent/**", "src/consumer_agent/factory.py", "src/consumer_agent/utils/tools.py",
            ],
        ),
        PathClass(
            gates=[Milestone.PRE_MERGE],
            files=["src/consumer_agent/api/**", "src/consumer_agent/utils/helpers.py", "configs/*.yaml"],
        ),
        PathClass(gates=[], files=["*.md", "setup.py", "pyproject.toml", "Makefile"]),
    ]
)  # fmt: skip
"""PC5's table, for a repository that has no `configs/gate-paths.yaml` of its own. A Markdown file in a folder of
prompts is a prompt."""
ANYTHING_ELSE: Final = "anything else"


@dataclass(frozen=True)
class Triggered:
    """The gates that a changed file triggers; `rule` is the pattern that decided. `renamed_to`: the name that the file
    has now, "" where it kept its own."""

    file: str
    rule: str
    gates: tuple[Milestone, ...]
    renamed_to: str = ""


def triggered(file: str, table: GatePathsFile = DEFAULT) -> Triggered:
    """Returns the gates that a changed file triggers."""
    path = file.replace("\\", "/").removeprefix("./")
    climbs = ".." in path.split("/")  # docs/../prompts/x is not below docs
    for one in () if climbs else table.paths:
        for pattern in one.files:
            if fits(pattern, path):
                return Triggered(file, pattern, tuple(gate for gate in Milestone if gate in one.gates))
    return Triggered(file, ANYTHING_ELSE, tuple(ALL))


def fits(pattern: str, path: str) -> bool:
    """Tells whether a pattern of the table fits a path from the repository's root."""
    return _pattern(pattern).fullmatch(path) is not None


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    parts = {"**/": "(?:.*/)?", "**": ".+", "*": "[^/]*"}
    text = "".join(parts.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*\*|\*)", glob))
    return re.compile(f"(?:.*/)?{text}" if glob.startswith("*.") else text, re.DOTALL)
