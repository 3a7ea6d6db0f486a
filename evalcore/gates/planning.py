"""Plans the gates of a change by the paths it touches, without those that overrides skip (PC5 §5.5). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from evalcore.gates.overrides import PullRequest, read_block, text_of, unapproved, unsigned
from evalcore.registry.gate_paths import DEFAULT, Triggered, triggered
from schemas.judges import Milestone
from schemas.manifests import GatePathsFile

LABELS: Final = {"eval-skip-pre-ramp": Milestone.PRE_RAMP, "eval-skip-pre-full": Milestone.PRE_FULL}
BLOCK: Final = "eval-skip-justification"


@dataclass(frozen=True)
class Renamed:
    """A changed file that had another name before."""

    old: str
    new: str


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


def plan(
    changed: Iterable[str | Renamed],
    labels: Iterable[str] = (),
    description: str = "",
    *,
    today: date,
    table: GatePathsFile = DEFAULT,
    pull: PullRequest | None = None,
) -> Plan:
    """Plans the gates of the changed files. A path that no pattern fits triggers all gates; a renamed file triggers
    those of both its names. Only `pre_ramp` and `pre_full` can be skipped, and nothing is without what the host says of
    the pull request."""
    files = tuple(found for one in dict.fromkeys(changed) for found in _triggered(one, table))
    wanted = {gate for file in files for gate in file.gates}
    asked = [label for label in dict.fromkeys(labels) if label.startswith("eval-skip-")]
    skipped, wrong = _overrides(asked, description, today, pull)
    held = {skip.milestone for skip in skipped}
    return Plan(
        tuple(gate for gate in Milestone if gate in wanted and gate not in held),
        files,
        tuple(skip for skip in skipped if skip.milestone in wanted),
        wrong,
    )


def _triggered(changed: str | Renamed, table: GatePathsFile) -> tuple[Triggered, ...]:
    if isinstance(changed, str):
        return (triggered(changed, table),)
    return replace(triggered(changed.old, table), renamed_to=changed.new), triggered(changed.new, table)


def _overrides(
    labels: Sequence[str], description: str, today: date, pull: PullRequest | None
) -> tuple[tuple[Skip, ...], tuple[str, ...]]:
    if not labels:
        return (), ()
    wrong = [
        f"{label}: there is no such override; there are {', '.join(LABELS)}" for label in labels if label not in LABELS
    ]
    known = [label for label in labels if label in LABELS]
    if not known:
        return (), tuple(wrong)
    block, why = read_block(BLOCK, description, today, "milestones")
    why = [*why, *unsigned(BLOCK, description), *unapproved(BLOCK, block, pull)]
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
