"""Holds the settings that handlers read: made once, frozen, passed down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evalcore.remediation.sealing import TraceForms
from schemas.verticals import TraceLayout


@dataclass(frozen=True)
class Attributes:
    """Names of the thumbs table's attributes (contracts §1)."""

    message_id: str = "MessageId"
    user_id: str = "UserId"
    response_id: str = "ResponseId"
    thumbs: str = "Thumbs"
    created_at: str = "CreatedAt"
    vertical: str = "Vertical"


@dataclass(frozen=True)
class Policy:
    """Durations in ms. `doubt`: how long a write without an answer may still change a score; a step sends its writes
    within half of it, and what was sent is applied within the other half."""

    write: bool = True
    mirror_legacy_names: bool = False
    lookback: int = 7 * 86_400_000
    missing_trace: int = 900_000
    trace_lookup: int = 500
    judge_settle: int = 300_000
    future: int = 86_400_000
    doubt: int = 480_000
    reroll_window: int = 300_000
    reroll_windows: Mapping[str, int] = field(default_factory=dict)
    layouts: Mapping[str, TraceLayout] = field(default_factory=dict)
    max_record_bytes: int = 1_000_000
    attributes: Attributes = Attributes()
    own_key: bytes = field(default=b"", repr=False)
    """Signs traces of our own judge calls, which are never joined or judged; empty: none is known to be ours."""
    forms: TraceForms = field(default_factory=TraceForms)
    """What a trace's record is: whether it waits to be completed with its workflow."""
    enrichment_wait: int = 1_200_000

    def window_of(self, vertical: str) -> int:
        """The vertical's reroll window, else the default (PF-9 §5.4)."""
        return self.reroll_windows.get(vertical, self.reroll_window)
