"""Names that a producer makes up fill neither Redis nor the memory of a worker, and displace no real name."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from agents.join.counting import NAME_BYTES, short_name
from agents.keys import LIVE_SCORE_INDEX, TURN_POOL
from agents.newcomers import KNOWN_HOURS, Newcomers
from schemas.outcomes import Kind
from schemas.verticals import UNREGISTERED
from streams.queries.coverage import coverage
from tests.unit.agents.builders import HOUR, NOW, found_trace, thumb, trace, trace_id
from tests.unit.agents.join.world import World
from tests.unit.agents.live.live_rig import Rig, live_trace

MOST = 10
MADE_UP = 300


def of_agent(number: int, **more: Any) -> dict[str, Any]:
    """A judged trace whose vertical and agent version are its own."""
    event = trace(f"r{number}", vertical=f"made-up-{number}", judges=["helpful"], **more)
    event["metadata"] |= {"agent_id": f"agent-{number}", "agent_version": "v1", "environment": "production"}
    return event


def world_of(refused: Counter[str] | None = None, most: int = MOST) -> World:
    told: Counter[str] = Counter() if refused is None else refused
    world = World()

    def count(sort: str) -> None:
        told[sort] += 1

    world.ports = replace(world.ports, newcomers=Newcomers({"shopping"}, most, count))
    return world


async def test_made_up_verticals_and_agents_take_a_bounded_number_of_keys_and_are_counted() -> None:
    refused: Counter[str] = Counter()
    world = world_of(refused)
    await world.tell(Kind.TRACE, *map(of_agent, range(MADE_UP)))
    names = {vertical for vertical, _ in world.coverage()}
    assert len(names) == MOST + 1
    assert UNREGISTERED in names
    assert sum(world.coverage().values()) == MADE_UP, "every turn is counted, under whichever name"
    pools = [key for key in world.store.lowest if key.startswith(TURN_POOL.prefix)]
    assert len(pools) <= MOST * 4
    assert refused == {"vertical": MADE_UP - MOST, "agent": MADE_UP - MOST}


async def test_what_a_made_up_vertical_brings_is_joined_and_moves_coverage_once() -> None:
    world = world_of(most=0)
    await world.tell(Kind.TRACE, of_agent(1))
    assert world.coverage() == {(UNREGISTERED, "missing_signal"): 1}
    await world.tell(Kind.THUMBS, thumb("r1", "up"))
    assert world.coverage() == {(UNREGISTERED, "both_present"): 1}
    assert world.score("r1") == 1.0
    world.rewind(Kind.TRACE)
    await world.run(Kind.TRACE)
    assert world.coverage() == {(UNREGISTERED, "both_present"): 1}


async def test_registered_verticals_and_known_agents_are_never_turned_away() -> None:
    newcomers = Newcomers({"shopping"}, MOST)
    assert newcomers.pooled_since("ours", "v1", NOW) is not None
    for number in range(MADE_UP):
        newcomers.pooled_since(f"agent-{number}", "v1", NOW)
    assert newcomers.pooled_since("ours", "v1", NOW + 1) is not None
    assert newcomers.pooled_since("another", "v1", NOW + 1) is None
    world = world_of(most=0)
    found = found_trace("r", vertical="shopping")
    await world.ports.newcomers.place([found], world.store, NOW, HOUR)
    assert found.vertical == "shopping"


async def test_a_vertical_that_the_state_knows_is_known_after_a_restart_however_many_new_ones_came_first() -> None:
    world = world_of(most=1)
    await world.tell(Kind.TRACE, of_agent(1))
    world.ports = replace(world.ports, newcomers=Newcomers((), most=0))
    event = of_agent(1) | {"response_id": "another", "trace_id": trace_id("another")}
    await world.tell(Kind.TRACE, event, of_agent(2))
    assert world.coverage() == {("made-up-1", "missing_signal"): 2, (UNREGISTERED, "missing_signal"): 1}


async def test_a_version_that_the_state_knows_is_known_after_a_restart_however_many_new_ones_came_first() -> None:
    world = world_of(most=1)
    await world.tell(Kind.TRACE, of_agent(1))
    world.ports = replace(world.ports, newcomers=Newcomers(("made-up-1", "made-up-2"), most=0))
    event = of_agent(1) | {"response_id": "another", "trace_id": trace_id("another")}
    await world.tell(Kind.TRACE, event, of_agent(2))
    held = [len(members) for key, (_, members) in world.store.lowest.items() if key.startswith(TURN_POOL.prefix)]
    assert sorted(set(held)) == [2], "the known version has both turns in its pools, the new one none"


def test_the_next_hour_takes_new_names_and_what_nobody_hears_of_for_a_day_is_forgotten() -> None:
    newcomers = Newcomers((), 1)
    assert newcomers.pooled_since("first", "v1", NOW) is not None
    assert newcomers.pooled_since("second", "v1", NOW) is None
    assert newcomers.pooled_since("second", "v1", NOW + HOUR) is not None
    late = NOW + (KNOWN_HOURS + 2) * HOUR
    assert newcomers.pooled_since("third", "v1", late) is not None
    assert newcomers.pooled_since("first", "v1", late) is None


async def test_live_scores_of_made_up_agents_are_not_pooled_without_end() -> None:
    rig = Rig()
    rig.world.ports = replace(rig.world.ports, newcomers=Newcomers((), MOST))
    events = [live_trace(f"r{number}") for number in range(3 * MOST)]
    for number, event in enumerate(events):
        event["metadata"] |= {"agent_id": f"agent-{number}", "agent_version": "v1"}
    await rig.traces(*events)
    held = [members for key, (_, members) in rig.world.store.lowest.items() if key.startswith(LIVE_SCORE_INDEX.prefix)]
    agents = {json.loads(kind)[3] for members in held for kind in members}
    assert len(agents) == MOST
    assert len(rig.model.calls) >= len(events), "all are judged and written nevertheless"


async def test_made_up_agents_displace_no_agent_from_the_watch_over_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of an hour's scores has an end, too."""
    monkeypatch.setattr("agents.live.scores.KINDS", MOST)
    rig = Rig()

    def of(agent: str, number: int) -> dict[str, Any]:
        event = live_trace(f"{agent}-{number}", at=rig.world.clock.ms)
        event["metadata"] |= {"agent_id": agent, "agent_version": "v1"}
        return event

    await rig.traces(of("zebra", 0))
    rig.world.wait(HOUR)
    await rig.traces(*(of(f"aardvark-{number}", number) for number in range(3 * MOST)))
    await rig.traces(of("zebra", 1))
    key = LIVE_SCORE_INDEX.key(rig.world.clock.ms // HOUR)
    agents = {json.loads(kind)[3] for kind in rig.world.store.lowest[key][1]}
    assert "zebra" in agents
    assert len(agents) > 1


@pytest.mark.parametrize("name", ["x" * 128, "\U0001f600" * 128, "é" * 128])
async def test_a_turn_keeps_names_of_bounded_length_and_two_long_ones_remain_two(name: str) -> None:
    world = World()
    event = trace("r", vertical=name, judges=["helpful"])
    event["metadata"] |= {"sub_agent": name, "category": name}
    await world.tell(Kind.TRACE, event)
    turn = world.turn("r")
    for kept in (turn.vertical, turn.sub_agent, turn.category):
        assert len(kept.encode()) <= NAME_BYTES
    assert short_name(name) != short_name(name[:-1] + "y")
    answer = await coverage(world.store, world.clock.ms, 3600, ["shopping"], name)
    assert [(row.vertical, row.missing_signal) for row in answer.verticals] == [(name, 1)]


@pytest.mark.parametrize("name", ["", "shopping", "a" * 16, "a" * 64, "é" * 32])
def test_a_name_that_fits_stays_as_it_is(name: str) -> None:
    assert short_name(name) == name
