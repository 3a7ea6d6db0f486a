"""`rampgate dead-letters`: what it shows, and that a replay does what is left to do and nothing twice."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis.asyncio as aioredis

from rampgate.services.broker import MockBroker
from rampgate.services.kafka import KafkaCluster
from rampgate.services.redis import RedisServer
from schemas.dead_letters import attempts_of
from schemas.letters import Letter, LetterState
from schemas.settings import KafkaAccess
from streams.dead_letters import LetterFilter, read_letters
from streams.kafka import Producer
from streams.letter_states import Standing
from streams.replay import Replay
from streams.replay_ledger import ReplayLedger
from tests.fault.faulty_opik import FaultyOpik
from tests.stream.letter_rig import LetterRig, Sent, new_trace_id, now_ms, reroll, thumb, trace

THUMBS, REROLL = "user_signal_thumbs", "user_signal_reroll"
NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture(scope="module")
def rig(
    kafka: KafkaCluster,
    redis_server: RedisServer,
    scripted_opik: FaultyOpik,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LetterRig]:
    folder = tmp_path_factory.mktemp("replay")
    with LetterRig(kafka, redis_server, scripted_opik, folder, missing_trace_seconds=1, opik_retry_seconds=0.3) as made:
        made.worker()
        yield made


@pytest.fixture(autouse=True)
def _healed(rig: LetterRig) -> Iterator[None]:
    yield
    rig.opik.heal()


def refused_turns(rig: LetterRig, name: str, count: int) -> tuple[dict[str, str], list[Sent]]:
    """Turns whose thumbs and rerolls Opik was not there to take: response id -> trace id, and their records."""
    turns = {f"{name}-{n}": new_trace_id() for n in range(count)}
    for rid, trace_id in turns.items():
        rig.in_opik(trace_id, rid)
        rig.put("traces", trace(rid, trace_id), key=rid.encode())
    rig.opik.fault(match={"method": "PUT", "path": "feedback-scores"}, status=503)
    sent = [rig.put("thumbs", thumb(rid), key=rid.encode(), partition=n % 4) for n, rid in enumerate(turns)]
    sent += [rig.put("rerolls", reroll(rid), key=rid.encode(), headers=[("h", b"1")]) for rid in list(turns)[::2]]
    rig.letters_of(*sent)
    wait_settled(rig)  # a letter is sent before its step is recorded; a step that is repeated may yet succeed
    rig.opik.heal()
    return turns, sent


def listed(rig: LetterRig, *arguments: str) -> Any:
    ran = rig.command("list", "--json", *arguments)
    assert ran.code == 0, ran.err
    return ran.json


def wait_settled(rig: LetterRig) -> None:
    rig.wait("everything consumed", rig.drained, 30)


def test_what_opik_was_not_there_for_is_written_once_by_a_replay(rig: LetterRig) -> None:
    turns, sent = refused_turns(rig, "back", 12)
    since = ["--cause", "opik_unavailable", "--since", "5m"]
    before = listed(rig, *since)
    assert before["total"] == before["by_cause"]["opik_unavailable"] == len(sent) == 18
    assert {row["state"] for row in before["letters"]} == {"open"}
    assert all(row["means"] and row["do"] and row["size"] for row in before["letters"])

    dry = rig.command("replay", *since, "--dry-run", "--json")
    assert (dry.code, dry.json["replayed"], dry.json["dry_run"]) == (0, 18, True)
    wait_settled(rig)
    assert listed(rig, *since)["letters"][0]["state"] == "open", "a dry run changes nothing"

    rig.opik.call("DELETE", "/_writes")
    ran = rig.command("replay", *since, "--json")
    assert (ran.code, ran.json["replayed"], ran.json["refused_total"]) == (0, 18, 0), ran.err
    rig.wait("resolved", lambda: {row["state"] for row in listed(rig, *since)["letters"]} == {"resolved"}, 30)
    held = rig.held()
    for number, trace_id in enumerate(turns.values()):
        assert held[trace_id, THUMBS] == -1.0
        assert held[trace_id, REROLL] == (1.0 if number % 2 == 0 else 0.0)
    replayed = [one for one in rig.records("rerolls") if one.key and one.key.startswith(b"back-")]
    assert {one.headers[0] for one in replayed} == {("h", b"1")}
    assert sorted(attempts_of(one.headers) for one in replayed) == [0] * 6 + [1] * 6

    again = rig.command("replay", *since, process=True)
    assert (again.code, again.err) == (0, "")
    assert b"resolved" in again.out


def test_a_replay_storm_twice_leaves_scores_and_coverage_as_they_are(rig: LetterRig) -> None:
    """Every letter ever sent, again and again, ledger forgotten and states ignored: as bad as a replay can be."""
    refused_turns(rig, "storm", 25)
    assert rig.command("replay", "--cause", "opik_unavailable", "--json").code == 0
    wait_settled(rig)

    async def storm() -> int:
        access = KafkaAccess(tuple(rig.kafka.bootstrap.split(",")))
        producer, client = Producer(access), aioredis.Redis.from_url(rig.redis_server.url)
        states: Any = Everything()
        partitions = {rig.prefix + name: 4 for name in ("thumbs", "rerolls", "traces")}
        ledger = ReplayLedger(client, f"{rig.prefix}storm{now_ms()}:", 60_000)
        replay = Replay(producer, ledger, states, partitions, rate=0, max_attempts=99)
        try:
            wanted = LetterFilter(until=now_ms())
            await replay.run(read_letters(access, rig.prefix + "dead-letters", wanted))
        finally:
            await producer.close()
            await client.aclose()
        return replay.outcome.replayed

    rig.wait("quiet", lambda: not rig.conservation().get("thumbs", Counter())["parked:no_trace"])
    held, coverage = rig.held(), rig.coverage()
    for _ in range(2):
        rig.opik.call("DELETE", "/_writes")
        assert asyncio.run(storm()) >= 37
        wait_settled(rig)
        assert rig.held() == held
        assert rig.coverage() == coverage
        assert rig.opik.writes() == {}, "nothing is written twice"
    balance = rig.conservation()
    for kind, fields in balance.items():
        consumed = fields.pop("consumed")
        assert consumed == sum(fields.values()), (kind, fields)


class Everything:
    """States that let every letter through."""

    async def of(self, letters: list[Letter]) -> list[Standing]:
        return [Standing(LetterState.OPEN)] * len(letters)


def test_what_fails_again_comes_back_with_its_attempts_counted(rig: LetterRig) -> None:
    sent = rig.put("thumbs", b"{never json", key=b"poison", headers=[("h", None)])
    (first,) = rig.letters_of(sent)
    for attempt in (2, 3):
        ran = rig.command("replay", "--replay-id", first.replay_id, "--max-attempts", "3", "--json")
        assert (ran.code, ran.json["replayed"]) == (0, 1)

        def came_back(attempt: int = attempt) -> bool:
            return any(one.replay_id == first.replay_id and one.attempts == attempt for one in rig.letters())

        rig.wait(f"attempt {attempt}", came_back)
    letters = [one for one in rig.letters() if one.replay_id == first.replay_id]
    assert {(one.record.key, one.record.value) for one in letters} == {(b"poison", b"{never json")}
    assert all(one.original_headers == [("h", None)] for one in letters)
    rows = listed(rig, "--replay-id", first.replay_id)["letters"]
    assert [(row["attempts"], row["state"]) for row in rows] == [(1, "replayed"), (2, "replayed"), (3, "open")]

    spent = rig.command("replay", "--replay-id", first.replay_id, "--max-attempts", "3", "--json")
    assert (spent.code, spent.json["replayed"], spent.json["refused_total"]) == (1, 0, 1)
    assert "--max-attempts" in spent.json["refused"][0]["why"]

    rig.forget_replays()
    rows = listed(rig, "--replay-id", first.replay_id)["letters"]
    assert [row["state"] for row in rows] == ["replayed", "replayed", "open"], (
        "the topic itself tells, after a FLUSHALL"
    )


def test_two_replays_at_once_send_each_letter_once(rig: LetterRig) -> None:
    sent = [rig.put("thumbs", b"{twice %d" % n, key=b"twice", partition=n % 4) for n in range(60)]
    rig.letters_of(*sent)
    flags = ["replay", "--key", "twice", "--max-attempts", "2", "--rate", "40", "--json"]
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: rig.command(*flags, process=True), range(2)))
    assert time.monotonic() - began > 0.5, "the rate holds"
    assert sum(run.json["replayed"] for run in runs) == 60
    assert sum(run.json["already_replayed"] for run in runs) == 60
    replayed = Counter(one.value for one in rig.records("thumbs") if one.key == b"twice" and attempts_of(one.headers))
    assert len(replayed) == 60
    assert set(replayed.values()) == {1}
    placed = {(one.partition, one.value) for one in rig.records("thumbs") if one.key == b"twice"}
    assert len(placed) == 60, "each went back to the partition it came from"


def test_a_replay_that_died_before_it_was_sure_is_taken_up_again(rig: LetterRig) -> None:
    (letter,) = rig.letters_of(rig.put("thumbs", b"{died", key=b"died"))

    async def die() -> None:
        client = aioredis.Redis.from_url(rig.redis_server.url)
        ledger = ReplayLedger(client, rig.prefix, 60_000, lease_ms=4_000)
        assert await ledger.claim([letter.identity]) == [True]
        await client.aclose()

    asyncio.run(die())
    ran = rig.command("replay", "--key", "died", "--json")
    assert (ran.code, ran.json["replayed"]) == (0, 1)


def test_a_signal_whose_trace_came_after_all_is_resolved_and_not_sent_again(rig: LetterRig) -> None:
    rid, trace_id = f"late-{now_ms()}", new_trace_id()
    rig.letters_of(rig.put("thumbs", thumb(rid), key=b"item-7"))
    assert listed(rig, "--key", rid)["letters"][0]["state"] == "open"
    rig.put("traces", trace(rid, trace_id), key=rid.encode())
    rig.in_opik(trace_id, rid)
    rig.wait("written without a replay", lambda: rig.held().get((trace_id, THUMBS)) == -1.0)
    (row,) = listed(rig, "--key", rid)["letters"]
    assert (row["state"], row["cause"]) == ("resolved", "missing_trace")
    ran = rig.command("replay", "--key", rid, "--json")
    assert (ran.code, ran.json["replayed"], ran.json["resolved"]) == (0, 0, 1)


def test_a_replayed_signal_looks_for_its_trace_anew(rig: LetterRig) -> None:
    """No event told of the trace, but Opik has it by now."""
    rid, trace_id = f"found-{now_ms()}", new_trace_id()
    rig.letters_of(rig.put("rerolls", reroll(rid), key=rid.encode()))
    rig.in_opik(trace_id, rid)
    assert rig.command("replay", "--key", rid, "--json").json["replayed"] == 1
    rig.wait("the score", lambda: rig.held().get((trace_id, REROLL)) == 1.0)


def test_a_newer_thumb_makes_an_older_letter_moot(rig: LetterRig) -> None:
    (rid, trace_id), *_ = refused_turns(rig, f"moot{now_ms()}", 1)[0].items()
    rig.put("thumbs", thumb(rid, "up", event_id="newer"), key=rid.encode())
    rig.wait("the newer one", lambda: rig.held().get((trace_id, THUMBS)) == 1.0)
    (row,) = listed(rig, "--key", rid, "--topic", "thumbs")["letters"]
    assert (row["state"], row["why"]) == ("resolved", "a newer thumb stands")


def test_what_can_not_be_replayed_is_refused_with_the_reason(rig: LetterRig) -> None:
    """Letters that were cut, that stand for lost records, from this very topic, from unknown ones, from strangers."""
    whole = {"cause": b"malformed", "attempts": b"1", "replay-id": b"6f6f6a0e-6f2c-5d1e-9a37-2b1f6a0c9d11"}
    whole |= {"topic": rig.prefix.encode() + b"thumbs", "partition": b"0", "offset": b"0", "timestamp": b"5"}
    strange: dict[str, dict[str, bytes]] = {
        "too large": whole | {"original-length": b"5000000"},
        "dead-letter topic itself": whole | {"topic": rig.prefix.encode() + b"dead-letters"},
        "none of the topics": whole | {"topic": b"\x1b[31mother"},
        "not written by a worker": {"topic": whole["topic"]},
        "dropped the record already": whole | {"timestamp": b"0"},
    }
    for name, headers in strange.items():
        ours = [("rampgate." + key, value) for key, value in headers.items()]
        value = None if "dropped" in name else name.encode()
        rig.put("dead-letters", value, key=b"strange", headers=ours)
    ran = rig.command("replay", "--key", "strange", "--json")
    assert (ran.code, ran.json["replayed"], ran.json["refused_total"]) == (1, 0, 5)
    for name, row in zip(strange, ran.json["refused"], strict=True):
        assert name in row["why"]
        assert row["state"] == "not replayable"
    text = rig.command("list", "--key", "strange").out + rig.command("replay", "--key", "strange").out
    assert b"\x1b" not in text
    shown = rig.command("show", ran.json["refused"][3]["place"])
    assert b"header rampgate.cause is missing" in b" ".join(shown.out.split())


def test_show_finds_by_place_and_by_id_and_gives_the_very_bytes(rig: LetterRig) -> None:
    value = b'{"a": "\x1b]0;evil\x07", "b": \xff' + bytes(range(32)) * 300
    sent = rig.put("thumbs", value, key=b"bytes\x1b[2J", headers=[("h\x1b", b"\x1b[31m")])
    (letter,) = rig.letters_of(sent)
    for name in (letter.place, letter.place.removeprefix(rig.prefix), letter.replay_id, f"thumbs/0/{sent.offset}"):
        assert rig.command("show", name, "--raw").out == value
    shown = rig.command("show", letter.replay_id)
    assert shown.code == 0
    assert not {byte for byte in shown.out if byte < 32} - {10}
    document = rig.command("show", letter.replay_id, "--json").json
    assert document["value"]["encoding"] == "base64"
    assert document["headers"][0][0] == "h\x1b"
    pretty = rig.letters_of(rig.put("thumbs", {"no": {"thumb": "\x1b[2J"}}))[0]
    out = rig.command("show", pretty.place).out
    assert b'"thumb": "\\u001b[2J"' in out


def test_filters_and_wrong_input(rig: LetterRig) -> None:
    (letter,) = rig.letters_of(rig.put("traces", b"{filter", key=b"filter"))
    key = ["--key", "filter"]
    assert listed(rig, *key)["total"] == 1
    assert listed(rig, *key, "--topic", "traces", "--stage", letter.stage, "--since", "1h")["total"] == 1
    assert listed(rig, *key, "--topic", "thumbs")["total"] == 0
    assert listed(rig, *key, "--until", "1h")["letters"] == []
    assert listed(rig, *key, "--since", "2200-01-01")["total"] == 0
    assert listed(rig, "--limit", "1")["total"] > len(listed(rig, "--limit", "1")["letters"]) == 1
    for wrong, said in (
        (["--cause", "bad luck"], "opik_rejected"),
        (["--since", "yesterday"], "ISO 8601"),
        (["--replay-id", "x"], "UUID"),
    ):
        ran = rig.command("list", *wrong)
        assert (ran.code, ran.out) == (2, b"")
        assert said in ran.err
    assert rig.command("show", "thumbs/0/999999999").code == 2
    assert rig.command("show", "thumbs/x/y").code == 2


def test_without_redis_letters_can_be_read_but_not_replayed(rig: LetterRig) -> None:
    rig.letters_of(rig.put("thumbs", b"{redis", key=b"redis"))
    ran = rig.command("list", "--key", "redis", "--json", redis=NOWHERE)
    assert (ran.code, ran.json["total"], ran.json["states_known"]) == (0, 1, False)
    ran = rig.command("replay", "--key", "redis", redis=NOWHERE)
    assert ran.code == 2
    assert "Redis" in ran.err
    ran = rig.command("list", kafka="127.0.0.1:1", process=True)
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
        chunks = read_letters(access, topic, LetterFilter(since=since))
        return [letter.record.value async for chunk in chunks for letter in chunk]

    assert len(asyncio.run(read(None))) == 20
    assert asyncio.run(read(1_000_015)) == [b"15", b"16", b"17", b"18", b"19"]
