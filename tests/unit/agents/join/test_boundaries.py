"""The join at its edges: which of two events stands, when something is given up, how long it lives."""

from __future__ import annotations

import pytest

from agents import thumbs
from agents.join.batches import Batch, handle
from agents.join.counting import DAY, HOUR, arrival
from schemas.outcomes import Kind
from tests.unit.agents.builders import (
    MINUTE,
    NOW,
    REROLL_SCORE,
    SECOND,
    THUMBS_SCORE,
    Rec,
    found_trace,
    reroll,
    thumb,
    trace,
    trace_id,
)
from tests.unit.agents.join.world import AGENTS, World

# Which of two stands.


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_of_two_rerolls_that_wait_for_their_trace_the_earlier_one_stands(order: tuple[int, int]) -> None:
    world = World()
    both = (reroll("r", by="first", at=NOW - MINUTE), reroll("r", by="second", at=NOW))
    for one in order:
        await world.tell(Kind.REROLL, both[one])
    found = world.turn("r").reroll
    assert found is not None
    assert found.time == NOW - MINUTE
    world.balance()


async def test_a_second_trace_is_not_judged_because_the_first_was() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r", judges=["q"]))
    assert world.coverage() == {("shopping", "missing_signal"): 1}
    await world.tell(Kind.TRACE, trace("r", NOW + SECOND, name="second"))
    assert world.coverage() == {}


async def test_a_withdrawn_thumb_is_deleted_from_a_second_trace_too() -> None:
    """What Opik holds there is not known: a step that wrote it may never have been recorded."""
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, thumb("r", "up", NOW))
    await world.tell(Kind.THUMBS, thumb("r", None, NOW + SECOND))
    await world.tell(Kind.TRACE, trace("r", NOW + SECOND, name="second"))
    deleted = {one.name for one in world.scores.log if one.trace_id == trace_id("second") and one.value is None}
    assert deleted == {THUMBS_SCORE, REROLL_SCORE}


async def test_a_withdrawal_deletes_what_is_not_known_to_be_in_opik() -> None:
    """A step that wrote it may never have been recorded, or the state was lost since."""
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    for name in (THUMBS_SCORE, REROLL_SCORE):
        world.scores.held[trace_id("r"), name] = 0.5
    await world.tell(Kind.THUMBS, thumb("r", None))
    assert world.signals("r") == (None, None)


async def test_a_trace_that_is_told_again_with_an_earlier_end_keeps_the_later_one() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r", NOW))
    await world.tell(Kind.TRACE, trace("r", NOW - MINUTE))
    assert world.turn("r").time == NOW


# What Opik is believed to hold.


@pytest.mark.parametrize("kind", [Kind.THUMBS, Kind.REROLL])
async def test_what_could_not_be_written_again_is_not_believed_to_be_in_opik(kind: Kind) -> None:
    """Records that may have been handled and not recorded come again while writing is off; then it is on."""
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(kind, thumb("r", "up") if kind is Kind.THUMBS else reroll("r"))
    right = world.signals("r")
    for name in (THUMBS_SCORE, REROLL_SCORE):
        world.scores.held[trace_id("r"), name] = 0.5
    world.switch(write=False)
    batch = Batch(world.topics.of(kind), 0, 0, world.logs[kind, 0])
    world.store.values[batch.watermark_key] = (b"0", 1 << 46)
    await world.handle(batch, AGENTS[kind], doubtful=True)
    world.switch(write=True)
    await world.revisit("r")
    thumbs_score, reroll_score = world.signals("r")
    assert reroll_score == right[1]
    assert kind is Kind.REROLL or thumbs_score == right[0]


async def test_scores_that_were_written_again_make_a_step_that_read_before_them_fail_its_check() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    before = world.store.values["t2:r"][0]
    world.rewind(Kind.THUMBS)
    world.store.values["w2:rampgate.thumbs:0"] = (b"0", 1 << 46)
    written = len(world.scores.log)
    await world.run(Kind.THUMBS, doubtful=True)
    assert len(world.scores.log) > written
    assert world.store.values["t2:r"][0] != before


async def test_what_a_replay_holds_back_is_written_soon_after_it() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r", judges=["q"]))
    assert not world.store.due
    records = world.send(Kind.THUMBS, thumb("r", "up"))
    batch = Batch("rampgate.thumbs", 0, 0, records)
    world.start(batch)
    await world.handle(batch, thumbs.AGENT, settled=batch.end)
    assert world.score("r") is None, "a later record may overrule it"
    await world.age(MINUTE)
    assert world.score("r") == 1.0


# When, and how long.


async def test_a_signal_is_given_up_when_its_wait_for_the_trace_is_over_and_not_before() -> None:
    world = World()
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    world.wait(world.policy.missing_trace - 1)
    await world.revisit("r")
    assert world.causes() == []
    world.wait(1)
    await world.revisit("r")
    assert world.causes() == ["missing_trace"]


async def test_counters_live_a_day_longer_than_the_window_over_their_hour() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    lives = {expires for expires, fields in world.store.counters.values() if fields}
    assert lives == {(NOW // HOUR + 1) * HOUR + world.policy.lookback + DAY}


async def test_a_turn_that_changes_late_lives_another_hour() -> None:
    """Else it would be gone before what was decided about it is seen."""
    world = World()
    await world.tell(Kind.TRACE, trace("r", NOW))
    world.clock.ms = NOW + world.policy.lookback + HOUR // 2
    world.traces.known["r"] = found_trace("r", judged=True)
    await world.revisit("r")
    assert world.turn("r").judged
    assert world.store.values["t2:r"][1] == world.clock.ms + HOUR


async def test_a_first_thumb_at_the_windows_edge_keeps_its_turn_for_another_hour() -> None:
    """The clock goes on between decoding and recording."""
    world = World()
    at = world.clock.ms - world.policy.lookback
    await world.tell(Kind.TRACE, trace("r", at))
    records = world.send(Kind.THUMBS, thumb("r", "up", at))
    batch = Batch("rampgate.thumbs", 0, 0, records)
    world.start(batch)
    decoded = thumbs.AGENT.decode(records, world.clock.now_ms(), world.policy)
    assert decoded.items
    world.wait(5 * MINUTE)
    await handle(batch, decoded, thumbs.AGENT, world.ports, world.policy, world.topics)
    assert world.score("r") == 1.0
    assert world.store.values["t2:r"][1] == world.clock.ms + HOUR


@pytest.mark.parametrize(("before_now", "counted"), [(0, 0), (HOUR, HOUR), (DAY, DAY), (DAY + 1, 0), (-1, 0)])
def test_a_record_without_a_usable_time_is_counted_when_it_came_if_that_is_in_the_window(
    before_now: int, counted: int
) -> None:
    assert arrival(Rec(b"{", timestamp=NOW - before_now), NOW, lookback=DAY) == NOW - counted
