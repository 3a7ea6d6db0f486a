"""Works out from records alone what a verdict must say of its sample, and compares it with what it says and with what
judges were shown (contracts §3, "The sample is the traffic").

Whatever was under way when a gate drew its sample, its figures add up. Of a closing request, which was sent when all
else was consumed, they are exact: every turn of the version in the window is pooled, or left out for its reason.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from tests.fault.ledger.expectation import said_again
from tests.fault.ledger.kafka_log import Record
from tests.fault.ledger.signals import Request, Reroll, Thumb, Trace, read

CLOSING = "closing-"
WANTED = 200
"""Turns that pre_ramp aims at, as the registry of the run has it."""
POOL = 600
HOUR = 3_600.0
SLACK = 5.0
"""Seconds by which what ends or becomes too old just now may count either way."""
Draw = set[tuple[str, str]]
"""(turn, trace) of each item that judges were shown at once."""
REASONS = frozenset(("record_not_come", "dead_lettered", "not_ended", "beyond_pool"))


@dataclass
class Traffic:
    """Turns of a version under a vertical: when each one's last trace ended and which that is, when those began that
    have not ended, and those whose record is bad. `rated`: with a standing thumb; `withdrawn`: with one taken back."""

    ended: dict[str, tuple[float, str]] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    bad: dict[str, float] = field(default_factory=dict)
    rated: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    rerolled: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    """Turns of which any record of a trace came, of whichever version."""

    @property
    def unseen(self) -> set[str]:
        """Turns with a signal and without a trace's record: Opik alone may know whose they are."""
        return (self.rated | self.withdrawn | self.rerolled) - self.known


def traffic(records: Iterable[Record], asked: Request, before: int) -> Traffic:
    """What was sent before that time (ms)."""
    found = Traffic()
    thumbs: dict[str, Thumb] = {}
    sessions: defaultdict[tuple[str, str], dict[str, Trace]] = defaultdict(dict)
    for record in records:
        if record.timestamp >= before:
            continue
        match read(record.topic, record.value):
            case Thumb(response, sequence) as thumb:
                if response not in thumbs or sequence > thumbs[response].sequence:
                    thumbs[response] = thumb
            case Reroll(response):
                found.rerolled.add(response)
            case Trace() as trace:
                found.known.add(trace.response)
                if trace.session and trace.ended is not None:
                    sessions[trace.session, trace.said][trace.response] = trace
                if (trace.version, trace.vertical) == (asked.version, asked.vertical):
                    _place(found, trace)
            case None if record.topic == "traces":
                _place_bad(found, record, asked)
    found.rerolled |= said_again(sessions.values())
    for response, thumb in thumbs.items():
        (found.rated if thumb.value else found.withdrawn).add(response)
    return found


def _place(found: Traffic, trace: Trace) -> None:
    if trace.ended is None:
        found.running[trace.response] = trace.started
    else:
        last = found.ended.get(trace.response)
        found.ended[trace.response] = max(last or (0.0, ""), (trace.ended, trace.trace))


def _place_bad(found: Traffic, record: Record, asked: Request) -> None:
    """A bad record that says all the same whose it is."""
    try:
        content = json.loads(record.value or b"")
        found.known.add(content["response_id"])
        told = content["metadata"]
        if (told["agent_version"], told["vertical"]) == (asked.version, asked.vertical):
            found.bad[content["response_id"]] = datetime.fromisoformat(content["ended_at"]).timestamp()
    except (ValueError, KeyError, TypeError, RecursionError):
        return


def sample_differences(
    records: Sequence[Record], verdicts: Iterable[Record], events: Iterable[Record], *, drawn_again: bool = False
) -> Iterator[str]:
    """One line for each. `events` are judges' scores. `drawn_again`: the store lost samples, so that a gate under way
    may have drawn another one."""
    asked: dict[str, tuple[Request, int]] = {}
    for record in records:
        if record.topic == "ramp-steps" and isinstance(request := read(record.topic, record.value), Request):
            asked.setdefault(request.request, (request, record.timestamp))
    draws = _draws(events)
    for record in verdicts:
        verdict: dict[str, Any] = json.loads(record.value or b"")
        name, sample = verdict["request_id"], verdict["sample"]
        if name not in asked:
            continue  # the ledger says so elsewhere
        request, sent = asked[name]
        if sample is not None:
            yield from (f"{name}: {line}" for line in _of_sums(sample))
            shown, wrong = _judged(sample, draws.get(name, []), drawn_again=drawn_again)
            yield from (f"{name}: {line}" for line in wrong)
        if name.startswith(CLOSING):
            if sample is None:
                yield f"{name}: the verdict has no sample"
                continue
            must = traffic(records, request, sent)
            yield from (f"{name}: {line}" for line in _of_closing(must, sample, shown))


def _draws(events: Iterable[Record]) -> Mapping[str, Sequence[Draw]]:
    """By request what judges were shown. A gate puts out all its answers at one moment, and again where it met an
    outage behind them."""
    found: defaultdict[str, defaultdict[str, Draw]] = defaultdict(lambda: defaultdict(set))
    for record in events:
        event = json.loads(record.value or b"{}")
        if event.get("source") == "gate":
            found[event["request_id"]][event["at"]].add((event["response_id"], event["trace_id"]))
    return {request: [*moments.values()] for request, moments in found.items()}


def _of_sums(sample: Mapping[str, Any]) -> Iterator[str]:
    """What holds at any time."""
    left = sample.get("left_out")
    if left is None or sample.get("eligible") is None or sample.get("pooled") is None:
        yield "the sample does not say what is eligible, pooled and left out"
        return
    if sample["eligible"] != sample["pooled"] + sum(left.values()):
        yield f"eligible {sample['eligible']} is not pooled {sample['pooled']} and left out {left}"
    if left.keys() - REASONS:
        yield f"left out for {sorted(left.keys() - REASONS)}"
    if sample["size"] > sample["pooled"]:
        yield f"its size is {sample['size']}, and {sample['pooled']} are pooled"


def _judged(sample: Mapping[str, Any], draws: Sequence[Draw], *, drawn_again: bool) -> tuple[Draw, list[str]]:
    """What judges were shown of the sample, and what is wrong of it: it is the sample by its fingerprint and its size,
    has each turn once, and they were shown no other. A gate out of time asks no judge."""
    named = [draw for draw in draws if _fingerprint(draw) == sample["fingerprint"]]
    shown = named[0] if named else Draw().union(*draws)
    wrong = []
    if draws and not named:
        wrong.append(f"judges were shown {[len(draw) for draw in draws]} items, and none of these is the sample")
    if draws and len(shown) != sample["size"]:
        wrong.append(f"judges were shown {len(shown)} items, and the sample's size is {sample['size']}")
    other = Draw().union(*draws) - shown
    if other and not drawn_again:
        wrong.append(f"judges were shown {len(other)} items that are not in the sample")
    twice = [turn for turn, traces in Counter(turn for turn, _ in shown).items() if traces > 1]
    if twice:
        wrong.append(f"{len(twice)} turns were shown by several traces, such as {twice[0]}")
    return shown, wrong


def _fingerprint(draw: Draw) -> str:
    """As verdicts have it: of the traces' ids, in any order."""
    return sha256("\n".join(sorted(trace.replace("-", "") for _, trace in draw)).encode()).hexdigest()[:32]


def _of_closing(must: Traffic, sample: Mapping[str, Any], shown: Draw) -> Iterator[str]:
    now = datetime.fromisoformat(sample["frozen_at"]).timestamp()
    since = now - sample["window_seconds"]
    pooled = {turn: trace for turn, (ended, trace) in must.ended.items() if since + SLACK < ended}
    if any(abs(ended - since) <= SLACK for ended, _ in must.ended.values()):
        yield "a turn ended just at the window's edge: the run's times are wrong"
    hours = Counter(int(must.ended[turn][0] // HOUR) for turn in pooled)
    beyond = sum(max(count - POOL, 0) for count in hours.values())
    bad = {turn for turn, ended in must.bad.items() if since < ended} - pooled.keys()
    least, most = (
        sum(since < began <= now - HOUR + by for turn, began in must.running.items() if turn not in must.ended)
        for by in (-SLACK, SLACK)
    )
    left = sample.get("left_out") or {}
    said = sample.get("pooled") or 0, left.get("beyond_pool", 0)
    # For a fair draw a gate may leave out more, of hours whose pools have room.
    if sum(said) != len(pooled) or said[1] < beyond or (said[1] and not beyond):
        yield f"pooled and beyond are {said}, must be {(len(pooled) - beyond, beyond)}"
    if sample["size"] != min(WANTED, len(pooled)):
        yield f"its size is {sample['size']}, must be {min(WANTED, len(pooled))}"
    of_opik = left.get("dead_lettered", 0) + left.get("record_not_come", 0) - len(bad)
    if left.get("dead_lettered", 0) > len(bad) or not 0 <= of_opik <= len(must.unseen):
        yield f"left out are {left}, and {len(bad)} turns have a bad record alone"
    if not least <= left.get("not_ended", 0) <= most:
        yield f"{left.get('not_ended', 0)} are said not to have ended, must be {least} to {most}"
    wrong = [one for one in shown if pooled.get(one[0]) != one[1]]
    if wrong:
        yield f"judges were shown {len(wrong)} traces that do not count, such as {wrong[0]}"
    eligible = pooled.keys() | bad | {turn for turn, began in must.running.items() if began <= now - HOUR}
    turns = {turn for turn, _ in shown}
    signals = sample.get("signals") or {}
    for name, standing, more in (("rated", must.rated, must.withdrawn), ("rerolled", must.rerolled, set[str]())):
        one = signals.get(name, {})
        for what, among in (("eligible", eligible), ("sampled", turns)):
            if what == "sampled" and not shown:
                continue
            low, high = len(standing & among & pooled.keys()), len((standing | more) & (among | must.unseen))
            if not low <= one.get(what, -1) <= high:
                yield f"{name}, {what}: {one.get(what)}, must be {low} to {high}"
