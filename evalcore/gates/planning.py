"""Plans the gates of a change by the paths it touches, without those that overrides skip (PC5 §5.5). Pure."""

from __future__ import annotations

from collections.abc import Iterable
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
    """An override that holds from the merge on, as the audit has it."""

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
    *,
    today: date,
    table: GatePathsFile = DEFAULT,
    pull: PullRequest | None = None,
) -> Plan:
    """Plans the gates of the changed files. A path that no pattern fits triggers all gates; a renamed file triggers
    those of both its names. Only `pre_ramp` and `pre_full` can be skipped, once the pull request is merged."""
    files = tuple(found for one in dict.fromkeys(changed) for found in _triggered(one, table))
    wanted = {gate for file in files for gate in file.gates}
    skipped, wrong = _overrides(pull, today) if pull is not None else ((), ())
    held = {skip.milestone for skip in skipped if pull is not None and pull.merged_as}
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


def _overrides(pull: PullRequest, today: date) -> tuple[tuple[Skip, ...], tuple[str, ...]]:
    labels = [label for label in dict.fromkeys(pull.labels) if label.startswith("eval-skip-")]
    wrong = [
        f"{label}: there is no such override; there are {', '.join(LABELS)}" for label in labels if label not in LABELS
    ]
    known = [label for label in labels if label in LABELS]
    if not known:
        return (), tuple(wrong)
    block, why = read_block(BLOCK, pull.description, today, "milestones")
    why = [*why, *unsigned(BLOCK, pull.description), *unapproved(pull)]
    skips = []
    for label in known:
        named = block.get("milestones")
        if why:
            wrong += [f"{label}: {reason}" for reason in why]
        elif not isinstance(named, list) or LABELS[label] not in named:
            wrong.append(f"{label}: {BLOCK}: milestones does not name {LABELS[label]}")
        else:
            text = text_of(block, "justification")
            skips.append(Skip(LABELS[label], label, pull.approved_by, text, block["expires"]))
    return tuple(skips), tuple(wrong)
