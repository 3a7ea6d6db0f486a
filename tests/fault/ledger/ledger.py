"""Holds what Kafka and Opik have against what must be true at the end of a run, and says what differs.

This folder shares nothing with the product: it imports none of its packages, reads Kafka and Opik itself, and works out
from the contracts what must stand. A test holds that (`tests/unit/repository/test_own_tests.py`).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fault.ledger.expectation import At, Expectation, expectation
from tests.fault.ledger.kafka_log import KafkaLog, Place, Record
from tests.fault.ledger.opik_content import OpikContent, opik_content
from tests.fault.ledger.samples import sample_differences
from tests.fault.ledger.signals import TOPICS, Request

UNREADABLE = frozenset(("malformed", "too_large", "unknown_schema", "unreadable"))
CONFLICT = "conflicting_duplicate"
Scores = Mapping[tuple[str, str], Sequence[float]]
Sent = tuple[str, bytes | None, bytes | None]
"""A record's topic, key and value. Where it went is not always known: a repeated request may be answered without."""


@dataclass(frozen=True)
class Letter:
    """A dead letter: the record's place as its headers name it, and what it carries of the record.

    A worker that ends between a letter and its commit sends it again: the same replay id, a copy of one letter."""

    at: At
    cause: str
    replay_id: str
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Found:
    """What Kafka and Opik have. `sent`: all records that a producer was told are stored, and how often; `unsure`: those
    that may be."""

    sent: Counter[Sent]
    unsure: Counter[Sent]
    records: Sequence[Record]
    ends: Mapping[Place, int]
    committed: Mapping[Place, int]
    letters: Sequence[Letter]
    verdicts: Sequence[Record]
    scores: Scores
    expected: Expectation
    events: Sequence[Record] = ()
    """Judges' scores."""
    drawn_again: bool = False
    """Whether Redis has lost samples, so that a gate under way may have drawn another one."""

    @property
    def summary(self) -> str:
        expected = self.expected
        requests, bad = len(expected.requests), len(expected.bad)
        return f"{len(self.records)} records, {len(expected.scores)} scores, {requests} verdicts, {bad} bad records"


def letter_of(record: Record, prefix: str) -> Letter:
    told = {name: (content or b"").decode() for name, content in record.headers if name.startswith("rampgate.")}
    topic = told["rampgate.topic"].removeprefix(prefix)
    at = topic, int(told["rampgate.partition"]), int(told["rampgate.offset"])
    return Letter(at, told["rampgate.cause"], told["rampgate.replay-id"], record.key, record.value)


def look(
    log: KafkaLog,
    prefix: str,
    group: str,
    opik: str,
    projects: Collection[str],
    sent: Counter[Sent],
    unsure: Counter[Sent],
) -> Found:
    """Reads everything. `opik` is its URL, `projects` where traces may be beside those that records name."""
    committed = log.committed(group)  # first: what is written after it can't be said to be late
    ends = log.ends(TOPICS)
    records = [record for topic in TOPICS for record in log.records(topic)]
    named = expectation(records, {}).projects
    content: OpikContent = opik_content(opik, sorted(named | set(projects)))
    return Found(
        sent=sent,
        unsure=unsure,
        records=records,
        ends=ends,
        committed=committed,
        letters=[letter_of(record, prefix) for record in log.records("dead-letters")],
        verdicts=log.records("verdicts"),
        scores=content.scores,
        expected=expectation(records, content.traces),
        events=log.records("judge-scores"),
    )


def differences(found: Found) -> list[str]:
    """What is not as it must be, one line each; empty where everything is."""
    return [
        *_of_offsets(found),
        *_of_scores(found.expected, found.scores),
        *_of_letters(found),
        *_of_verdicts(found.expected, found.verdicts),
        *sample_differences(found.records, found.verdicts, found.events, drawn_again=found.drawn_again),
    ]


def _of_offsets(found: Found) -> Iterator[str]:
    """Every record that was sent is in the log, once, and every one in the log is committed."""
    stored = Counter((record.topic, record.key, record.value) for record in found.records)
    for (topic, key, value), times in (found.sent - stored).items():
        yield f"sent, and not in Kafka's log: {topic} {key!r} {(value or b'')[:200]!r}, {times} times"
    for (topic, key, value), times in (stored - found.sent - found.unsure).items():
        yield f"in Kafka's log, and never sent: {topic} {key!r} {(value or b'')[:200]!r}, {times} times"
    for place, end in sorted(found.ends.items()):
        if end and found.committed.get(place) != end:
            yield f"{place} ends at {end}, and {found.committed.get(place)} is committed"


def _of_scores(expected: Expectation, scores: Scores) -> Iterator[str]:
    for key in sorted(expected.scores.keys() | scores.keys()):
        must, has = expected.scores.get(key), list(scores.get(key, ()))
        if must is None:
            yield f"a score that must not be: {key} is {has}"
        elif not has:
            yield f"a score is lost: {key} must be {must}"
        elif len(has) > 1:
            yield f"a score stands {len(has)} times: {key} is {has}"
        elif has[0] != must:
            yield f"a wrong score: {key} is {has[0]}, must be {must}"


def _of_letters(found: Found) -> Iterator[str]:
    expected = found.expected
    by_place: defaultdict[At, list[Letter]] = defaultdict(list)
    for letter in found.letters:
        by_place[letter.at].append(letter)
    records = {record.at: record for record in found.records}
    for at in expected.bad.keys() - by_place.keys():
        yield f"a bad record without a dead letter: {at}"
    for at, letters in sorted(by_place.items()):
        if len({letter.replay_id for letter in letters}) > 1 or len(set(letters)) > 1:
            yield f"{at} has dead letters that differ: {sorted({(x.cause, x.replay_id) for x in letters})}"
        letter, record = letters[0], records.get(at)
        if record is None:
            yield f"a dead letter of a record that is not there: {at}"
        elif (letter.key, letter.value) != (record.key, record.value):
            yield f"the dead letter of {at} has not the record's bytes"
        elif letter.cause in UNREADABLE and at not in expected.bad:
            yield f"a good record is dead-lettered as {letter.cause}: {at}"
        elif letter.cause == CONFLICT and at not in expected.conflicts:
            yield f"no conflict, and dead-lettered as one: {at}"
        elif letter.cause not in UNREADABLE | {CONFLICT}:
            yield f"a dead letter for {letter.cause}: {at}"
    for name, requests in sorted(expected.requests.items()):
        bodies = len({request.body for request in requests})
        refused = sum(at in by_place for at, record in expected.conflicts.items() if _asks(record, name))
        if bodies > 1 and refused < bodies - 1:
            yield f"{bodies} bodies of request {name}, and {refused} dead letters"


def _asks(record: Record, name: str) -> bool:
    return bool(json.loads(record.value or b"{}").get("request_id") == name)


def _of_verdicts(expected: Expectation, verdicts: Sequence[Record]) -> Iterator[str]:
    """One for each request. No judge has a model, or no turn is of the version, so that no gate may pass."""
    ordered = sorted(verdicts, key=lambda record: (record.partition, record.offset))
    read: list[dict[str, Any]] = [json.loads(record.value or b"") for record in ordered]
    count = Counter(verdict["request_id"] for verdict in read)
    for name in sorted(expected.requests.keys() | count.keys()):
        if name not in expected.requests:
            yield f"a verdict no one asked for: {name}"
        elif count[name] != 1:
            yield f"{count[name]} verdicts of request {name}"
    anywhere = {_failed(verdict, gate) for verdict in read for gate in verdict["gates"]}
    failed: set[tuple[Any, ...]] = set()
    """Gates that failed in an earlier record of the partition: nothing passes them in a run, so they stand."""
    for record, verdict in zip(ordered, read, strict=True):
        for request in expected.requests.get(verdict["request_id"], ())[:1]:
            told = {reason["code"] for reason in verdict.get("reasons", ())}
            known = anywhere if told == {"gate_failed"} else {one[1:] for one in failed if one[0] == record.partition}
            halted = any((verdict.get("agent_version"), gate) in known for gate in request.halted_by)
            yield from _of_verdict(request, verdict, halted)
        failed |= {(record.partition, *_failed(verdict, gate)) for gate in verdict["gates"]}


def _failed(verdict: Mapping[str, Any], gate: Mapping[str, Any]) -> tuple[Any, Any]:
    return verdict.get("agent_version"), gate["milestone"] if gate.get("verdict") == "fail" else None


def _of_verdict(request: Request, verdict: Mapping[str, Any], halted: bool) -> Iterator[str]:
    gates = ["pre_ramp"] * request.first + ["pre_full"] * request.last
    if verdict.get("halt_at_percent"):
        yield f"the verdict of {request.request} halts above 0, and no version has passed pre_ramp"
    if verdict["experiment_id"] != request.experiment:
        yield f"the verdict of {request.request} is about {verdict['experiment_id']}"
    given = [gate["milestone"] for gate in verdict["gates"]]
    if given != gates and not (halted and not given):  # a gate may have run before the one that halts had failed
        yield f"the verdict of {request.request} has gates {given}, must be {gates}"
    # No version has passed a gate, so a step warns that has one before it; a step that goes nowhere has none.
    goes_on = ("warn" if request.climbs else "pass", "proceed")
    must = goes_on if request.valid and not gates and not halted else ("fail", "halt")
    if (verdict["verdict"], verdict["action"]) != must:
        yield f"the verdict of {request.request} is {verdict['verdict']}, {verdict['action']}; must be {must}"
