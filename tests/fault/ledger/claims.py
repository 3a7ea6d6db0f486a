"""Holds what a worker says of itself at `/conservation` against Kafka's offsets and the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from tests.fault.ledger.ledger import Found
from tests.fault.ledger.signals import Nothing, read

SIGNALS = {"thumbs": "thumbs", "rerolls": "reroll", "traces": "trace", "ramp-steps": "ramp_step"}
"""Topic -> the signal's name in the answer."""
STATES = ("done", "superseded", "dead_lettered", "parked", "filtered")
WINDOW_SECONDS = 86_400


def conservation(url: str) -> dict[str, Any]:
    """By signal. `url`: where a worker listens."""
    answer = httpx.get(url + "/conservation", params={"window": WINDOW_SECONDS}, timeout=30).raise_for_status()
    found: dict[str, Any] = answer.json()["signals"]
    return found


def false_claims(found: Found, signals: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Every record was consumed once and ended in one state; the bad ones, and no others but requests in conflict, as
    dead letters, and those that change nothing as filtered."""
    bad = Counter(topic for topic, _, _ in found.expected.bad)
    nothing = Counter(r.topic for r in found.records if isinstance(read(r.topic, r.value), Nothing))
    for topic, name in SIGNALS.items():
        said = signals.get(name, {})
        records = sum(end for (of, _), end in found.ends.items() if of == topic)
        states = {state: said.get(state, 0) for state in STATES}
        if said.get("consumed", 0) != records:
            yield f"{topic} has {records} records, and {said.get('consumed', 0)} are said to be consumed"
        if sum(states.values()) != records:
            yield f"{topic} has {records} records, and the states are said to be {states}"
        conflicts = sum(of == topic for of, _, _ in found.expected.conflicts)
        if not bad[topic] <= states["dead_lettered"] <= bad[topic] + conflicts:
            yield f"{topic} has {bad[topic]} bad records, and {states['dead_lettered']} are said to be dead-lettered"
        if states["filtered"] != nothing[topic]:
            yield f"{nothing[topic]} records of {topic} change nothing; {states['filtered']} are said to be filtered"
