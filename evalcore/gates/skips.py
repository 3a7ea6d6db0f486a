"""Says which gate of a rollout an override skips, and what a skip leaves of it (PC5 §5.5). Pure.

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


@dataclass(frozen=True)
class GateSkip:
    """An override that skips a gate until the end of the day `expires`, as its topic has it."""

    gate: SkippedGate
    event_id: str
    author: str
    approved_by: str
    where: str
    expires: date
    at: datetime = field(compare=False)

    def holds(self, gate: SkippedGate, today: date) -> bool:
        """Tells whether it skips this gate today. One that runs for longer than any override may skips nothing."""
        return self.gate == gate and today <= self.expires <= today + LONGEST_OVERRIDE


def read_skip(record: Mapping[str, Any]) -> GateSkip | None:
    """Returns the skip that a record of the overrides' topic is. None for every other override, for a skip that names
    no agent definition, which leaves out a gate of CI alone, and for one that its author allowed."""
    try:
        told = _OVERRIDE.validate_python(record)
        expires = date.fromisoformat(told["expires"])
    except (ValidationError, ValueError):
        return None
    gate = SkippedGate(told.get("milestone", ""), told.get("agent_id", ""), told.get("agent_version", ""))
    people = told["author"], told["approved_by"]
    author, approved_by = (clean(name.strip().removeprefix("@"), LONGEST_NAME) for name in people)
    if told["kind"] != "gate_skip" or gate.milestone not in SKIPPABLE or not (gate.agent_id and gate.agent_version):
        return None
    if not told["event_id"] or not author or not approved_by or author.casefold() == approved_by.casefold():
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
            self.known.put(skip.gate, tuple(kept), {"agent_id": skip.gate.agent_id})

    def of(self, gate: SkippedGate, today: date) -> GateSkip | None:
        """Returns the override that skips this gate today; None where the gate runs whole."""
        holding = [skip for skip in self.known.get(gate) or () if skip.holds(gate, today)]
        return holding[-1] if holding else None


def skipped(made: GateVerdict, skip: GateSkip) -> GateVerdict:
    """Returns the verdict of the judges that a skip leaves, with the override cited. It is a warning at best, so that
    nobody takes it for a pass of the whole gate."""
    who = f"{skip.author} in {skip.where}, allowed by {skip.approved_by} until {skip.expires.isoformat()}"
    message = f"override {skip.event_id} of {who}, skips {skip.gate.milestone}: only the safety judges decided"
    cited = Reason(Code.GATE_SKIPPED, message)
    failed = made.verdict is VerdictLevel.FAIL
    reasons = [*made.reasons, cited] if failed else [cited, *made.reasons]
    return replace(made, verdict=combined([made.verdict, VerdictLevel.WARN]), reasons=reasons)
