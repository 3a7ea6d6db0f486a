"""Makes preference pairs of chains of rerolled answers: the last one, which the user kept, against each earlier one
(PF-9 FR-12). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from evalcore.selection.where import Where, matches
from rampgate.export.chains import Chain
from rampgate.export.lines import said
from schemas.answers import TurnView
from schemas.signals import THUMBS
from schemas.verticals import TraceLayout

CUT: Final = "chains_cut_by_window"
LIMIT: Final = "chains_cut_by_limit"
VOTED_DOWN: Final = "chains_whose_last_was_voted_down"
WITHOUT_TEXT: Final = "pairs_without_text"
OTHER_QUERY: Final = "pairs_of_different_queries"
SAME_ANSWER: Final = "pairs_of_equal_answers"
LEFT_OUT: Final = {
    CUT: "chains of rerolls reach, or may yet reach, beyond the window; ask for a longer one, or later",
    LIMIT: "chain of rerolls has more pairs than the limit leaves room for",
    VOTED_DOWN: "chains of rerolls end with an answer that was voted down too",
    WITHOUT_TEXT: "pairs lack a text: a trace has none, or is too long to be read",
    OTHER_QUERY: "pairs answer different queries, though the first was rerolled",
    SAME_ANSWER: "pairs have the same answer twice",
}
"""What is not exported, and what is said of it."""


def pairs(
    chains: Sequence[Chain], where: Where, layout: TraceLayout, left_out: Counter[str]
) -> Iterator[list[dict[str, Any]]]:
    """The lines of each chain that has some. The filter picks the rejected answers. Counts in `left_out` what it would
    have picked."""
    for chain in chains:
        *earlier, last = chain.answers
        picked = [view for view in (chain.answers if chain.cut else earlier) if matches(where, view)]
        if not picked:
            continue
        if chain.cut:
            left_out[CUT] += 1
        elif last.feedback_scores.get(THUMBS.score, 0.0) < 0:
            left_out[VOTED_DOWN] += 1
        elif lines := [line for view in picked if (line := pair(last, view, layout, left_out)) is not None]:
            yield lines


def pair(chosen: TurnView, rejected: TurnView, layout: TraceLayout, left_out: Counter[str]) -> dict[str, Any] | None:
    """A line; None, and counted, where the two tell nothing of what the user prefers as an answer to one query."""
    query = said(chosen, "question", layout)
    better, worse = (said(view, "answer", layout) for view in (chosen, rejected))
    if query is None or better is None or worse is None:
        left_out[WITHOUT_TEXT] += 1
    elif chosen.trace.get("input") != rejected.trace.get("input"):
        left_out[OTHER_QUERY] += 1
    elif better == worse:
        left_out[SAME_ANSWER] += 1
    else:
        return {
            "chosen_trace_id": chosen.trace.get("id"),
            "rejected_trace_id": rejected.trace.get("id"),
            "chosen_response_id": chosen.response_id,
            "rejected_response_id": rejected.response_id,
            **{name: getattr(chosen, name) for name in ("vertical", "sub_agent", "category", "timestamp")},
            "user_query": query,
            "chosen": better,
            "rejected": worse,
        }
    return None


def shown(lines: Sequence[dict[str, Any]]) -> list[str]:
    """The responses of which the lines hold texts, each once."""
    return sorted({line[name] for line in lines for name in ("chosen_response_id", "rejected_response_id")})
