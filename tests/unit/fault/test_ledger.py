"""The ledger of fault runs can fail: each loss, each double and each wrong value is a difference that it names."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.fault.ledger.claims import false_claims
from tests.fault.ledger.expectation import expectation
from tests.fault.ledger.kafka_log import Record
from tests.fault.ledger.ledger import Found, Letter, Sent, _of_verdicts, differences
from tests.fault.ledger.signals import read

THUMBS, REROLL = "user_signal_thumbs", "user_signal_reroll"
AT = "2026-05-01T10:00:00.000+00:00"


def trace(name: str, minute: int = 0, session: str = "", said: str = "hello") -> dict[str, Any]:
    """It lasts ten seconds."""
    return {
        "event_id": f"{name}/trace", "trace_id": f"trace-{name}", "response_id": name, "project_name": "project",
        "started_at": f"2026-05-01T10:{minute:02}:00.000+00:00", "ended_at": f"2026-05-01T10:{minute:02}:10.000+00:00",
        "input": {"text": said}, "metadata": {"session_id": session},
    }  # fmt: skip


def thumb(name: str, sequence: int, value: str | None) -> dict[str, Any]:
    return {
        "event_id": f"{name}/{sequence}", "response_id": name, "user_id": "u", "value": value, "occurred_at": AT,
        "sequence": str(sequence),
    }  # fmt: skip


def step(name: str, before: int = 5, after: int = 25, **changes: Any) -> dict[str, Any]:
    return {"request_id": name, "experiment_id": "e", "from_percent": before, "to_percent": after} | changes


def records(topic: str, *contents: Any) -> list[Record]:
    values = [content if isinstance(content, bytes) else json.dumps(content).encode() for content in contents]
    return [Record(topic, 0, offset, b"key", value) for offset, value in enumerate(values)]


LOG = [
    *records("traces", trace("up"), trace("flipped"), trace("again", session="s"), trace("later", 3, session="s")),
    *records(
        "thumbs", thumb("up", 1, "up"), thumb("flipped", 9, "down"), thumb("flipped", 3, "up"), b"{bad",
        thumb("withdrawn", 1, "up"), thumb("withdrawn", 2, None),
    ),
    *records("ramp-steps", step("q-1"), step("q-2", 0, 5), step("q-1"), step("q-2", 0, 5, agent_id="other")),
]  # fmt: skip
BAD, CONFLICT = ("thumbs", 0, 3), ("ramp-steps", 0, 3)


def verdict(name: str, *, passed: bool, gates: tuple[str, ...] = ()) -> Record:
    told = {"request_id": name, "experiment_id": "e", "gates": [{"milestone": gate} for gate in gates], "sample": None}
    told |= {"verdict": "warn", "action": "proceed"} if passed else {"verdict": "fail", "action": "halt"}
    return Record("verdicts", 0, 0, b"e", json.dumps(told).encode())


def sent(record: Record) -> Sent:
    return record.topic, record.key, record.value


def letter(at: tuple[str, int, int], cause: str, replay_id: str = "one") -> Letter:
    value = next(record.value for record in LOG if record.at == at)
    return Letter(at, cause, replay_id, b"key", value)


@pytest.fixture
def found() -> Found:
    """All is well."""
    ends = {("traces", 0): 4, ("thumbs", 0): 6, ("rerolls", 0): 0, ("ramp-steps", 0): 4}
    return Found(
        sent=Counter(sent(record) for record in LOG),
        unsure=Counter(),
        records=LOG,
        ends=ends,
        committed={place: end for place, end in ends.items() if end},
        letters=[letter(BAD, "malformed"), letter(CONFLICT, "conflicting_duplicate")],
        verdicts=[verdict("q-1", passed=True), verdict("q-2", passed=False, gates=("pre_ramp",))],
        scores={
            ("trace-up", THUMBS): [1.0],
            ("trace-up", REROLL): [0.0],
            ("trace-flipped", THUMBS): [-1.0],
            ("trace-flipped", REROLL): [0.0],
            ("trace-again", REROLL): [1.0],
        },
        expected=expectation(LOG, {}),
    )


def only(found: Found) -> str:
    (line,) = differences(found)
    return line


def test_a_run_as_it_must_be_has_no_difference(found: Found) -> None:
    assert differences(found) == []


def test_a_lost_score_is_a_difference(found: Found) -> None:
    scores = {key: value for key, value in found.scores.items() if key != ("trace-up", THUMBS)}
    assert "a score is lost" in only(replace(found, scores=scores))


def test_a_superseded_value_is_a_difference(found: Found) -> None:
    assert "must be -1.0" in only(replace(found, scores={**found.scores, ("trace-flipped", THUMBS): [1.0]}))


def test_a_score_of_two_authors_is_a_difference(found: Found) -> None:
    assert "2 times" in only(replace(found, scores={**found.scores, ("trace-up", THUMBS): [1.0, 1.0]}))


def test_a_score_of_a_withdrawn_thumb_is_a_difference(found: Found) -> None:
    log = [*LOG, Record("traces", 0, 4, b"key", json.dumps(trace("withdrawn")).encode())]
    expected = expectation(log, {})
    assert ("trace-withdrawn", THUMBS) not in expected.scores
    assert ("trace-withdrawn", REROLL) not in expected.scores
    scores = {**found.scores, ("trace-withdrawn", THUMBS): [1.0]}
    assert "must not be" in only(replace(found, scores=scores))


def test_a_doubled_verdict_is_a_difference(found: Found) -> None:
    assert "2 verdicts of request q-1" in only(replace(found, verdicts=[*found.verdicts, found.verdicts[0]]))


def test_a_request_without_a_verdict_is_a_difference(found: Found) -> None:
    assert "0 verdicts of request q-2" in only(replace(found, verdicts=found.verdicts[:1]))


def test_a_verdict_that_nobody_asked_for_is_a_difference(found: Found) -> None:
    verdicts = [*found.verdicts, verdict("q-3", passed=True)]
    assert "no one asked for" in only(replace(found, verdicts=verdicts))


def test_a_gate_that_passes_without_evidence_is_a_difference(found: Found) -> None:
    verdicts = [found.verdicts[0], verdict("q-2", passed=True, gates=("pre_ramp",))]
    assert "must be ('fail', 'halt')" in only(replace(found, verdicts=verdicts))


def test_a_gate_that_did_not_fire_is_a_difference(found: Found) -> None:
    verdicts = [found.verdicts[0], verdict("q-2", passed=False)]
    assert "must be ['pre_ramp']" in only(replace(found, verdicts=verdicts))


def test_a_bad_record_without_a_dead_letter_is_a_difference(found: Found) -> None:
    assert "without a dead letter" in only(replace(found, letters=found.letters[1:]))


def test_a_doubled_dead_letter_is_a_difference_and_a_copy_of_one_is_none(found: Found) -> None:
    assert differences(replace(found, letters=[*found.letters, found.letters[0]])) == []
    doubled = [*found.letters, letter(BAD, "malformed", "another")]
    assert "dead letters that differ" in only(replace(found, letters=doubled))


def test_a_dead_letter_with_other_bytes_is_a_difference(found: Found) -> None:
    letters = [replace(found.letters[0], value=b"{}"), found.letters[1]]
    assert "has not the record's bytes" in only(replace(found, letters=letters))


@pytest.mark.parametrize("cause", ["malformed", "opik_unavailable", "missing_trace", "conflicting_duplicate"])
def test_a_dead_letter_of_a_good_record_is_a_difference(found: Found, cause: str) -> None:
    letters = [*found.letters, letter(("thumbs", 0, 0), cause)]
    assert "('thumbs', 0, 0)" in only(replace(found, letters=letters))


def test_another_body_of_a_request_without_a_dead_letter_is_a_difference(found: Found) -> None:
    assert "2 bodies of request q-2" in only(replace(found, letters=found.letters[:1]))


def test_what_is_not_committed_is_a_difference(found: Found) -> None:
    committed = {**found.committed, ("thumbs", 0): 5}
    assert "ends at 6, and 5 is committed" in only(replace(found, committed=committed))


def test_a_record_that_kafka_acknowledged_and_does_not_have_is_a_difference(found: Found) -> None:
    assert "not in Kafka's log" in only(replace(found, sent=found.sent + Counter([("rerolls", b"key", b"{}")])))


def test_a_record_that_stands_twice_and_was_sent_once_is_a_difference(found: Found) -> None:
    again = replace(LOG[0], offset=4)
    ends = {**found.ends, ("traces", 0): 5}
    committed = {**found.committed, ("traces", 0): 5}
    doubled = replace(found, records=[*LOG, again], ends=ends, committed=committed)
    assert "never sent" in only(doubled)
    assert differences(replace(doubled, unsure=Counter([sent(again)]))) == [], "but it may have been sent twice"


@pytest.mark.parametrize(
    ("minute", "same", "counts"),
    [(3, True, True), (5, True, True), (6, True, False), (3, False, False)],
    ids=["within the window", "just within it", "beyond it", "something else was said"],
)
def test_the_same_said_again_within_five_minutes_is_a_reroll(minute: int, same: bool, counts: bool) -> None:
    log = records("traces", trace("a", session="s"), trace("b", minute, session="s", said="hello" if same else "other"))
    assert expectation(log, {}).scores == ({("trace-a", REROLL): 1.0} if counts else {})


@pytest.mark.parametrize(
    "value",
    [
        None, b"", b"{", b"\xff", b"[" * 100_000, b"[]", b'{"hello": 1}',
        json.dumps(thumb("a", 1, "sideways")).encode(),
        json.dumps(thumb("a", 1, "up") | {"occurred_at": 1e300}).encode(),
        json.dumps(thumb("a", 1, "up")).replace(f'"{AT}"', "NaN").encode(),
    ],
)  # fmt: skip
def test_a_record_that_is_none_of_the_described_forms_is_bad(value: bytes | None) -> None:
    assert read("thumbs", value) is None


TRUE = {
    "thumbs": {"consumed": 6, "done": 4, "superseded": 1, "dead_lettered": 1},
    "trace": {"consumed": 4, "done": 4},
    "ramp_step": {"consumed": 4, "done": 2, "superseded": 1, "dead_lettered": 1},
}
"""What a worker may say of the log above."""


@pytest.mark.parametrize(
    ("signal", "change", "says"),
    [
        ("thumbs", {}, []),
        ("thumbs", {"consumed": 5}, ["5 are said to be consumed"]),
        ("thumbs", {"done": 5}, ["the states are said to be"]),
        ("thumbs", {"done": 5, "dead_lettered": 0}, ["0 are said to be dead-lettered"]),
        ("trace", {"done": 3, "filtered": 1}, ["1 are said to be filtered"]),
        ("trace", {"done": 3, "dead_lettered": 1}, ["1 are said to be dead-lettered"]),
    ],
)
def test_what_a_worker_says_of_itself_is_held_against_the_log(
    found: Found, signal: str, change: dict[str, int], says: list[str]
) -> None:
    lines = list(false_claims(found, {**TRUE, signal: {**TRUE[signal], **change}}))
    assert len(lines) == len(says)
    assert all(says[number] in line for number, line in enumerate(lines))


WALKS = records("ramp-steps", step("q-2", 0, 5), step("q-3", 5, 50), step("q-4", 50, 5))


def standing(*gates: tuple[str, str], action: str, verdict: str, name: str, code: str, halt: float | None) -> Record:
    told = {
        "request_id": name, "experiment_id": "e", "agent_version": "v", "verdict": verdict, "action": action,
        "gates": [{"milestone": gate, "verdict": word} for gate, word in gates],
        "reasons": [{"code": code}], "halt_at_percent": halt,
    }  # fmt: skip
    return Record("verdicts", 0, int(name[-1]), b"e", json.dumps(told).encode())


@pytest.mark.parametrize(
    ("action", "word", "code", "halt", "said"),
    [
        ("halt", "fail", "gate_failed", 0.0, ""),
        ("proceed", "warn", "gate_missing", None, "must be ('fail', 'halt')"),
        ("halt", "fail", "gate_failed", 5.0, "halts above 0"),
    ],
)
def test_a_version_that_walks_on_after_its_gate_has_failed_is_a_difference(
    found: Found, action: str, word: str, code: str, halt: float | None, said: str
) -> None:
    failed = standing(
        ("pre_ramp", "fail"), action="halt", verdict="fail", name="q-2", code="insufficient_sample", halt=0.0
    )
    next_one = standing(action=action, verdict=word, name="q-3", code=code, halt=halt)
    down = standing(action="proceed", verdict="pass", name="q-4", code="no_gate_at_step", halt=None)
    told = [*_of_verdicts(expectation(WALKS, {}), [failed, next_one, down])]
    assert len(told) == bool(said)
    assert all(said in one for one in told)
