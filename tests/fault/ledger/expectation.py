"""Works out, from records alone, what must stand at the end (contracts §1 to §3).

The rules: an item's highest sequence number is its thumb; a turn that was rerolled, or whose user said the same again
in the same session within five minutes, has a reroll; a turn with a thumb and no reroll has a reroll of 0; a thumb that
was withdrawn leaves neither itself nor that 0. A bad record is one dead letter. A request's first body is answered
once, and another body with its id is a dead letter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from tests.fault.ledger.kafka_log import Record
from tests.fault.ledger.signals import Request, Reroll, Thumb, Trace, read

THUMBS, REROLL = "user_signal_thumbs", "user_signal_reroll"
AGAIN_SECONDS = 300.0
At = tuple[str, int, int]


@dataclass
class Expectation:
    scores: dict[tuple[str, str], float] = field(default_factory=dict)
    """(trace, name) -> the value of each user signal that must stand in Opik; no other may."""
    bad: dict[At, Record] = field(default_factory=dict)
    """Every record that no one can read."""
    conflicts: dict[At, Record] = field(default_factory=dict)
    """Requests whose id was seen with another body; which of two bodies came first is for the worker to say where they
    are in two partitions, so all with that id are here."""
    requests: dict[str, list[Request]] = field(default_factory=dict)
    """Request id -> what asked; each id has one verdict."""
    waiting: set[str] = field(default_factory=set)
    """Responses with a standing signal and no trace so far: nothing can be written of them."""
    projects: set[str] = field(default_factory=set)


def expectation(records: Iterable[Record], opik_traces: Mapping[str, str]) -> Expectation:
    """`opik_traces`: response -> trace, where Opik knows of one; a trace's own record says the same or more."""
    found = Expectation()
    thumbs: dict[str, Thumb] = {}
    rerolled: set[str] = set()
    traces: dict[str, str] = dict(opik_traces)
    sessions: defaultdict[tuple[str, str], dict[str, Trace]] = defaultdict(dict)
    asked: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        match read(record.topic, record.value):
            case None:
                found.bad[record.at] = record
            case Thumb(response, sequence) as thumb:
                if response not in thumbs or sequence > thumbs[response].sequence:
                    thumbs[response] = thumb
            case Reroll(response):
                rerolled.add(response)
            case Trace() as trace:
                traces[trace.response] = trace.trace
                found.projects.add(trace.project)
                if trace.session and trace.ended is not None:
                    sessions[trace.session, trace.said][trace.response] = trace
            case Request() as request:
                found.requests.setdefault(request.request, []).append(request)
                asked[request.request].append(record)
    rerolled |= said_again(sessions.values())
    for response in thumbs.keys() | rerolled:
        value = thumbs[response].value if response in thumbs else 0
        if not value and response not in rerolled:
            continue
        if response not in traces:
            found.waiting.add(response)
            continue
        if value:
            found.scores[traces[response], THUMBS] = float(value)
        found.scores[traces[response], REROLL] = 1.0 if response in rerolled else 0.0
    for name, requests in found.requests.items():
        if len({request.body for request in requests}) > 1:
            found.conflicts |= {record.at: record for record in asked[name]}
    return found


def said_again(groups: Iterable[Mapping[str, Trace]]) -> set[str]:
    """Responses after which the same was said in the same session, within five minutes of their end."""
    found = set()
    for group in groups:
        ordered = sorted(group.values(), key=lambda trace: trace.started)
        for before, after in pairwise(ordered):
            if before.ended is not None and 0 <= after.started - before.ended <= AGAIN_SECONDS:
                found.add(before.response)
    return found
