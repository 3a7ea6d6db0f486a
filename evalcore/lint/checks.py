"""Lists all checks by subject and runs them; `python -m evalcore.lint.checks` prints their page."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from evalcore.lint.bindings import BINDINGS
from evalcore.lint.categories import CATEGORIES, SELECTIONS
from evalcore.lint.check import Check
from evalcore.lint.composites import COMPOSITES
from evalcore.lint.dataset import ITEMS, SAMPLING
from evalcore.lint.drift import CANARIES, DRIFT, LISTS, NOISE
from evalcore.lint.enforcement import ADJUDICATIONS, ENFORCEMENT, GATE_PATHS
from evalcore.lint.filters import ARCHETYPES, FILTERS
from evalcore.lint.limits import SCALES
from evalcore.lint.names import IDENTITY, NAMES, PATHS, SIZE
from evalcore.lint.provenance import AGREEMENT, CADENCE, PROVENANCE
from evalcore.lint.safety import SAFETY
from evalcore.lint.verticals import VERTICALS
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding

SUBJECTS: dict[str, tuple[Check, ...]] = {
    subject.title: tuple(subject.checks)
    for subject in (
        IDENTITY, NAMES, SCALES, SAFETY, VERTICALS, ENFORCEMENT, ADJUDICATIONS, PROVENANCE, CADENCE, AGREEMENT, DRIFT,
        LISTS, NOISE,
        CANARIES, COMPOSITES, CATEGORIES, SELECTIONS, ARCHETYPES, BINDINGS, FILTERS, ITEMS, PATHS, SAMPLING, GATE_PATHS,
        SIZE,
    )
}  # fmt: skip
CHECKS: tuple[Check, ...] = tuple(check for checks in SUBJECTS.values() for check in checks)


def lint(files: RegistryFiles) -> list[Finding]:
    """Returns everything that the checks find, sorted by place. Pure: the same files give the same findings."""
    return sorted({finding for check in CHECKS for finding in check.run(files)})


_HEAD = """\
# Checks of the linter

`rampgate rules validate` and `rampgate manifest validate` run every check below on all files of the registry and report
all findings at once. A finding names the check, file, line, column and field, the clause that demands it, and what to
do. `make docs` generates this page.
"""


def as_markdown(subjects: Mapping[str, tuple[Check, ...]]) -> str:
    """Returns the page `docs/checks.md`."""
    parts = [_HEAD]
    for subject, checks in subjects.items():
        rows = [f"| `{check.name}` | {check.severity} | {check.summary} | {check.clause} |" for check in checks]
        parts.append(
            "\n".join([f"## {subject}", "", "| check | is | what holds | clause |", "|---|---|---|---|", *rows])
        )
    return "\n\n".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(as_markdown(SUBJECTS))
