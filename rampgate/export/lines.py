"""Writes a turn as a line of an export (contracts §5)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from evalcore.judges.bindings import SAID, Unbound, as_text, resolve
from schemas.answers import TurnView
from schemas.verticals import TraceLayout

COPIED = ("response_id", "vertical", "sub_agent", "prompt_version", "category", "timestamp")


def line(view: TurnView, layout: TraceLayout) -> dict[str, Any]:
    """The fields of a turn that was read whole, whose trace is laid out so."""
    return {
        "trace_id": view.trace.get("id"),
        **{name: getattr(view, name) for name in COPIED},
        "user_query": said(view, "question", layout),
        "agent_response": said(view, "answer", layout),
        "judge_scores": {judge.judge_id: judge.score for judge in view.judge_scores},
        "feedback_scores": dict(view.feedback_scores),
    }


def said(view: TurnView, name: Literal["question", "answer"], layout: TraceLayout) -> str | None:
    """Returns the text as judges read it: what the binding of that name finds, else the whole input or output. None
    where the trace has none, or is too long to be read."""
    try:
        return as_text(resolve(name, view.trace, layout))
    except Unbound:
        whole = view.trace.get(SAID[name])
        return None if whole is None else as_text(whole)


def encoded(lines: Iterable[dict[str, Any]]) -> bytes:
    """JSON Lines in ASCII: a reader that ends lines at U+2028, or knows no lone surrogates, reads the same texts."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in lines)
