"""Tells traces of Rampgate's own judge calls from those that only claim to be some, by a signature.

Traces of judge calls are neither joined nor judged: judging them would make more of them. A name anybody can write into
a trace, and so escape the judges; the signature takes the installation's seal key, and holds for one trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from schemas.seals import Seal

OWN_AGENT: Final = "rampgate-judge"
"""`metadata.agent_id` of Rampgate's own judge calls."""
SIGNATURE: Final = "rampgate_signature"
"""The field of `metadata` that holds the signature."""
_PURPOSE: Final = b"rampgate: traces of our own judges' calls"


def own_key(seal_key: str | None) -> bytes:
    """Return the key of the signatures. Without a configured seal key it is empty: then no signature holds, since a key
    that is only in Redis has whoever can read there."""
    return Seal(seal_key.encode()).purpose(_PURPOSE).key() if seal_key else b""


def signature(key: bytes, trace: bytes) -> str:
    """Return the signature of the trace with this id."""
    return Seal(key).of(trace)


def claimed(metadata: Any) -> bool:
    """Return whether a trace is said to be of one of our own calls."""
    return isinstance(metadata, Mapping) and metadata.get("agent_id") == OWN_AGENT


def is_own(metadata: Any, trace: bytes, key: bytes) -> bool:
    """Return whether it is. Without a key nothing is: what can't be proved is joined and judged."""
    if not key or not claimed(metadata):
        return False
    given = metadata.get(SIGNATURE)
    return isinstance(given, str) and Seal(key).holds(given, trace)
