"""Events of one turn in the plain form, as small as they may be: a trace judged before, and a thumb."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from uuid6 import uuid7

PROJECT = "receipts-eval"


def trace_event(rid: str, vertical: str | None, at: datetime, trace: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "event_id": f"trace {rid}",
        "trace_id": trace or str(uuid7()),
        "response_id": rid,
        "project_name": PROJECT,
        "started_at": at.isoformat(),
        "ended_at": at.isoformat(),
        "metadata": {"vertical": vertical, "sub_agent": vertical},
        "feedback_scores": [{"name": "response_quality", "value": 0.5}],
    } | more


def thumb(rid: str, at: datetime, value: str | None = "down") -> dict[str, Any]:
    return {"event_id": f"thumb {rid} {value}", "response_id": rid, "value": value, "occurred_at": at.isoformat()}
