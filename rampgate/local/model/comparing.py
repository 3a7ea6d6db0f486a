"""Answers a question about two answers: the number of the one that is better by the rule that judges single ones. Pure.

Such a question has one JSON object with fields `first_…` and `second_…`. It shares no code with what asks it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rampgate.local.model import judging

FIRST, SECOND = "first_", "second_"
SHARE = judging.Wanted("number", 0.0, 1.0)


def asked_for_the_better(messages: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Returns the texts of both answers; None where a single one is to be judged."""
    for line in str(messages[-1].get("content")).splitlines():
        try:
            turn = json.loads(line) if line.startswith("{") else None
        except (ValueError, RecursionError):
            continue
        if isinstance(turn, dict):
            first, second = (_of_side(turn, side) for side in (FIRST, SECOND))
            return (first, second) if first is not None and second is not None else None
    return None


def better(first: str, second: str) -> dict[str, Any]:
    """Returns the answer: 1 or 2, and 0 where both are as good. One that is not applicable is as good as none."""
    shares = [share if isinstance(share := judging.judged(text, SHARE)[0], float) else 0.0 for text in (first, second)]
    score = 0 if shares[0] == shares[1] else 1 if shares[0] > shares[1] else 2
    return {"reason": "Stand-in, no language model: by each text alone.", "score": score}


def _of_side(turn: Mapping[str, Any], side: str) -> str | None:
    fields = [json.dumps(value) for name, value in turn.items() if name.startswith(side)]
    return "\n".join(fields) if fields else None
