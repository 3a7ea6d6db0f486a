"""What is read of a cluster: objects as they are, and why one could not be read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

Object = Mapping[str, Any]
"""An object of the cluster, as its API answers it: `metadata`, `spec`, `status`."""

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
LONGEST_NAME: Final = 253


def is_name(name: object) -> bool:
    """Tells whether it is a name of Kubernetes (an RFC 1123 subdomain), which alone may stand in a URL."""
    return isinstance(name, str) and len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None


def is_namespace(name: object) -> bool:
    """Tells whether it is a namespace's name (an RFC 1123 label)."""
    return is_name(name) and len(str(name)) <= 63 and "." not in str(name)


def part(of: object, name: str) -> Mapping[str, Any]:
    """Returns a part of an object that is one itself; an empty one where there is none."""
    found = of.get(name) if isinstance(of, Mapping) else None
    return found if isinstance(found, Mapping) else {}


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
