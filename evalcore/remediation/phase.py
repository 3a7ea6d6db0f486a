"""Derives the phase of a remediation workflow from its conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

RETRYING: Final = "RetryingExecution"
"""The reason of a step that failed and is executed again: no failure."""


class Phase(StrEnum):
    """Where a workflow stands; all but IN_PROGRESS are terminal."""

    DENIED = "Denied"
    ESCALATED = "Escalated"
    FAILED = "Failed"
    COMPLETED = "Completed"
    IN_PROGRESS = "InProgress"

    @property
    def terminal(self) -> bool:
        """Whether the workflow has ended."""
        return self is not Phase.IN_PROGRESS


def derive_phase(conditions: Sequence[Mapping[str, Any]], spec: Mapping[str, Any] | None = None) -> Phase:
    """Returns the phase that the conditions of a Proposal's status come to; the first rule that matches wins. Without
    the spec no workflow is completed, as its last step is unknown."""
    return decided(conditions, spec)[0]


def decided(conditions: Any, spec: Any = None) -> tuple[Phase, Mapping[str, Any]]:
    """Returns the phase, and the condition that made it so; an empty one where the workflow has not ended. What is no
    condition is passed over; of two of one type the first counts, as for the operator."""
    found = conditions_of(conditions)

    def of(kind: str) -> Mapping[str, Any]:
        return next((one for one in found if one.get("type") == kind), {})

    def status(kind: str) -> Any:
        return of(kind).get("status")

    if status("Denied") == "True":
        return Phase.DENIED, of("Denied")
    match status("Escalated"):
        case "True":
            return Phase.ESCALATED, of("Escalated")
        case "Unknown":
            return Phase.IN_PROGRESS, {}
        case "False":
            return Phase.FAILED, of("Escalated")
    if status("EmergencyStopped") == "True":
        return Phase.FAILED, of("EmergencyStopped")
    for kind in ("Analyzed", "Executed", "Verified"):
        if status(kind) == "False" and of(kind).get("reason") != RETRYING:
            return Phase.FAILED, of(kind)
    last = _last(spec)
    if last is not None and status(last) == "True":
        return Phase.COMPLETED, of(last)
    return Phase.IN_PROGRESS, {}


def conditions_of(conditions: Any) -> list[Mapping[str, Any]]:
    """Returns what of a status's list of conditions is one."""
    return [one for one in conditions if isinstance(one, Mapping)] if isinstance(conditions, list | tuple) else []


def _last(spec: Any) -> str | None:
    """Returns the condition of the last step that the spec has; an empty step counts, as it names the defaults."""
    if not isinstance(spec, Mapping):
        return None
    for step, kind in (("verification", "Verified"), ("execution", "Executed")):
        if spec.get(step) is not None:
            return kind
    return "Analyzed"
