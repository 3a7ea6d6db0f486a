"""A signal is a declaration: a third one goes every way of the first two, and no file but its own knows of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agents.join.counting import BOTH, CONSUMED, MISSING_SIGNAL, MISSING_TRACE
from agents.join.rebuilding import adopt
from agents.join.turn import MAYBE, Mark, Signal, Turn, code_of, decode_turn, encode_turn
from agents.ports import Refusal
from rampgate.wiring import AGENTS
from schemas.dead_letter_answers import DeadLetterState, parse_dead_letter
from schemas.outcomes import Cause, Kind
from schemas.signals import DECLARED, THUMBS, MergeRule, UserSignal, declare, kinds
from schemas.topics import Topics
from streams.dead_letters.states import DeadLetterStates
from streams.metrics import Metrics
from streams.queries.conservation import conservation
from streams.queries.coverage import coverage
from tests.third_signal import favourite
from tests.unit.agents.builders import DAY, MINUTE, NOW, Rec, change, found_trace, reroll, thumb, trace
from tests.unit.agents.join import world as worlds
from tests.unit.agents.join.world import WAIT, World

KIND, SCORE = favourite.FAVOURITE.kind, favourite.FAVOURITE.score


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with favourite.registered():
        monkeypatch.setitem(worlds.AGENTS, KIND, favourite.AGENT)
        yield


def marked(rid: str, value: bool = True, at: int = NOW) -> dict[str, Any]:
    return {"event_id": f"{rid}-{value}-{at}", "response_id": rid, "marked": value, "occurred_at": at / 1000}


async def test_it_is_joined_written_and_counted_like_the_others() -> None:
    world = World()
    await world.tell(KIND, marked("r"))
    assert world.conservation(KIND) == {CONSUMED: 1, "parked:no_trace": 1}
    assert world.coverage() == {("unknown", MISSING_TRACE): 1}
    await world.tell(Kind.TRACE, trace("r"))
    assert world.score("r", SCORE) == 1.0
    assert world.signals("r") == (None, None), "the other two are not its business"
    assert world.scores.log[-1].label == "user_web"
    assert world.conservation(KIND) == {CONSUMED: 1, "done": 1}
    assert world.coverage() == {("shopping", BOTH): 1}
    answer = await coverage(world.store, world.clock.now_ms(), 3_600, ["shopping"])
    assert [row.both_present for row in answer.verticals] == [1]
    balances = await conservation(world.store, world.clock.now_ms(), 3_600, DAY)
    assert (balances.signals[KIND].consumed, balances.signals[KIND].done, balances.balanced) == (1, 1, True)
    world.balance()


async def test_the_newest_version_counts_and_a_withdrawal_deletes_its_score_only() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r", judges=["quality"]))
    await world.tell(Kind.THUMBS, thumb("r", "down"))
    await world.tell(KIND, marked("r", False, NOW + 9_000), marked("r", True, NOW))
    assert world.score("r", SCORE) is None
    assert world.signals("r") == (-1.0, 0.0)
    await world.tell(Kind.THUMBS, thumb("r", None, NOW + 9_000))
    assert world.coverage() == {("shopping", MISSING_SIGNAL): 1}
    await world.tell(KIND, marked("r", True, NOW + 20_000))
    assert (world.score("r", SCORE), world.coverage()) == (1.0, {("shopping", BOTH): 1})
    world.balance()


async def test_all_three_on_one_turn_in_any_order_come_again_without_change() -> None:
    world = World()
    await world.tell(KIND, marked("r"))
    await world.tell(Kind.THUMBS, change("r", "up", 7))
    await world.tell(Kind.REROLL, reroll("r"))
    await world.tell(Kind.TRACE, trace("r"))
    held = dict(world.scores.held)
    assert sorted(name for _, name in held) == [SCORE, "user_signal_reroll", "user_signal_thumbs"]
    turn = world.store.values["t2:r"]
    for kind in (KIND, Kind.THUMBS, Kind.REROLL, Kind.TRACE):
        world.rewind(kind)
        await world.run(kind)
    assert (world.scores.held, world.store.values["t2:r"]) == (held, turn)
    world.balance()


async def test_after_a_lost_state_it_is_adopted_from_opik_and_not_written_twice() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(KIND, marked("r"))
    writes = len(world.scores.log)
    world.lose_state()
    found = found_trace("r")
    found.wrote = {KIND: code_of(favourite.FAVOURITE, 1.0)}
    await adopt([found], world.ports, world.policy, world.clock.ms)
    await world.drain()
    assert len(world.scores.log) == writes
    assert world.conservation(KIND) == {CONSUMED: 1, "done": 1}


async def test_what_was_withheld_is_written_once_writing_is_on() -> None:
    world = World()
    world.switch(write=False)
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(KIND, marked("r"))
    assert world.conservation(KIND) == {CONSUMED: 1, "parked:withheld": 1}
    world.switch(write=True)
    await world.revisit("r")
    assert world.score("r", SCORE) == 1.0
    assert world.conservation(KIND) == {CONSUMED: 1, "done": 1}


async def test_a_bad_one_a_refused_one_and_one_without_a_trace_are_dead_letters_that_can_be_replayed() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("refused"))
    world.scores.refuse = lambda write: Refusal(Cause.OPIK_REJECTED, "no") if write.name == SCORE else None
    await world.tell(KIND, marked("refused"), b"{", {"event_id": "e", "marked": "perhaps"}, marked("lonely"))
    await world.age(WAIT + MINUTE)
    assert sorted(world.causes()) == ["malformed", "malformed", "missing_trace", "opik_rejected"]
    assert {letter.record.topic for letter in world.letters.letters} == {"rampgate.favourites"}
    assert world.conservation(KIND) == {
        CONSUMED: 4,
        "dead_lettered:malformed": 2,
        "dead_lettered:missing_trace": 1,
        "dead_lettered:opik_rejected": 1,
    }
    states = DeadLetterStates(world.topics, AGENTS, world.policy, world.clock, world.store, None)
    letters = {letter.cause: letter for letter in world.letters.letters}
    refused = letters[Cause.OPIK_REJECTED]
    assert await state_of(states, refused) == (DeadLetterState.OPEN, "")
    world.scores.refuse = lambda write: None
    _, value, headers = refused.encode(1_000_000)[0], *refused.encode(1_000_000)[1:3]
    world.send(KIND, value, headers=headers)
    await world.run(KIND)
    assert world.score("refused", SCORE) == 1.0
    assert await state_of(states, refused) == (DeadLetterState.RESOLVED, "the turn's favourite is settled")


async def state_of(states: DeadLetterStates, letter: Any) -> tuple[DeadLetterState, str]:
    key, value, headers = letter.encode(1_000_000)
    (status,) = await states.of(
        [parse_dead_letter(Rec(value, "rampgate.dead-letters", 0, 0, NOW, key, tuple(headers)))]
    )
    return status.state, status.why


async def test_metrics_have_its_label() -> None:
    world, metrics = World(), Metrics()
    metrics.sub_agents, metrics.categories = {"search"}, {"faq"}
    await world.tell(Kind.TRACE, trace("r"))
    metrics.observe_report(await world.tell(KIND, marked("r"), b"{"), registered=["shopping"])
    text = metrics.exposition().decode()
    assert 'rampgate_records_total{reason="",signal="favourite",state="done"} 1.0' in text
    assert 'eval_correlation_deadletter_count_total{cause="malformed",signal="favourite"} 1.0' in text
    assert (
        "eval_correlation_records_written_total"
        '{category="faq",signal="favourite",sub_agent="search",vertical="shopping"} 1.0'
    ) in text
    assert 'eval_correlation_pipeline_lag_seconds_count{signal="favourite"} 1.0' in text


def test_topics_and_kinds_know_it() -> None:
    assert Topics()["favourites"] == "rampgate.favourites" == Topics().of(KIND)
    assert "rampgate.favourites" in Topics().all
    assert KIND in kinds()


@pytest.mark.parametrize("field", ["kind", "topic", "score", "origin", "swept_origin"])
def test_a_signal_that_shares_what_is_stored_or_published_with_another_is_refused(field: str) -> None:
    fresh = UserSignal("k", "n", "t", "user_signal_s", "l", MergeRule.ONCE, 8, 9)
    with pytest.raises(ValueError, match="shares"):
        declare(replace(fresh, **{field: getattr(THUMBS, field)}))
    assert "k" not in DECLARED


OLD_TURNS = [
    "90",
    "96c410000102030405060708090a0b0c0d0e0fa770726f6a656374a873686f7070696e67a6736561726368a3666171cf000001a3185c5000",
    "98c410000102030405060708090a0b0c0d0e0fa770726f6a656374a873686f7070696e67a6736561726368a3666171cf000001a3185c5000c40001",
    "9bc410000102030405060708090a0b0c0d0e0fa170a176a0a0cf000001a3185c5000c40001ff0199ffcf000001a3185c5000c40107030100000329",
    "9cc400a0a0a0a000c4000000009a01cf000001a3185c5000c400010409050000cf000001a3185c50009b01cf000001a3185c5000c4000402000000000003",
    "9dc410000102030405060708090a0b0c0d0e0fa170a0a0a0cf000001a3185c5000c4000003029200cf000001a3185c50009501cf000001a3185c5000c400020307",
]
"""Turns as they are stored in form 2 (`agents.keys.FORM`) since it began: an empty one, two with a trace, one with a
thumb, one with a swept parked thumb and a dead reroll, one with a withdrawn thumb and a derived, withheld reroll."""


@pytest.mark.parametrize("text", OLD_TURNS)
def test_a_turn_of_the_version_before_is_read_and_written_as_it_was(text: str) -> None:
    turn = decode_turn(bytes.fromhex(text))
    assert turn.others == {}
    assert encode_turn(turn).hex() == text


def test_what_the_version_before_stored_means_what_it_meant() -> None:
    thumbed, parked, withdrawn = [decode_turn(bytes.fromhex(text)) for text in OLD_TURNS[3:]]
    assert thumbed.thumbs == Signal(-1, NOW, b"\7", Mark.DONE, THUMBS.origin, partition=3, offset=41)
    assert (thumbed.wrote("thumbs"), thumbed.wrote("reroll"), thumbed.judged) == (-1, 1, 1)
    assert parked.thumbs == Signal(1, NOW, mark=Mark.PARKED, origin=4, tie=9, asof=5, parked_at=NOW)
    assert parked.reroll == Signal(1, NOW, mark=Mark.DEAD, origin=2, cause=3)
    assert (withdrawn.wrote("thumbs"), withdrawn.wrote("reroll"), withdrawn.rewritten) == (MAYBE, 2, 7)


def test_a_turn_with_a_third_signal_is_read_as_it_was_written() -> None:
    turn = Turn(trace=b"t" * 16, project="p", time=NOW, thumbs=Signal(1, NOW))
    turn.put(KIND, Signal(1, NOW, mark=Mark.PARKED, origin=6, parked_at=NOW))
    turn.note(KIND, 1)
    again = decode_turn(encode_turn(turn))
    assert (again, again.signal(KIND), again.wrote(KIND)) == (turn, turn.signal(KIND), 1)
