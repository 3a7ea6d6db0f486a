"""The oracle of made-up traffic: what Opik, coverage, conservation and the dead letters must say at the end.

It knows the contracts (§1, §2) and none of our code: it never imports agents, streams or schemas. It looks at the
events of a turn as a set, so it can't depend on their order of arrival.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.fault.traffic import Traffic
from tests.fault.turns import REROLL, THUMBS, Message

KIND: dict[str, str] = {"thumbs": "thumbs", "rerolls": "reroll", "traces": "trace"}


@dataclass
class Expected:
    scores: dict[tuple[str, str], float]
    coverage: Counter[tuple[str, str]]
    consumed: Counter[str]
    filtered: Counter[str]
    garbage: Counter[tuple[str, bytes | None, bytes | None]]
    """(topic, key, value) of each record that can't be decoded."""
    missing: set[str]
    """Turns with a standing signal and no trace anywhere."""


def foretell(traffic: Traffic, messages: list[Message] | None = None) -> Expected:
    """What must stand at the end, when all of `messages` (default: all there are) were consumed."""
    sent = traffic.messages if messages is None else messages
    scores: dict[tuple[str, str], float] = {}
    coverage: Counter[tuple[str, str]] = Counter()
    missing = set()
    for turn in traffic.turns:
        known = turn.trace_in == "event" or (turn.trace_in == "opik" and turn.active)
        if known and turn.active:
            coverage[turn.vertical, "both_present"] += 1
            if turn.thumb:
                scores[turn.trace_id, THUMBS] = float(turn.thumb)
            scores[turn.trace_id, REROLL] = 1.0 if turn.rerolled else 0.0
        elif known and turn.judged != "no":
            coverage[turn.vertical, "missing_signal"] += 1
        elif not known and turn.active:
            # Of this traffic a reroll's event names its vertical, a thumb's does not (contracts §2, PF-9 FR-11).
            coverage[turn.vertical if turn.rerolls else "unknown", "missing_trace"] += 1
            missing.add(turn.response_id)
    return Expected(
        scores,
        coverage,
        Counter(KIND[m.topic] for m in sent),
        Counter({KIND[topic]: n for topic, n in traffic.filtered.items()}),
        Counter((m.topic, m.key, m.value) for m in traffic.garbage),
        missing,
    )
