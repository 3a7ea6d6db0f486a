"""Says what the central log of overrides lets a rollout's gate leave out (PC5 §5.2, §5.5). Pure.

An override that is not in the log holds nowhere. Beside skips it has the entries of enforcement-overrides.yaml: a judge
whose rule file says `warn` where its classification says `block` only warns while the log has the entry, too.

A skip is one agent definition's, at one gate, until it expires. It leaves out the judges of quality and nothing else:
safety judges score and decide as ever, by a sample of which all is asked that a gate asks. So a gate that is skipped
can fail; where it does not, it warns, and names the override.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from evalcore.gates.decision import combined
from evalcore.gates.history import FairMemory
from schemas.dead_letters import clean
from schemas.judges import Milestone
from schemas.manifests import LONGEST_OVERRIDE
from schemas.verdicts import Code, GateVerdict, Reason, VerdictLevel
from schemas.wire_forms import GateOverride
from schemas.zoned_time import is_ahead

SKIPPABLE: Final = (Milestone.PRE_RAMP, Milestone.PRE_FULL)
KEPT: Final = 20_000
"""Gates whose skips are remembered, shared out among agents; of one that is forgotten the gate runs."""
OF_A_GATE: Final = 16
"""Skips of one gate that are remembered, the first to expire."""
LONGEST_NAME: Final = 100
_OVERRIDE: Final = TypeAdapter(GateOverride)


class SkippedGate(NamedTuple):
    """A gate of one agent definition."""

    milestone: str
    agent_id: str
    agent_version: str


class WarningJudge(NamedTuple):
    """A judge that may only warn at a gate, for one vertical; with "" for all."""

    milestone: str
    judge: str
    vertical: str
    kind: str = "enforcement"


@dataclass(frozen=True)
class GateSkip:
    """An override of a gate until the end of the day `expires`, as its topic has it."""

    gate: SkippedGate | WarningJudge
    event_id: str
    author: str
    approved_by: str
    where: str
    expires: date
    at: datetime = field(compare=False)

    def holds(self, today: date) -> bool:
        """Tells whether it holds today. One that runs for longer than any override may never does."""
        return today <= self.expires <= today + LONGEST_OVERRIDE


def read_skip(record: Mapping[str, Any]) -> GateSkip | None:
    """Returns the override of a rollout's gate that a record of their topic is. None for every other, for a skip that
    names no agent definition, and for one that no one but its author allowed."""
    try:
        told = _OVERRIDE.validate_python(record)
        expires = date.fromisoformat(told["expires"])
    except (ValidationError, ValueError):
        return None
    at = told.get("milestone", "")
    gate: SkippedGate | WarningJudge = SkippedGate(at, told.get("agent_id", ""), told.get("agent_version", ""))
    if told["kind"] == "enforcement":
        gate = WarningJudge(at, ", ".join(told.get("judges", [])), told.get("vertical", ""))
    author = clean(told["author"].strip().removeprefix("@"), LONGEST_NAME)
    people = [name for name in map(str.strip, told["approved_by"].replace("@", "").split(",")) if name]
    approved_by = clean(", ".join(name for name in people if name.casefold() != author.casefold()), LONGEST_NAME)
    skips = told["kind"] == "gate_skip" and all(gate)
    if not (skips or isinstance(gate, WarningJudge)) or at not in SKIPPABLE:
        return None
    if not told["event_id"] or not author or not approved_by:
        return None
    where = clean(f"{told['repository']}{told['pull_request']}", LONGEST_NAME)
    return GateSkip(gate, clean(told["event_id"], LONGEST_NAME), author, approved_by, where, expires, told["at"])


class Skips:
    """Takes records of the overrides' topic in any order, also twice. Of those that hold about one gate the last to
    expire counts: one that says it never ends holds for nothing, and hides none that does."""

    def __init__(self) -> None:
        self.known = FairMemory[tuple[GateSkip, ...]](KEPT)

    def __len__(self) -> int:
        return len(self.known)

    def add(self, record: Mapping[str, Any], appended_ms: int) -> None:
        """Adds a record; what is no skip of a rollout's gate is passed over, and what is dated ahead of when it was
        appended."""
        skip = read_skip(record)
        if skip is None or is_ahead(skip.at, appended_ms):
            return
        held = self.known.get(skip.gate) or ()
        if skip not in held:
            kept = sorted([*held, skip], key=lambda one: (one.expires, one.event_id))[:OF_A_GATE]
            self.known.put(skip.gate, tuple(kept), {"agent_id": skip.gate[1]})

    def may_warn(self, judge: str, milestone: Milestone, vertical: str | None, today: date) -> bool:
        """Tells whether an override lets a judge's failure at this gate be a warning today."""
        about = (WarningJudge(milestone, judge, seen) for seen in {"", vertical or ""})
        return any(self.of(gate, today) is not None for gate in about)

    def of(self, gate: SkippedGate | WarningJudge, today: date) -> GateSkip | None:
        """Returns the override that is about this gate today; None where there is none."""
        holding = [skip for skip in self.known.get(gate) or () if skip.holds(today)]
        return holding[-1] if holding else None


def skipped(made: GateVerdict, skip: GateSkip) -> GateVerdict:
    """Returns the verdict of the judges that a skip leaves, with the override cited. It is a warning at best, so that
    no one takes it for a pass of the whole gate."""
    who = f"{skip.author} in {skip.where}, allowed by {skip.approved_by} until {skip.expires.isoformat()}"
    message = f"override {skip.event_id} of {who}, skips {skip.gate.milestone}: only the safety judges decided"
    cited = Reason(Code.GATE_SKIPPED, message)
    failed = made.verdict is VerdictLevel.FAIL
    reasons = [*made.reasons, cited] if failed else [cited, *made.reasons]
    return replace(made, verdict=combined([made.verdict, VerdictLevel.WARN]), reasons=reasons)
