"""A replay against twins of its parts: what it lets through, in what order, and what it leaves behind."""

from __future__ import annotations

import asyncio

import pytest

from agents.codec import Decoded
from agents.join.turn import Mark
from agents.ports import Unavailable
from schemas.dead_letter_answers import DeadLetterState, StoredDeadLetter, parse_dead_letter
from schemas.dead_letters import KEYLESS, sealed_over
from schemas.outcomes import Cause, Kind
from streams.dead_letters.listing import Listing
from tests.unit.agents.builders import DAY, NOW, Rec, reroll, thumb, trace
from tests.unit.agents.join.world import World
from tests.unit.streams.dead_letters.replay_bench import Bench, chunks, letter


def replayed_as(attempts: int) -> tuple[tuple[str, bytes], ...]:
    """The headers of a record of `letter` that a replay sent after so many attempts."""
    name = "6f6f6a0e-6f2c-5d1e-9a37-2b1f6a0c9d11"
    mac = KEYLESS.of(sealed_over("rampgate.thumbs", b"k", b"{bad", name, attempts)).encode()
    return (
        ("rampgate.mac", mac),
        ("rampgate.attempts", str(attempts).encode()),
        ("rampgate.replay-id", name.encode()),
    )


def sent_letters(world: World) -> list[StoredDeadLetter]:
    out = []
    for offset, one in enumerate(world.letters.letters):
        key, value, headers = one.encode(1_000_000)
        out.append(parse_dead_letter(Rec(value, "rampgate.dead-letters", 0, offset, NOW, key, tuple(headers))))
    return out


async def test_it_goes_back_where_it_came_from_as_it_came() -> None:
    bench = Bench()
    one = letter(b"{bad", "rampgate.rerolls", 7, partition=3, headers=(("h", b"1"), ("h", b"2")))
    outcome = await bench.replay().run(chunks(one))
    assert outcome.replayed == 1
    ours = [("rampgate.mac", one.mac), ("rampgate.attempts", b"1"), ("rampgate.replay-id", one.replay_id.encode())]
    assert bench.log.sent == [("rampgate.rerolls", 3, b"k", b"{bad", [("h", b"1"), ("h", b"2"), *ours])]


async def test_a_partition_that_is_gone_leaves_the_choice_to_the_key() -> None:
    bench = Bench()
    await bench.replay().run(chunks(letter(partition=11)))
    assert bench.log.sent[0][1] is None


async def test_doubled_letters_go_once_and_a_second_run_sends_nothing() -> None:
    bench = Bench()
    letters = [letter(offset=n // 2) for n in range(6)]
    outcome = await bench.replay().run(chunks(*letters))
    assert (outcome.matched, outcome.replayed) == (3, 3)
    outcome = await bench.replay().run(chunks(*letters))
    assert (outcome.replayed, outcome.already, len(bench.log.sent)) == (0, 3, 3)


async def test_a_dry_run_touches_nothing() -> None:
    bench = Bench()
    outcome = await bench.replay(dry_run=True).run(chunks(letter(), letter(offset=1)))
    assert (outcome.replayed, bench.log.sent, bench.ledger.claimed) == (2, [], {})
    assert outcome.by_topic == {"rampgate.thumbs": 2}


async def test_limit_and_attempts_hold_letters_back() -> None:
    bench = Bench()
    outcome = await bench.replay(limit=2).run(chunks(*(letter(offset=n) for n in range(5))))
    assert (outcome.replayed, len(bench.log.sent)) == (2, 2)
    worn = letter(offset=9, headers=replayed_as(4))
    outcome = await bench.replay(max_attempts=5).run(chunks(worn))
    assert (outcome.replayed, outcome.refused) == (0, 1)
    assert (await bench.replay(max_attempts=6).run(chunks(worn))).replayed == 1


@pytest.mark.parametrize(
    "topic", ["", "rampgate.dead-letters", "rampgate.verdicts", "other.thumbs", "rampgate.ramp-steps"]
)
async def test_a_topic_nobody_consumes_or_that_is_not_there_is_refused(topic: str) -> None:
    bench = Bench()
    outcome = await bench.replay().run(chunks(letter(topic=topic)))
    assert (outcome.refused, outcome.replayed, bench.log.sent) == (1, 0, [])


async def test_a_publish_that_failed_leaves_the_letter_to_the_next_run() -> None:
    bench = Bench()
    bench.log.broken = True
    with pytest.raises(Unavailable):
        await bench.replay().run(chunks(letter()))
    assert (bench.ledger.claimed, bench.ledger.done) == ({}, {})
    bench.log.broken = False
    assert (await bench.replay().run(chunks(letter()))).replayed == 1


async def test_what_another_run_holds_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.dead_letters.replay.WAIT_SECONDS", 0.0)
    bench = Bench()
    held, free = letter(offset=1), letter(offset=2)
    bench.ledger.claimed[held.identity] = 3
    outcome = await bench.replay().run(chunks(held, free))
    assert outcome.replayed == 2
    assert [one[4][-1][1].decode() for one in bench.log.sent] == [free.replay_id, held.replay_id]


async def test_the_rate_holds() -> None:
    bench = Bench()
    began = asyncio.get_running_loop().time()
    await bench.replay(rate=100).run(chunks(*(letter(offset=n) for n in range(75))))
    assert asyncio.get_running_loop().time() - began > 0.4


async def test_a_dead_signal_is_taken_as_a_new_attempt_by_its_replay() -> None:
    """Thumbs, a reroll event, and a reroll found in traces; each fails once and then not."""
    from agents.ports import Refusal

    world = World()
    bench = Bench(world)
    for rid in ("a", "b"):
        await world.tell(Kind.TRACE, trace(rid))
    world.scores.refuse = lambda write: Refusal(Cause.OPIK_UNAVAILABLE, "down")
    await world.tell(Kind.THUMBS, thumb("a"))
    await world.tell(Kind.REROLL, reroll("b"))
    said = {"session": "s", "said": "again"}
    await world.tell(Kind.TRACE, trace("c", NOW, **said), trace("d", NOW + 9_000, started=NOW + 5_000, **said))
    letters = sent_letters(world)
    assert [one.cause for one in letters] == [Cause.OPIK_UNAVAILABLE] * 3
    assert {await bench.state(one) for one in letters} == {"open"}

    world.scores.refuse = lambda write: None
    outcome = await bench.replay().run(chunks(*letters))
    assert outcome.replayed == 3
    for topic, _, _, value, headers in bench.log.sent:
        kind = next(kind for kind in Kind if world.topics.of(kind) == topic)
        world.send(kind, value, headers=headers)
    await world.drain()
    assert (world.signals("a"), world.score("b", "user_signal_reroll")) == ((-1.0, 0.0), 1.0)
    assert world.score("c", "user_signal_reroll") == 1.0
    assert [await bench.state(one) for one in letters[:2]] == ["resolved", "resolved"]
    world.balance()
    put = len(world.scores.log)
    for topic, _, _, value, headers in bench.log.sent * 2:
        kind = next(kind for kind in Kind if world.topics.of(kind) == topic)
        world.send(kind, value, headers=headers)
    await world.drain()
    assert len(world.scores.log) == put, "a replay storm writes nothing"
    assert len(world.letters.letters) == 3


async def test_a_replayed_record_that_fails_again_has_one_attempt_more() -> None:
    world = World()
    bench = Bench(world)
    await world.tell(Kind.THUMBS, b"{bad")
    (first,) = sent_letters(world)
    await bench.replay().run(chunks(first))
    world.send(Kind.THUMBS, bench.log.sent[0][3], headers=bench.log.sent[0][4])
    await world.run(Kind.THUMBS)
    again = sent_letters(world)[1]
    assert (again.attempts, again.replay_id) == (2, first.replay_id)
    listing = Listing(bench.states, 0)
    bench.ledger.done.clear()
    await listing.read(chunks(*sent_letters(world)))
    answer = listing.answer(states_known=True)
    assert [row["state"] for row in answer["letters"]] == ["replayed", "open"], "told without the ledger"


async def test_states_follow_the_turn() -> None:
    world = World()
    bench = Bench(world)
    world.send(Kind.THUMBS, thumb("r", at=NOW))
    await world.run(Kind.THUMBS)
    world.wait(1_000_000)
    await world.due()
    (one,) = sent_letters(world)
    assert (one.cause, await bench.state(one)) == (Cause.MISSING_TRACE, "open")
    newer = letter(thumb("r", "up", at=NOW + 1_000), cause=Cause.OPIK_UNAVAILABLE)
    assert await bench.state(newer) == "open"
    await world.tell(Kind.TRACE, trace("r"))
    assert world.turn("r").thumbs.mark == Mark.DONE
    assert (await bench.state(one), await bench.state(newer)) == ("resolved", "open")
    bench.ledger.done[newer.identity] = "rampgate.thumbs/0/9"
    assert await bench.state(newer) == "replayed"
    world.wait(8 * DAY)
    old = letter(thumb("gone", at=NOW), cause=Cause.OPIK_UNAVAILABLE)
    (status,) = await bench.states.of([old])
    assert (status.state, status.why) == (DeadLetterState.NOT_REPLAYABLE, "it would be filtered now: out_of_window")


async def test_the_listing_keeps_the_last_and_counts_all() -> None:
    bench = Bench()
    listing = Listing(bench.states, 3)
    await listing.read(chunks(*(letter(offset=n) for n in range(10)), letter(offset=9), letter(offset=0)))
    answer = listing.answer(states_known=True)
    assert (answer["total"], answer["by_cause"], len(answer["letters"])) == (10, {"malformed": 10}, 3)
    assert sum(row["copies"] for row in answer["letters"]) in (3, 4)


def test_a_codec_is_asked_only_for_its_own_topic() -> None:
    assert isinstance(Bench().states._decode(letter(), NOW), Decoded)
    assert Bench().states._decode(letter(topic="rampgate.ramp-steps"), NOW) is None
