"""Writes a turn as a line of an export (contracts §5)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from evalcore.judges.bindings import as_text
from schemas.answers import TurnView

COPIED = ("response_id", "vertical", "sub_agent", "prompt_version", "category", "timestamp")


def line(view: TurnView) -> dict[str, Any]:
    """The fields of a turn that was read whole. A text stands as judges see it (`as_text`); null where the trace has
    none, or is too long to be read."""
    return {
        "trace_id": view.trace.get("id"),
        **{name: getattr(view, name) for name in COPIED},
        "user_query": said(view, "input"),
        "agent_response": said(view, "output"),
        "judge_scores": {judge.judge_id: judge.score for judge in view.judge_scores},
        "feedback_scores": dict(view.feedback_scores),
    }


def said(view: TurnView, field: str) -> str | None:
    value = view.trace.get(field)
    return None if value is None else as_text(value)


def encoded(lines: Iterable[dict[str, Any]]) -> bytes:
    """JSON Lines in ASCII: a reader that ends lines at U+2028, or knows no lone surrogates, reads the same texts."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in lines)
