"""Whatever can't be done arrives in the dead-letter topic with its cause: bytes, key, headers and time as they came."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.redis import RedisServer
from schemas.outcomes import Cause
from tests.fault.faulty_opik import FaultyOpik
from tests.stream.dead_letters.letter_rig import LetterRig, iso, new_trace_id, now_ms, reroll, thumb, trace

THUMBS, REROLL = "user_signal_thumbs", "user_signal_reroll"
UNDECODABLE: list[tuple[str, str, Any, Cause]] = [
    ("no JSON", "thumbs", b"{bad", Cause.MALFORMED),
    ("bad UTF-8", "thumbs", b'{"response_id": "\xff\xfe"}', Cause.MALFORMED),
    ("empty", "thumbs", b"", Cause.MALFORMED),
    ("null value", "thumbs", None, Cause.MALFORMED),
    ("NaN", "rerolls", b'{"response_id": "a", "elapsed_seconds": NaN}', Cause.MALFORMED),
    ("number as string", "rerolls", reroll("a", elapsed_seconds="5"), Cause.MALFORMED),
    ("missing field", "traces", {"trace_id": new_trace_id(), "response_id": "a"}, Cause.MALFORMED),
    ("absurd time", "thumbs", thumb("a", occurred_at="9999-12-31T00:00:00Z"), Cause.MALFORMED),
    ("time of 1970", "thumbs", thumb("a", occurred_at=12), Cause.MALFORMED),
    ("wrong value", "thumbs", thumb("a", value="sideways"), Cause.MALFORMED),
    ("deep", "thumbs", b"[" * 100_000, Cause.MALFORMED),
    ("a list", "thumbs", [1, 2], Cause.UNKNOWN_SCHEMA),
    ("another object", "thumbs", {"hello": "world"}, Cause.UNKNOWN_SCHEMA),
    ("a trace as a thumb", "traces", {"eventID": "1", "dynamodb": {}}, Cause.UNKNOWN_SCHEMA),
    ("a string", "rerolls", "hello", Cause.UNKNOWN_SCHEMA),
]


@pytest.fixture(scope="module")
def rig(
    kafka: KafkaCluster,
    redis_server: RedisServer,
    scripted_opik: FaultyOpik,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LetterRig]:
    """One worker for the module; it gives up on a trace after 1 s and on Opik after 2 s."""
    folder = tmp_path_factory.mktemp("letters")
    patience = {"missing_trace_seconds": 1, "opik_retry_seconds": 2, "opik_timeout_seconds": 0.5}
    patience["batch_records"] = 2_000
    with LetterRig(kafka, redis_server, scripted_opik, folder, **patience) as made:
        made.worker()
        yield made


@pytest.fixture(autouse=True)
def _healed(rig: LetterRig) -> Iterator[None]:
    yield
    rig.opik.heal()


def turn(rig: LetterRig, name: str) -> tuple[str, str]:
    """A turn whose trace the worker knows: its response id and trace id."""
    rid, trace_id = f"{name}-{now_ms()}", new_trace_id()
    rig.put("traces", trace(rid, trace_id), key=rid.encode())
    rig.wait("the trace is known", lambda: rig.state.exists(f"{rig.prefix}t2:{rid}") == 1)
    rig.in_opik(trace_id, rid)
    return rid, trace_id


def test_undecodable_records_arrive_as_they_were_and_the_next_is_handled(rig: LetterRig) -> None:
    """Also a null value without a key, headers without content, and headers that pretend to be ours."""
    rid, trace_id = turn(rig, "next")
    at = now_ms() - 60_000
    forged = [("rampgate.attempts", None), ("rampgate.replay-id", b"x"), ("rampgate.cause", b"mine")]
    forged += [("rampgate.attempts", b"999999"), ("rampgate.replay-id", b"6f6f6a0e-6f2c-5d1e-9a37-2b1f6a0c9d11")]
    sent = [
        rig.put(topic, value, key=key, headers=[("n", str(n).encode()), ("empty", None), *forged], timestamp=at + n)
        for n, (_, topic, value, _) in enumerate(UNDECODABLE)
        for key in (b"\x00\xff key", None)
    ]
    rig.put("thumbs", thumb(rid), key=rid.encode())
    found = rig.letters_of(*sent)
    for index, (one, letter) in enumerate(zip(sent, found, strict=True)):
        name, _, _, cause = UNDECODABLE[index // 2]
        assert letter.cause == cause, name
        assert (letter.record.key, letter.record.value) == (one.key, one.value), name
        assert letter.original_headers == [("n", str(index // 2).encode()), ("empty", None)], name
        assert letter.timestamp == one.timestamp, name
        assert (letter.attempts, letter.stage.split(".")[1]) == (1, "decode"), name
        assert letter.detail, name
        assert abs(letter.failed_at - now_ms()) < 60_000
    assert len({letter.replay_id for letter in found}) == len(found)
    rig.wait("the record behind them", lambda: rig.held().get((trace_id, THUMBS)) == -1.0)


def test_a_record_too_large_keeps_its_head_and_says_so(rig: LetterRig) -> None:
    value = b'{"response_id": "' + b"x" * 5_000_000 + b'"}'
    (letter,) = rig.letters_of(rig.put("thumbs", value, headers=[("h", b"1")]))
    headers = dict(letter.record.headers)
    assert letter.cause is Cause.TOO_LARGE
    assert letter.record.value == value[:16_384]
    assert headers["rampgate.original-length"] == str(len(value)).encode()
    assert headers["rampgate.original-sha256"] == hashlib.sha256(value).hexdigest().encode()
    assert "can't be replayed" in letter.detail
    assert letter.original_headers == [("h", b"1")]


def test_a_key_or_headers_too_large_for_the_topic_hold_up_nobody(rig: LetterRig) -> None:
    """The dead-letter topic takes 1 MiB a record, the others here take more."""
    keyed = rig.put("thumbs", b"{bad", key=b"k" * 2_000_000)
    headed = rig.put("thumbs", b"{bad", headers=[("h", b"1" * 2_000_000)])
    both = rig.put("thumbs", b"[" + b" " * 990_000, headers=[("h", b"1" * 100_000)])
    a, b, c = rig.letters_of(keyed, headed, both)
    assert (a.cut, b.cut) == (("rampgate.key-length",), ("rampgate.headers-dropped",))
    assert (a.record.value, b.record.value) == (b"{bad", b"{bad")
    assert c.cut == ("rampgate.original-length",)
    assert c.original_headers == [("h", b"1" * 100_000)]


def test_a_signal_without_trace_comes_back_from_kafka_whole(rig: LetterRig) -> None:
    """The letter is written a second after its batch was committed; its bytes are read back by their place."""
    odd = b'{ "event_id":"e",  "response_id":"lonely-1","value":"up", "occurred_at":"%s", "extra": 1}'
    value = odd % iso(now_ms()).encode()
    sent = rig.put("thumbs", value, key=b"item", headers=[("h", b"\x00\xff")], partition=3, timestamp=now_ms() - 5_000)
    again = rig.put("rerolls", reroll("lonely-2"), key=None)
    for one, letter in zip((sent, again), rig.letters_of(sent, again), strict=True):
        assert letter.cause is Cause.MISSING_TRACE
        assert letter.stage == "settle"
        assert (letter.record.key, letter.record.value) == (one.key, one.value)
        assert letter.original_headers == list(one.headers)
        assert letter.timestamp == one.timestamp


def encoded(event: dict[str, Any]) -> bytes:
    import json

    return json.dumps(event).encode()


@pytest.mark.parametrize(
    "fault",
    [{"status": 503}, {"status": 429}, {"drop": True}, {"delay_seconds": 1}],
    ids=["503", "429 without a hint", "connection dropped", "no answer in time"],
)
def test_opik_that_stays_away_ends_as_a_letter_after_bounded_tries(rig: LetterRig, fault: dict[str, Any]) -> None:
    rid, trace_id = turn(rig, "away")
    rig.opik.fault(match={"method": "PUT", "trace_id": trace_id}, **fault)
    sent = rig.put("thumbs", thumb(rid), key=rid.encode())
    (letter,) = rig.letters_of(sent)
    assert letter.cause is Cause.OPIK_UNAVAILABLE
    assert letter.record.value == sent.value


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 503, "times": 1},
        {"status": 429, "times": 2},
        {"status": 429, "times": 1, "headers": {"RateLimit-Reset": "3"}},
        {"drop": True, "times": 1},
        {"status": 504, "times": 1, "after_write": True},
        {"delay_seconds": 1, "times": 1, "after_write": True},
    ],
    ids=["503", "429", "429 that asks for more than our patience", "dropped", "504 after the write", "late answer"],
)
def test_opik_that_comes_back_gets_its_score_and_nobody_a_letter(rig: LetterRig, fault: dict[str, Any]) -> None:
    rid, trace_id = turn(rig, "back")
    rig.opik.fault(match={"method": "PUT", "trace_id": trace_id}, **fault)
    sent = rig.put("thumbs", thumb(rid), key=rid.encode())
    rig.wait("settled", lambda: rig.watermarks().get(("thumbs", sent.partition), 0) > sent.offset, 15)
    held = rig.held()
    assert (held[trace_id, THUMBS], held[trace_id, REROLL]) == (-1.0, 0.0)
    assert not [one for one in rig.letters() if one.record.key == rid.encode()]


def test_a_refused_key_stops_the_worker_and_settles_nothing(
    kafka: KafkaCluster, redis_server: RedisServer, scripted_opik: FaultyOpik, tmp_path: Any
) -> None:
    """401 is no record's fault: exit code 2, no letter, no commit; also where a withdrawal deletes two scores at once.
    With a good key the next worker does what was left."""
    with LetterRig(kafka, redis_server, scripted_opik, tmp_path) as rig:
        worker = rig.worker()
        rid, trace_id = turn(rig, "key")
        rig.put("thumbs", thumb(rid, "up"), key=rid.encode())
        rig.wait("the score", lambda: (trace_id, REROLL) in rig.held())
        rig.wait("the commit", lambda: rig.committed().get(("thumbs", 0)) == 1)
        scripted_opik.fault(match={"path": "feedback-scores"}, status=401)
        rig.put("thumbs", thumb(rid, None), key=rid.encode())
        assert worker.wait(30) == 2
        assert "RAMPGATE_OPIK_API_KEY" in worker.log()
        assert rig.letters() == []
        assert rig.committed()["thumbs", 0] == 1
        scripted_opik.heal()
        rig.worker()
        rig.wait("the withdrawal", lambda: not rig.held().keys() & {(trace_id, THUMBS), (trace_id, REROLL)}, 30)
        assert rig.letters() == []
