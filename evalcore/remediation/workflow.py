"""Puts a workflow together: its Proposal, and what was read of the children that the Proposal names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from evalcore.remediation.objects import Kinds, Missing, Object, Why
from evalcore.remediation.phase import Phase

STEPS: Final = ("analysis", "execution", "verification", "escalation")
"""The steps whose results a Proposal names, in the order of a workflow."""


class Step(StrEnum):
    """What is known of a step. RAN; BROKE: its last attempt that was read has a `failureReason`; ABSENT: no attempt is
    named; UNREAD: attempts are named, and none could be read."""

    RAN = "ran"
    BROKE = "broke"
    ABSENT = "absent"
    UNREAD = "unread"


@dataclass(frozen=True)
class Child:
    """A result that a Proposal names in `status.steps.<step>.results[]`."""

    step: str
    kind: str
    name: str

    @property
    def what(self) -> str:
        """Its name in `proposal_missing`."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True)
class Workflow:
    """A workflow as judges read it. `results`: step -> the complete statuses, in the list's order. `steps`: analysis,
    execution and verification. `summary`: Markdown. `ended_ms`: the transition that made it terminal, ms since 1970,
    None where it has not ended or does not say."""

    phase: Phase
    results: Mapping[str, Sequence[Mapping[str, Any]]]
    steps: Mapping[str, Step]
    missing: Sequence[Missing]
    summary: str
    request: str
    ended_ms: int | None

    @property
    def unread(self) -> Sequence[Missing]:
        """Returns what a later look may still read: the cluster could not be asked."""
        raise NotImplementedError

    def fields(self) -> dict[str, Any]:
        """Returns the fields of a trace's record that we add and seal: `proposal_results`, `proposal_phase`,
        `proposal_steps`, `proposal_missing` (contracts §1)."""
        raise NotImplementedError


def children(proposal: Object, kinds: Kinds) -> tuple[list[Child], list[Missing]]:
    """Returns the children that a Proposal names, each once, and those whose names are no names of Kubernetes (they are
    never asked for) or are named twice."""
    raise NotImplementedError


def workflow_of(
    proposal: Object | Why, read: Mapping[Child, Object | Why], what: str, missing: Sequence[Missing] = ()
) -> Workflow:
    """Returns the workflow of a Proposal and of what was read of each child. Of a Proposal that could not be read
    (`what`: `Proposal/name`) everything is missing and nothing has ended. Results are cut at 256 KiB, which
    `proposal_missing` says. Never raises, whatever the statuses hold."""
    raise NotImplementedError


def standing(proposal: Object, uid: str | None, began_ms: int, ended_ms: int) -> Why | None:
    """Returns why a Proposal is not that of a trace which began and ended then: another uid than first seen (None: not
    seen yet) or created more than a minute after the trace ended is REPLACED, created more than a minute before it
    began NOT_ALLOWED; None where it is."""
    raise NotImplementedError
