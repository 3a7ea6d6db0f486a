"""Plans the gates of a change by the paths it touches, without those that overrides skip (PC5 §5.5). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final

from evalcore.gates.overrides import read_block, text_of, unsigned
from schemas.judges import Milestone

ALL: Final = tuple(Milestone)
PATHS: Final[tuple[tuple[str, tuple[Milestone, ...]], ...]] = (
    *((pattern, ALL) for pattern in (
        "prompts/**", "configs/rules/**", "configs/evaluation_manifest.yaml", "src/consumer_agent/agent/**",
        "src/consumer_agent/factory.py", "src/consumer_agent/utils/tools.py",
    )),
    *((pattern, (Milestone.PRE_MERGE,)) for pattern in (
        "src/consumer_agent/api/**", "src/consumer_agent/utils/helpers.py", "configs/*.yaml",
    )),
    *((pattern, ()) for pattern in (
        "tests/**", "docs/**", "*.md", ".github/**", "setup.py", "pyproject.toml", "Makefile",
    )),
)  # fmt: skip
"""Pattern -> gates; the first pattern that fits decides. `**` is any depth, `*` stays within a folder; `*.md` matches
in any folder."""
ANYTHING_ELSE: Final = "anything else"
LABELS: Final = {"eval-skip-pre-ramp": Milestone.PRE_RAMP, "eval-skip-pre-full": Milestone.PRE_FULL}
BLOCK: Final = "eval-skip-justification"


@dataclass(frozen=True)
class Triggered:
    """The gates that a changed file triggers; `rule` is the pattern that decided."""

    file: str
    rule: str
    gates: tuple[Milestone, ...]


@dataclass(frozen=True)
class Skip:
    """An override that holds, as the audit has it."""

    milestone: Milestone
    label: str
    approved_by: str
    justification: str
    expires: date


@dataclass(frozen=True)
class Plan:
    """The gates to run, and why. `wrong` says which overrides do not hold and why; their gates run."""

    gates: tuple[Milestone, ...]
    files: tuple[Triggered, ...]
    skipped: tuple[Skip, ...]
    wrong: tuple[str, ...]


def plan(changed: Iterable[str], labels: Iterable[str] = (), description: str = "", *, today: date) -> Plan:
    """Plans the gates of the changed files. A path that no pattern fits triggers all gates. Only `pre_ramp` and
    `pre_full` can be skipped."""
    files = tuple(triggered(file) for file in dict.fromkeys(changed))
    wanted = {gate for file in files for gate in file.gates}
    asked = [label for label in dict.fromkeys(labels) if label.startswith("eval-skip-")]
    skipped, wrong = _overrides(asked, description, today)
    held = {skip.milestone for skip in skipped}
    return Plan(
        tuple(gate for gate in Milestone if gate in wanted and gate not in held),
        files,
        tuple(skip for skip in skipped if skip.milestone in wanted),
        wrong,
    )


def triggered(file: str) -> Triggered:
    """Returns the gates that a changed file triggers."""
    path = file.replace("\\", "/").removeprefix("./")
    climbs = ".." in path.split("/")  # docs/../prompts/x is not below docs
    for pattern, gates in () if climbs else PATHS:
        if _pattern(pattern).fullmatch(path):
            return Triggered(file, pattern, gates)
    return Triggered(file, ANYTHING_ELSE, ALL)


def _overrides(labels: Sequence[str], description: str, today: date) -> tuple[tuple[Skip, ...], tuple[str, ...]]:
    if not labels:
        return (), ()
    wrong = [
        f"{label}: there is no such override; there are {', '.join(LABELS)}" for label in labels if label not in LABELS
    ]
    known = [label for label in labels if label in LABELS]
    if not known:
        return (), tuple(wrong)
    block, why = read_block(BLOCK, description, today, "milestones")
    why = [*why, *unsigned(BLOCK, description)]
    skips = []
    for label in known:
        named = block.get("milestones")
        if why:
            wrong += [f"{label}: {reason}" for reason in why]
        elif not isinstance(named, list) or LABELS[label] not in named:
            wrong.append(f"{label}: {BLOCK}: milestones does not name {LABELS[label]}")
        else:
            approved_by, text = text_of(block, "approved_by"), text_of(block, "justification")
            skips.append(Skip(LABELS[label], label, approved_by, text, block["expires"]))
    return tuple(skips), tuple(wrong)


@lru_cache(maxsize=64)
def _pattern(glob: str) -> re.Pattern[str]:
    parts = {"**": ".+", "*": "[^/]*"}
    text = "".join(parts.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*)", glob))
    return re.compile(f"(?:.*/)?{text}" if glob.startswith("*.") else text)
