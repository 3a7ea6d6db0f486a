"""Reads how an agent came to its answer, whichever framework wrote it down. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

READ: Final = ("messages", "spans")
"""Fields in which frameworks write it down."""


def in_one_form(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the answer with its way in the contracts' form: from LangGraph's `messages`, the `spans` of OpenAI's
    Agents SDK, or those of Opik, beside which its `trace` may be. What the answer says in that form itself stands; what
    can't be read stays as it is, and so unknown."""
    if answer.keys().isdisjoint(READ):
        return dict(answer)
    from evalcore.trajectory.langgraph import are_messages, trace_of_messages
    from evalcore.trajectory.openai_agents import are_agents_spans, trace_of_agents
    from evalcore.trajectory.opik import are_opik_spans, trace_of_opik

    messages, spans, trace = answer.get("messages"), answer.get("spans"), answer.get("trace")
    try:
        if are_messages(messages):
            found = trace_of_messages(messages)
        elif are_agents_spans(spans):
            found = trace_of_agents(spans)
        elif are_opik_spans(spans):
            found = trace_of_opik(spans, trace if isinstance(trace, Mapping) else None)
        else:
            return dict(answer)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return dict(answer)
    return found | {name: value for name, value in answer.items() if name not in READ}
