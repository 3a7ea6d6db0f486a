"""`rampgate dead-letters list` and `show`: which letters they find, and that they give the very bytes."""

from __future__ import annotations

import asyncio
import json

from rampgate.local.services.broker import MockBroker
from schemas.settings import KafkaAccess
from streams.dead_letters.reader import DeadLetterFilter, read_dead_letters
from streams.kafka.client import Producer
from tests.stream.dead_letters.letter_rig import LetterRig
from tests.stream.dead_letters.replay_rig import listed

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
