"""`rampgate dead-letters replay` does what is left to do, and nothing twice."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from schemas.dead_letter_answers import DeadLetterState, StoredDeadLetter
from schemas.dead_letters import attempts_of
from schemas.settings import KafkaAccess
from streams.dead_letters.reader import DeadLetterFilter, read_dead_letters
from streams.dead_letters.replay import Replay
from streams.dead_letters.replay_ledger import ReplayLedger
from streams.dead_letters.states import Status
from streams.kafka.client import Producer
from streams.redis.state import RedisStore
from tests.stream.dead_letters.letter_rig import LetterRig, now_ms
from tests.stream.dead_letters.replay_rig import REROLL, THUMBS, listed, refused_turns, wait_settled


@pytest.fixture(autouse=True)
def _healed(letter_rig: LetterRig) -> Iterator[None]:
    yield
    letter_rig.opik.heal()


def test_what_opik_was_not_there_for_is_written_once_by_a_replay(letter_rig: LetterRig) -> None:
    turns, sent = refused_turns(letter_rig, "back", 12)
    since = ["--cause", "opik_unavailable", "--since", "5m"]
    before = listed(letter_rig, *since)
    assert before["total"] == before["by_cause"]["opik_unavailable"] == len(sent) == 18
    assert {row["state"] for row in before["letters"]} == {"open"}
    assert all(row["means"] and row["do"] and row["size"] for row in before["letters"])

    dry = letter_rig.command("replay", *since, "--dry-run", "--json")
    assert (dry.code, dry.json["replayed"], dry.json["dry_run"]) == (0, 18, True)
    wait_settled(letter_rig)
    assert listed(letter_rig, *since)["letters"][0]["state"] == "open", "a dry run changes nothing"

    letter_rig.opik.call("DELETE", "/_writes")
    ran = letter_rig.command("replay", *since, "--json")
    assert (ran.code, ran.json["replayed"], ran.json["refused_total"]) == (0, 18, 0), ran.err
    letter_rig.wait(
        "resolved", lambda: {row["state"] for row in listed(letter_rig, *since)["letters"]} == {"resolved"}, 30
    )
    held = letter_rig.held()
    for number, trace_id in enumerate(turns.values()):
        assert held[trace_id, THUMBS] == -1.0
        assert held[trace_id, REROLL] == (1.0 if number % 2 == 0 else 0.0)
    replayed = [one for one in letter_rig.records("rerolls") if one.key and one.key.startswith(b"back-")]
    assert {one.headers[0] for one in replayed} == {("h", b"1")}
    assert sorted(attempts_of(one.headers) for one in replayed) == [0] * 6 + [1] * 6

    again = letter_rig.command("replay", *since, process=True)
    assert (again.code, again.err) == (0, "")
    assert b"resolved" in again.out


def test_a_replay_storm_twice_leaves_scores_and_coverage_as_they_are(letter_rig: LetterRig) -> None:
    """Every letter ever sent, again and again, ledger forgotten and states ignored: as bad as a replay can be."""
    refused_turns(letter_rig, "storm", 25)
    assert letter_rig.command("replay", "--cause", "opik_unavailable", "--json").code == 0
    wait_settled(letter_rig)

    async def storm() -> int:
        access = KafkaAccess(tuple(letter_rig.kafka.bootstrap.split(",")))
        producer = Producer(access)
        store = RedisStore(letter_rig.redis_server.url, f"storm-{now_ms() % 10**8:08d}.")
        states: Any = Everything()
        partitions = {letter_rig.prefix + name: 4 for name in ("thumbs", "rerolls", "traces")}
        ledger = ReplayLedger(store, 60_000)
        replay = Replay(producer, ledger, states, partitions, rate=0, max_attempts=99)
        try:
            wanted = DeadLetterFilter(until=now_ms())
            await replay.run(read_dead_letters(access, letter_rig.prefix + "dead-letters", wanted))
        finally:
            await producer.close()
            await store.close()
        return replay.result.replayed

    letter_rig.wait("quiet", lambda: not letter_rig.conservation().get("thumbs", Counter())["parked:no_trace"])
    held, coverage = letter_rig.held(), letter_rig.coverage()
    for _ in range(2):
        letter_rig.opik.call("DELETE", "/_writes")
        assert asyncio.run(storm()) >= 37
        wait_settled(letter_rig)
        assert letter_rig.held() == held
        assert letter_rig.coverage() == coverage
        assert letter_rig.opik.writes() == {}, "nothing is written twice"
    balance = letter_rig.conservation()
    for kind, fields in balance.items():
        consumed = fields.pop("consumed")
        assert consumed == sum(fields.values()), (kind, fields)


class Everything:
    """States that let every letter through."""

    async def of(self, letters: list[StoredDeadLetter]) -> list[Status]:
        return [Status(DeadLetterState.OPEN)] * len(letters)


def rows_of(rig: LetterRig, letter: StoredDeadLetter) -> list[dict[str, Any]]:
    return [row for row in listed(rig, "--key", "poison")["letters"] if row["replay_id"] == letter.replay_id]


def test_what_fails_again_comes_back_with_its_attempts_counted(letter_rig: LetterRig) -> None:
    sent = letter_rig.put("thumbs", b"{never json", key=b"poison", headers=[("h", None)])
    (first,) = letter_rig.letters_of(sent)
    for attempt in (2, 3):
        ran = letter_rig.command("replay", "--replay-id", first.replay_id, "--max-attempts", "3", "--json")
        assert (ran.code, ran.json["replayed"]) == (0, 1)

        def came_back(attempt: int = attempt) -> bool:
            return any(one.replay_id == first.replay_id and one.attempts == attempt for one in letter_rig.letters())

        letter_rig.wait(f"attempt {attempt}", came_back)
    letters = [one for one in letter_rig.letters() if one.replay_id == first.replay_id]
    assert {(one.record.key, one.record.value) for one in letters} == {(b"poison", b"{never json")}
    assert all(one.original_headers == [("h", None)] for one in letters)
    rows = rows_of(letter_rig, first)
    assert [(row["attempts"], row["state"]) for row in rows] == [(1, "replayed"), (2, "replayed"), (3, "open")]

    spent = letter_rig.command("replay", "--replay-id", first.replay_id, "--max-attempts", "3", "--json")
    assert (spent.code, spent.json["replayed"], spent.json["refused_total"]) == (1, 0, 1)
    assert "--max-attempts" in spent.json["refused"][0]["why"]

    letter_rig.forget_replays()
    rows = rows_of(letter_rig, first)
    assert [row["state"] for row in rows] == ["replayed", "replayed", "open"], (
        "the topic itself tells, after a FLUSHALL"
    )


def test_two_replays_at_once_send_each_letter_once(letter_rig: LetterRig) -> None:
    sent = [letter_rig.put("thumbs", b"{twice %d" % n, key=b"twice", partition=n % 4) for n in range(60)]
    letter_rig.letters_of(*sent)
    flags = ["replay", "--key", "twice", "--max-attempts", "2", "--json"]
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: letter_rig.command(*flags, process=True), range(2)))
    assert sum(run.json["replayed"] for run in runs) == 60
    assert sum(run.json["already_replayed"] for run in runs) == 60
    replayed = Counter(
        one.value for one in letter_rig.records("thumbs") if one.key == b"twice" and attempts_of(one.headers)
    )
    assert len(replayed) == 60
    assert set(replayed.values()) == {1}
    placed = {(one.partition, one.value) for one in letter_rig.records("thumbs") if one.key == b"twice"}
    assert len(placed) == 60, "each went back to the partition it came from"


def test_the_rate_holds(letter_rig: LetterRig) -> None:
    letter_rig.letters_of(
        *(letter_rig.put("thumbs", b"{paced %d" % n, key=b"paced", partition=n % 4) for n in range(40))
    )
    began = time.monotonic()
    ran = letter_rig.command("replay", "--key", "paced", "--rate", "10", "--json")
    assert (ran.code, ran.json["replayed"]) == (0, 40)
    assert time.monotonic() - began > 3.0


def test_a_replay_that_died_before_it_was_sure_is_taken_up_again(letter_rig: LetterRig) -> None:
    (letter,) = letter_rig.letters_of(letter_rig.put("thumbs", b"{died", key=b"died"))

    async def die() -> None:
        store = RedisStore(letter_rig.redis_server.url, letter_rig.prefix)
        ledger = ReplayLedger(store, 60_000, lease_ms=4_000)
        assert await ledger.claim([letter.identity]) == [True]
        await store.close()

    asyncio.run(die())
    ran = letter_rig.command("replay", "--key", "died", "--json")
    assert (ran.code, ran.json["replayed"]) == (0, 1)
