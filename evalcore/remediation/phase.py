"""Derives the phase of a remediation workflow from its conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any


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
    the spec no workflow is completed, as no one knows its last step."""
    raise NotImplementedError
