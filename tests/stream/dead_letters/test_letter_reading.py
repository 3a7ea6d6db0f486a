"""`rampgate dead-letters list` and `show`: which letters they find, and that they give the very bytes. Which letters
are still to be replayed: not what came right by itself, nor what can't be; the reason is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from rampgate.local.services.broker import MockBroker
from schemas.settings import KafkaAccess
from streams.dead_letters.reader import DeadLetterFilter, read_dead_letters
from streams.kafka.client import Producer
from tests.stream.dead_letters.letter_rig import LetterRig, new_trace_id, now_ms, reroll, thumb, trace
from tests.stream.dead_letters.replay_rig import REROLL, THUMBS, listed, refused_turns

NOWHERE = "redis://127.0.0.1:1/0"


def test_show_finds_by_place_and_by_id_and_gives_the_very_bytes(letter_rig: LetterRig) -> None:
    value = b'{"a": "\x1b]0;evil\x07", "b": \xff' + bytes(range(32)) * 300
    sent = letter_rig.put("thumbs", value, key=b"bytes\x1b[2J", headers=[("h\x1b", b"\x1b[31m")])
    (letter,) = letter_rig.letters_of(sent)
    for name in (
        letter.place,
        letter.place.removeprefix(letter_rig.prefix),
        letter.replay_id,
        f"thumbs/0/{sent.offset}",
    ):
        assert letter_rig.command("show", name, "--raw").out == value
    shown = letter_rig.command("show", letter.replay_id)
    assert shown.code == 0
    assert not {byte for byte in shown.out if byte < 32} - {10}
    document = letter_rig.command("show", letter.replay_id, "--json").json
    assert document["value"]["encoding"] == "base64"
    assert document["headers"][0][0] == "h\x1b"
    pretty = letter_rig.letters_of(letter_rig.put("thumbs", {"no": {"thumb": "\x1b[2J"}}))[0]
    out = letter_rig.command("show", pretty.place).out
    assert b'"thumb": "\\u001b[2J"' in out


def test_filters_and_wrong_input(letter_rig: LetterRig) -> None:
    letter_rig.letters_of(
        letter_rig.put("traces", b"{filter", key=b"filter"), letter_rig.put("thumbs", b"{another", key=b"another")
    )
    key = ["--key", "filter"]
    assert listed(letter_rig, *key)["total"] == 1
    assert listed(letter_rig, *key, "--topic", "traces", "--since", "1h")["total"] == 1
    assert listed(letter_rig, *key, "--topic", "thumbs")["total"] == 0
    assert listed(letter_rig, *key, "--until", "1h")["letters"] == []
    assert listed(letter_rig, *key, "--since", "2200-01-01")["total"] == 0
    assert listed(letter_rig, "--limit", "1")["total"] > len(listed(letter_rig, "--limit", "1")["letters"]) == 1
    for wrong, said in (
        (["--cause", "bad luck"], "opik_rejected"),
        (["--since", "yesterday"], "ISO 8601"),
        (["--replay-id", "x"], "is no option any more"),
    ):
        ran = letter_rig.command("list", *wrong)
        assert (ran.code, ran.out) == (2, b"")
        assert said in ran.err
    assert letter_rig.command("show", "thumbs/0/999999999").code == 2
    assert letter_rig.command("show", "thumbs/x/y").code == 2


def test_without_redis_letters_can_be_read_but_not_replayed(letter_rig: LetterRig) -> None:
    letter_rig.letters_of(letter_rig.put("thumbs", b"{redis", key=b"redis"))
    ran = letter_rig.command("list", "--key", "redis", "--json", redis=NOWHERE)
    assert (ran.code, ran.json["total"], ran.json["states_known"]) == (0, 1, False)
    ran = letter_rig.command("replay", "--key", "redis", redis=NOWHERE)
    assert ran.code == 2
    assert "Redis" in ran.err
    ran = letter_rig.command("list", kafka="127.0.0.1:1", process=True)
    assert ran.code == 2
    assert "127.0.0.1:1" in ran.err
    assert "Traceback" not in ran.err


def test_a_broker_without_an_index_by_time_is_read_from_the_start(mock_broker: MockBroker, topic_prefix: str) -> None:
    topic = topic_prefix + "dead-letters"
    mock_broker.create_topics([topic])

    async def read(since: int | None) -> list[bytes | None]:
        access = KafkaAccess((mock_broker.bootstrap,))
        producer = Producer(access)
        if since is None:
            for number in range(20):
                headers = [("rampgate.failed-at", str(1_000_000 + number).encode())]
                await producer.send([(topic, b"k", json.dumps(number).encode(), headers)])
        await producer.close()
        chunks = read_dead_letters(access, topic, DeadLetterFilter(since=since))
        return [letter.record.value async for chunk in chunks for letter in chunk]

    assert len(asyncio.run(read(None))) == 20
    assert asyncio.run(read(1_000_015)) == [b"15", b"16", b"17", b"18", b"19"]


@pytest.fixture(autouse=True)
def _healed(letter_rig: LetterRig) -> Iterator[None]:
    yield
    letter_rig.opik.heal()


def test_a_signal_whose_trace_came_after_all_is_resolved_and_not_sent_again(letter_rig: LetterRig) -> None:
    rid, trace_id = f"late-{now_ms()}", new_trace_id()
    letter_rig.letters_of(letter_rig.put("thumbs", thumb(rid), key=b"item-7"))
    assert listed(letter_rig, "--key", rid)["letters"][0]["state"] == "open"
    letter_rig.put("traces", trace(rid, trace_id), key=rid.encode())
    letter_rig.in_opik(trace_id, rid)
    letter_rig.wait("written without a replay", lambda: letter_rig.held().get((trace_id, THUMBS)) == -1.0)
    (row,) = listed(letter_rig, "--key", rid)["letters"]
    assert (row["state"], row["cause"]) == ("resolved", "missing_trace")
    ran = letter_rig.command("replay", "--key", rid, "--json")
    assert (ran.code, ran.json["replayed"], ran.json["resolved"]) == (0, 0, 1)


def test_a_replayed_signal_looks_for_its_trace_anew(letter_rig: LetterRig) -> None:
    """No event told of the trace, but Opik has it by now."""
    rid, trace_id = f"found-{now_ms()}", new_trace_id()
    letter_rig.letters_of(letter_rig.put("rerolls", reroll(rid), key=rid.encode()))
    letter_rig.in_opik(trace_id, rid)
    assert letter_rig.command("replay", "--key", rid, "--json").json["replayed"] == 1
    letter_rig.wait("the score", lambda: letter_rig.held().get((trace_id, REROLL)) == 1.0)


def test_a_newer_thumb_makes_an_older_letter_moot(letter_rig: LetterRig) -> None:
    (rid, trace_id), *_ = refused_turns(letter_rig, f"moot{now_ms()}", 1)[0].items()
    letter_rig.put("thumbs", thumb(rid, "up", event_id="newer"), key=rid.encode())
    letter_rig.wait("the newer one", lambda: letter_rig.held().get((trace_id, THUMBS)) == 1.0)
    (row,) = listed(letter_rig, "--key", rid, "--topic", "thumbs")["letters"]
    assert (row["state"], row["why"]) == ("resolved", "a newer thumb stands")


def test_what_can_not_be_replayed_is_refused_with_the_reason(letter_rig: LetterRig) -> None:
    """Letters that were cut, that stand for lost records, from this very topic, from unknown ones, from strangers."""
    whole = {"cause": b"malformed", "attempts": b"1", "replay-id": b"6f6f6a0e-6f2c-5d1e-9a37-2b1f6a0c9d11"}
    whole |= {"topic": letter_rig.prefix.encode() + b"thumbs", "partition": b"0", "offset": b"0", "timestamp": b"5"}
    strange: dict[str, dict[str, bytes]] = {
        "too large": whole | {"original-length": b"5000000"},
        "dead-letter topic itself": whole | {"topic": letter_rig.prefix.encode() + b"dead-letters"},
        "none of the topics": whole | {"topic": b"\x1b[31mother"},
        "not written by a worker": {"topic": whole["topic"]},
        "dropped the record already": whole | {"timestamp": b"0"},
    }
    for name, headers in strange.items():
        ours = [("rampgate." + key, value) for key, value in headers.items()]
        value = None if "dropped" in name else name.encode()
        letter_rig.put("dead-letters", value, key=b"strange", headers=ours)
    ran = letter_rig.command("replay", "--key", "strange", "--json")
    assert (ran.code, ran.json["replayed"], ran.json["refused_total"]) == (1, 0, 5)
    for name, row in zip(strange, ran.json["refused"], strict=True):
        assert name in row["why"]
        assert row["state"] == "not replayable"
    text = letter_rig.command("list", "--key", "strange").out + letter_rig.command("replay", "--key", "strange").out
    assert b"\x1b" not in text
    shown = letter_rig.command("show", ran.json["refused"][3]["place"])
    assert b"header rampgate.cause is missing" in b" ".join(shown.out.split())
