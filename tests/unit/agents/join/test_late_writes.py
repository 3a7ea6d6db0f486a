"""A write without an answer is applied late, after a newer one: in the end Opik holds what the state says (promise 2).

Each test lets a write hang, changes the score, lets the write come, and looks at Opik once no write can come any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.join.batches import Batch
from agents.join.rebuilding import adopt
from agents.ports import Unavailable
from schemas.outcomes import Kind
from tests.unit.agents.builders import MINUTE, NOW, SECOND, change, found_trace, reroll, trace
from tests.unit.agents.join.late_opik import DOUBT, Died, LateOpik, late_world
from tests.unit.agents.join.recounting import recount
from tests.unit.agents.join.world import AGENTS, World


async def over(world: World, opik: LateOpik) -> None:
    """Until no doubt is left and maintenance has nothing to do about it."""
    await opik.wait(DOUBT + SECOND)
    for _ in range(3):
        await world.due()
        await opik.wait(MINUTE)


async def test_a_first_write_that_comes_after_the_users_second_thought_is_written_over() -> None:
    world, opik = late_world()
    await world.tell(Kind.TRACE, trace("r", judges=["q"]))
    opik.fates = ["again"]
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    await world.tell(Kind.THUMBS, change("r", "down", 2))
    await opik.land()
    assert world.signals("r") == (1.0, 0.0), "the first try has come after all"
    await over(world, opik)
    assert world.signals("r") == (-1.0, 0.0)
    assert not world.turn("r").doubt_until
    world.balance()


async def test_a_withdrawal_stands_though_the_write_that_it_takes_back_comes_later() -> None:
    world, opik = late_world()
    await world.tell(Kind.TRACE, trace("r", judges=["q"]))
    opik.fates = ["again"]
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    await world.tell(Kind.THUMBS, change("r", None, 2))
    await opik.land()
    await over(world, opik)
    assert world.signals("r") == (None, None)


async def test_the_other_way_round_a_deletion_that_comes_late_does_not_delete_the_newer_score() -> None:
    world, opik = late_world()
    await world.tell(Kind.TRACE, trace("r", judges=["q"]))
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    opik.fates = ["again"]
    await world.tell(Kind.THUMBS, change("r", None, 2))
    await world.tell(Kind.THUMBS, change("r", "down", 3))
    await opik.land()
    assert world.signals("r") == (None, None)
    await over(world, opik)
    assert world.signals("r") == (-1.0, 0.0)


async def test_nothing_is_looked_at_or_written_again_where_a_late_write_would_say_the_same() -> None:
    world, opik = late_world()
    await world.tell(Kind.TRACE, trace("r", judges=["q"]))
    opik.fates = ["again"]
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    assert world.store.due == {}
    await over(world, opik)
    assert opik.calls == 1
    assert world.signals("r") == (1.0, 0.0)


async def test_a_write_that_succeeds_at_once_leaves_no_doubt() -> None:
    world, _ = late_world()
    await world.tell(Kind.TRACE, trace("r", judges=["q"]))
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    await world.tell(Kind.THUMBS, change("r", "down", 2))
    assert not world.turn("r").doubt_until
    assert world.store.due == {}


async def test_a_score_that_opik_holds_rightly_is_read_and_not_written() -> None:
    world, opik = late_world()
    await world.tell(Kind.TRACE, trace("r"))
    opik.fates = ["again"]
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    await world.tell(Kind.THUMBS, change("r", "down", 2))
    await opik.land()
    await world.scores.write([write for write in world.scores.log if write.value == -1.0])
    before = opik.calls
    await over(world, opik)
    assert opik.calls == before


async def test_where_opik_can_not_tell_every_score_is_written() -> None:
    world, opik = late_world()

    class Mute:
        async def held(self, trace_ids: Mapping[str, str]) -> dict[str, dict[str, float]]:
            return {}

        def __getattr__(self, name: str) -> Any:
            return getattr(world.traces, name)

    await world.tell(Kind.TRACE, trace("r"))
    opik.fates = ["again"]
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    await world.tell(Kind.THUMBS, change("r", "down", 2))
    await opik.land()
    mute: Any = Mute()
    world.ports = replace(world.ports, traces=mute)
    await over(world, opik)
    assert world.signals("r") == (-1.0, 0.0)


async def test_a_mirrored_name_is_put_right_too() -> None:
    world, opik = late_world()
    world.switch(mirror_legacy_names=True)
    await world.tell(Kind.TRACE, trace("r"))
    opik.fates = ["again"]
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    await world.tell(Kind.THUMBS, change("r", "down", 2))
    await opik.land(lambda _, write: write.name == "thumbs")
    opik.under_way.clear()
    assert world.score("r", "thumbs") == 1.0
    await over(world, opik)
    assert world.score("r", "thumbs") == world.score("r") == -1.0


@pytest.mark.parametrize("again", ["up", "down"])
async def test_after_a_write_that_was_given_up_the_next_one_is_written_whatever_opik_was_known_to_hold(
    again: str,
) -> None:
    world, opik = late_world()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, change("r", "down", 1))
    opik.fates = ["refused"]
    await world.tell(Kind.THUMBS, change("r", "up", 2))
    assert world.causes() == ["opik_unavailable"]
    await opik.land()
    await world.tell(Kind.THUMBS, change("r", again, 3))
    assert world.score("r") == (1.0 if again == "up" else -1.0)
    await over(world, opik)
    assert world.score("r") == (1.0 if again == "up" else -1.0)


@pytest.mark.parametrize("stored", ["dies", "dies stored"])
async def test_what_a_worker_sent_that_died_does_not_stand_when_it_comes_after_the_next_workers_write(
    stored: str,
) -> None:
    """Nothing was recorded, so nothing is known; the records come again, and with them a newer one."""
    world, opik = late_world()
    await world.tell(Kind.TRACE, trace("r"))
    opik.fates = [stored]
    world.send(Kind.THUMBS, change("r", "up", 1))
    with pytest.raises(Died):
        await world.run(Kind.THUMBS)
    world.send(Kind.THUMBS, change("r", "down", 2))
    await world.run(Kind.THUMBS, doubtful=True)
    await opik.land()
    await over(world, opik)
    assert world.signals("r") == (-1.0, 0.0)


async def test_a_flip_in_a_later_batch_is_safe_from_the_dead_worker_as_well() -> None:
    """The very thumb that comes again is alone in its batch, as it was: the fast path must not take it for news."""
    world, opik = late_world()
    await world.tell(Kind.TRACE, trace("r"))
    opik.fates = ["dies"]
    world.send(Kind.THUMBS, change("r", "up", 1))
    with pytest.raises(Died):
        await world.run(Kind.THUMBS)
    await world.run(Kind.THUMBS, doubtful=True)
    await world.tell(Kind.THUMBS, change("r", "down", 2))
    await opik.land()
    await over(world, opik)
    assert world.signals("r") == (-1.0, 0.0)


async def test_what_maintenance_sent_before_the_worker_died_does_not_stand_either() -> None:
    """A parked thumb whose trace was found is not read from its topic again: the turn knew before it was written."""
    world, opik = late_world()
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    world.traces.known["r"] = found_trace("r")
    opik.fates = ["dies"]
    world.wait(SECOND)
    with pytest.raises(Died):
        await world.due()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, change("r", "down", 2))
    await opik.land()
    assert world.score("r") == 1.0
    await over(world, opik)
    assert world.signals("r") == (-1.0, 0.0)


async def test_maintenance_that_ends_well_leaves_no_doubt() -> None:
    world, _ = late_world()
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    world.traces.known["r"] = found_trace("r", judged=True)
    world.wait(SECOND)
    await world.due()
    assert not world.turn("r").doubt_until
    assert world.store.due == {}


async def test_an_attempt_that_was_overtaken_after_a_try_without_an_answer_leaves_the_turn_in_doubt() -> None:
    """We send up, no one answers, a newer thumb wins meanwhile: our up may still come."""
    world, opik = late_world()
    await world.tell(Kind.TRACE, trace("r"))
    plain = world.ports

    class Meddled:
        def __getattr__(self, name: str) -> Any:
            return getattr(plain.store, name)

        async def apply(self, step: Any) -> list[str]:
            world.ports = plain
            await world.tell(Kind.THUMBS, change("r", "down", 2), partition=1)
            return await plain.store.apply(step)

    meddled: Any = Meddled()
    world.ports = replace(plain, store=meddled)
    opik.fates = ["again"]
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    assert world.signals("r") == (-1.0, 0.0)
    await opik.land()
    assert world.signals("r") == (1.0, 0.0)
    await over(world, opik)
    assert world.signals("r") == (-1.0, 0.0)


@pytest.mark.parametrize("adopted", [True, False])
async def test_the_loss_of_the_state_loses_no_doubt_about_what_has_just_been_written(adopted: bool) -> None:
    """The mark is gone with the state; the records that are read again are recent."""
    world, opik = late_world()
    await world.tell(Kind.TRACE, trace("r", judges=["q"]))
    opik.fates = ["again"]
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    await world.tell(Kind.THUMBS, change("r", "down", 2))
    world.lose_state()
    if adopted:
        held = msgspec.structs.replace(found_trace("r"), wrote={"thumbs": -1, "reroll": 1})
        await adopt([held], world.ports, world.policy, world.clock.ms)
    calls = opik.calls
    for kind in (Kind.THUMBS, Kind.TRACE):
        records = world.logs[kind, 0]
        batch = Batch(world.topics.of(kind), 0, 0, records)
        world.start(batch)
        await world.handle(batch, AGENTS[kind], settled=len(records))
        world.committed[kind, 0] = len(records)
    assert opik.calls == calls, "nothing is written twice"
    await opik.wait(10 * SECOND)
    await world.due()
    await opik.land()
    assert world.score("r") == 1.0
    await over(world, opik)
    assert world.signals("r") == (-1.0, 0.0)
    world.balance()


async def test_a_doubt_outlives_other_looks_at_the_turn() -> None:
    """The turn's judge scores are asked for several times, in the end for the last time, and its trace is told again,
    before the doubt is over."""
    world, opik = late_world()
    world.switch(judge_settle=MINUTE)
    await world.tell(Kind.TRACE, trace("r"))
    opik.fates = ["again"]
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    await world.tell(Kind.THUMBS, change("r", "down", 2))
    for at in (10, 20, 30):
        await world.tell(Kind.TRACE, trace("r", NOW + at))
        await opik.wait(40 * SECOND)
        await world.due()
    await opik.land()
    await over(world, opik)
    assert world.signals("r") == (-1.0, 0.0)


async def test_a_doubt_puts_no_other_look_at_the_turn_off() -> None:
    """Coverage waits for judges' scores: the look for them comes as early as without a doubt."""
    world, _ = late_world()
    await world.tell(Kind.TRACE, trace("r"))
    before = world.store.due["r"]
    world.send(Kind.THUMBS, change("r", "up", 1))
    await world.run(Kind.THUMBS, doubtful=True)
    assert world.turn("r").doubt_until
    assert world.store.due["r"] == before
    world.traces.known["r"] = found_trace("r", judged=True)
    world.wait(before - world.clock.ms)
    await world.due()
    assert world.turn("r").judged
    assert world.store.due["r"] == world.turn("r").doubt_until


async def test_a_step_that_stood_still_reads_the_state_anew_before_it_writes() -> None:
    """A process that was stopped sends nothing that others don't reckon with any more."""
    world, _ = late_world()
    await world.tell(Kind.TRACE, trace("r"))
    plain, stops = world.ports, [True]

    class Stopped:
        def __getattr__(self, name: str) -> Any:
            return getattr(plain.store, name)

        async def read(self, keys: Any) -> list[bytes]:
            found = await plain.store.read(keys)
            if stops:
                stops.clear()
                world.ports = plain
                await world.tell(Kind.REROLL, reroll("r"))
                world.wait(DOUBT)
            return found

    stopped: Any = Stopped()
    world.ports = replace(plain, store=stopped)
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    assert [write.value for write in world.scores.log if write.name == "user_signal_reroll"] == [1.0]
    assert world.signals("r") == (1.0, 1.0)


FATES = ("ok", "again", "dies", "dies stored", "away")
ACTIONS = st.one_of(
    st.tuples(st.just("thumb"), st.sampled_from(["up", "down", None]), st.sampled_from(FATES)),
    st.tuples(st.just("reroll"), st.none(), st.sampled_from(FATES)),
    st.tuples(st.just("trace"), st.sampled_from([(), ("q",)]), st.sampled_from(FATES)),
    st.tuples(st.just("found"), st.none(), st.just("ok")),
    st.tuples(st.just("due"), st.none(), st.sampled_from(FATES)),
    st.tuples(st.just("land"), st.integers(0, 5), st.just("ok")),
    st.tuples(st.just("wait"), st.sampled_from([1, 20, 61, 130]), st.just("ok")),
)


async def run_all(world: World, again: set[Kind], fate: str, opik: LateOpik) -> None:
    """Handle what waits. After a death, or a step that was given up, the records come again."""
    for kind in (Kind.THUMBS, Kind.REROLL, Kind.TRACE):
        if world.committed.get((kind, 0), 0) == len(world.logs.get((kind, 0), [])):
            continue
        opik.fates = [fate]
        try:
            await world.run(kind, doubtful=kind in again)
            again.discard(kind)
        except (Died, Unavailable):
            again.add(kind)
    opik.fates = []


def is_it(one: tuple[Any, Any], *other: Any) -> bool:
    return one == other


@settings(max_examples=120, deadline=None)
@given(st.lists(ACTIONS, max_size=14))
async def test_whatever_hangs_dies_flips_and_lands_in_whatever_order_opik_ends_as_the_state(
    actions: list[tuple[str, Any, str]],
) -> None:
    world, opik = late_world()
    world.switch(judge_settle=MINUTE)
    again: set[Kind] = set()
    events: list[tuple[Kind, dict[str, Any]]] = []

    def say(kind: Kind, event: dict[str, Any]) -> None:
        events.append((kind, event))
        world.send(kind, event)

    for number, (action, what, fate) in enumerate([*actions, ("trace", (), "ok")], 1):
        if action == "thumb":
            say(Kind.THUMBS, change("r", what, number))
        elif action == "reroll":
            say(Kind.REROLL, reroll("r", f"again-{number}"))
        elif action == "trace":
            say(Kind.TRACE, trace("r", judges=what))
        elif action == "found":
            world.traces.known["r"] = found_trace("r")
        elif action == "land" and opik.under_way:
            one = opik.under_way[what % len(opik.under_way)]
            await opik.land(partial(is_it, one))
        elif action == "wait":
            await opik.wait(what * SECOND)
        elif action == "due":
            opik.fates = [fate]
            with contextlib.suppress(Died, Unavailable):
                await world.due()
            opik.fates = []
        if action in ("thumb", "reroll", "trace"):
            await run_all(world, again, fate, opik)
    await run_all(world, again, "ok", opik)
    for _ in range(3):
        await over(world, opik)
    assert not opik.under_way
    assert world.scores.held == recount(events).scores
    world.balance()


async def test_a_doubt_does_not_put_off_the_look_for_the_judges_scores() -> None:
    """It lasts for minutes, and a judge's score is looked for within seconds."""
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    before = world.store.due["r"]
    world.send(Kind.THUMBS, change("r", "up", 1))
    await world.run(Kind.THUMBS, doubtful=True)
    assert world.turn("r").doubt_until > world.clock.ms
    assert world.store.due["r"] <= max(before, world.clock.ms + world.policy.trace_lookup)
