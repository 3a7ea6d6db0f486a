"""`rampgate dead-letters replay` does what is left to do, and nothing twice."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis.asyncio as aioredis

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
from tests.stream.letter_rig import LetterRig, now_ms
from tests.stream.replay_rig import REROLL, THUMBS, impatient, listed, refused_turns, wait_settled


@pytest.fixture(scope="module")
def rig(
    kafka: KafkaCluster,
    redis_server: RedisServer,
    scripted_opik: FaultyOpik,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LetterRig]:
    with impatient(kafka, redis_server, scripted_opik, tmp_path_factory.mktemp("replay")) as made:
        yield made


@pytest.fixture(autouse=True)
def _healed(rig: LetterRig) -> Iterator[None]:
    yield
    rig.opik.heal()


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
    flags = ["replay", "--key", "twice", "--max-attempts", "2", "--json"]
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: rig.command(*flags, process=True), range(2)))
    assert sum(run.json["replayed"] for run in runs) == 60
    assert sum(run.json["already_replayed"] for run in runs) == 60
    replayed = Counter(one.value for one in rig.records("thumbs") if one.key == b"twice" and attempts_of(one.headers))
    assert len(replayed) == 60
    assert set(replayed.values()) == {1}
    placed = {(one.partition, one.value) for one in rig.records("thumbs") if one.key == b"twice"}
    assert len(placed) == 60, "each went back to the partition it came from"


def test_the_rate_holds(rig: LetterRig) -> None:
    rig.letters_of(*(rig.put("thumbs", b"{paced %d" % n, key=b"paced", partition=n % 4) for n in range(40)))
    began = time.monotonic()
    ran = rig.command("replay", "--key", "paced", "--rate", "10", "--json")
    assert (ran.code, ran.json["replayed"]) == (0, 40)
    assert time.monotonic() - began > 3.0


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
