"""What is read of a cluster: objects as they are, and why one could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Object = Mapping[str, Any]
"""An object of the cluster, as its API answers it: `metadata`, `spec`, `status`."""


class Why(StrEnum):
    """Why something of a workflow was not read, or does not count."""

    NOT_FOUND = "not_found"
    FORBIDDEN = "forbidden"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    TOO_LARGE = "too_large"
    MALFORMED = "malformed"
    BAD_NAME = "bad_name"
    NOT_ALLOWED = "not_allowed"
    REPLACED = "replaced"
    NOT_ENDED = "not_ended"


UNREAD = frozenset({Why.FORBIDDEN, Why.UNREACHABLE, Why.TIMED_OUT})
"""The cluster could not be asked: a later look may answer."""


@dataclass(frozen=True)
class Missing:
    """What of a workflow is missing (`Kind/name`), and why."""

    what: str
    why: Why


@dataclass(frozen=True)
class Kinds:
    """Group, version and kinds of the operator's objects; settings, since Proposal is called AgenticRun since."""

    group: str = "agentic.openshift.io"
    version: str = "v1alpha1"
    proposal: str = "Proposal"
    analysis: str = "AnalysisResult"
    execution: str = "ExecutionResult"
    verification: str = "VerificationResult"
    escalation: str = "EscalationResult"
