"""Each turn of a version is pooled exactly once, by its last record, or left out for a reason, whatever else was known
of it (contracts §3, "The sample is the traffic")."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from agents.join.rebuilding import adopt
from agents.join.sweeping import notice
from agents.join.versions import Came
from agents.keys import names_of
from agents.newcomers import Newcomers
from evalcore.scoring.sampling import turn_hash
from schemas.outcomes import Kind
from streams.gates.traffic import Scope, Window, read_window
from tests.unit.agents.builders import MINUTE, NOW, SECOND, found_trace, reroll, thumb, trace, trace_id
from tests.unit.agents.join.world import World

HOUR = 3_600_000


def event(rid: str = "r", at: int = NOW, version: str = "v1", **more: Any) -> dict[str, Any]:
    out = trace(rid, at, **more)
    out["metadata"]["agent_version"] = version
    return out


def started(rid: str = "r", **more: Any) -> dict[str, Any]:
    return event(rid, **more) | {"ended_at": None}


def in_opik(rid: str = "r", version: str = "v1", came: int = Came.NOT_COME, **more: Any) -> Any:
    facts = found_trace(rid, **more)
    facts.agent, facts.agent_version, facts.production, facts.came = "assistant", version, True, came
    return facts


async def window(world: World, version: str | None = "v1", seconds: int = 7_200) -> Window:
    return await read_window(world.store, Scope("assistant", version, "shopping"), world.clock.ms, seconds)


async def thumb_looked_up(world: World) -> None:
    world.traces.known["r"] = in_opik()
    await world.tell(Kind.THUMBS, thumb("r", "down"))
    await world.age(MINUTE)


async def reroll_looked_up(world: World) -> None:
    world.traces.known["r"] = in_opik()
    await world.tell(Kind.REROLL, reroll("r", "r2"))
    await world.age(MINUTE)


async def look_up_while_it_runs(world: World) -> None:
    world.traces.known["r"] = in_opik(came=Came.RUNNING)
    await world.tell(Kind.THUMBS, thumb("r", "down"))
    await world.age(MINUTE)


async def derived(world: World) -> None:
    """The next turn came first, and made a reroll of this one."""
    await world.tell(Kind.TRACE, event("r2", NOW + 10 * SECOND, session="s", said="the same"))


async def adopted(world: World) -> None:
    facts = in_opik()
    facts.wrote = {"thumbs": -1}
    await adopt([facts], world.ports, world.policy, NOW + HOUR)


async def swept(world: World) -> None:
    await notice([in_opik()], world.ports, world.policy, world.topics)


async def dead_letter_replayed(world: World) -> None:
    bad = event()
    bad["metadata"]["category"] = "x" * 200
    await world.tell(Kind.TRACE, bad)


async def another_trace(world: World) -> None:
    await world.tell(Kind.TRACE, event(at=NOW - 5 * SECOND, trace_id=str(uuid.uuid4())))


async def shadow(world: World) -> None:
    """Another version's trace of the same turn ended later and came first."""
    await world.tell(Kind.TRACE, event(at=NOW + 5 * SECOND, version="v2", trace_id=str(uuid.uuid4())))


async def posted_again(world: World) -> None:
    for _ in range(3):
        await world.tell(Kind.TRACE, event(output=None))


async def start_record(world: World) -> None:
    await world.tell(Kind.TRACE, started())


async def in_one_millisecond(world: World) -> None:
    start = started()
    await world.tell(Kind.TRACE, start | {"started_at": event()["ended_at"]})


async def restarted(world: World) -> None:
    """The version is known to the state, and this worker takes no new names any more."""
    await world.tell(Kind.TRACE, event("before", NOW - HOUR // 2))
    world.ports = replace(world.ports, newcomers=Newcomers(("shopping",), most=0))


async def late(world: World) -> None:
    world.wait(HOUR // 2)


async def judged_first(world: World) -> None:
    facts = in_opik()
    facts.judged = True
    await notice([facts], world.ports, world.policy, world.topics)


async def nothing(world: World) -> None:
    """The record comes first."""


WAYS: list[Callable[[World], Awaitable[None]]] = [
    nothing, thumb_looked_up, reroll_looked_up, look_up_while_it_runs, derived, adopted, swept, dead_letter_replayed,
    another_trace, shadow, posted_again, start_record, in_one_millisecond, restarted, late, judged_first,
]  # fmt: skip


@pytest.mark.parametrize("rated", [False, True])
@pytest.mark.parametrize("known", WAYS, ids=lambda way: way.__name__)
async def test_however_a_turn_was_known_its_last_record_is_in_the_pool_once(
    known: Callable[[World], Awaitable[None]], rated: bool
) -> None:
    world = World()
    await known(world)
    session = {"session": "s", "said": "the same"} if known is derived else {}
    await world.tell(Kind.TRACE, event(**session))
    if rated:
        await world.tell(Kind.THUMBS, thumb("r", "down"))
    found = await window(world)
    (one,) = [place for place in found.drawable if place.turn == turn_hash("r", names_of("assistant", "v1"))]
    assert one.offset == len(world.logs[Kind.TRACE, 0]) - 1, "by its last record"
    assert one.trace.hex() == trace_id("r").replace("-", "")
    many = len(found.drawable)
    assert many == 1 + (known in (restarted, derived)), "and no other's place is lost"
    assert found.traffic == replace(found.traffic, eligible=many, pooled=many, left_out={}, difference=0)
    assert found.traffic.signals["rated"] == int(rated or known in (thumb_looked_up, look_up_while_it_runs, adopted))
    assert found.traffic.signals["rerolled"] == int(known in (reroll_looked_up, derived))
    world.balance()


async def test_a_turn_whose_record_does_not_come_is_eligible_and_left_out() -> None:
    world = World()
    await thumb_looked_up(world)
    found = (await window(world)).traffic
    assert (found.eligible, found.pooled, found.left_out) == (1, 0, {"record_not_come": 1})
    assert found.signals == {"rated": 1, "rerolled": 0}


@pytest.mark.parametrize(
    "bad",
    [
        {"metadata": {"agent_id": "assistant", "agent_version": "v1", "vertical": "shopping", "category": "x" * 200}},
        {"project_name": None},
        {"started_at": "yesterday"},
        {"input": "x" * 1_100_000},
    ],
    ids=["long category", "no project", "no time", "too large"],
)
async def test_a_dead_letter_that_says_its_turn_and_version_is_left_out(bad: dict[str, Any]) -> None:
    world = World()
    await world.tell(Kind.TRACE, event("fine"), event() | bad)
    found = (await window(world)).traffic
    assert (found.eligible, found.pooled, found.left_out) == (2, 1, {"dead_lettered": 1})
    assert (found.records, found.unreadable) == (2, 0)


async def test_a_dead_letter_that_says_nothing_is_unreadable() -> None:
    world = World()
    await world.tell(Kind.TRACE, event("fine"), b"{", {"response_id": "r"}, None)
    found = (await window(world)).traffic
    assert (found.eligible, found.records, found.unreadable, found.unnamed) == (1, 4, 3, 0)


async def test_a_cut_emoji_is_no_reason_to_leave_a_turn_out() -> None:
    world = World()
    raw = b'{"event_id": "e", "trace_id": "%s", "response_id": "r", "project_name": "p", ' % trace_id("r").encode()
    raw += b'"started_at": %d, "ended_at": %d, "input": "a", "output": "cut \\ud83d", ' % (NOW // 1000, NOW // 1000)
    raw += b'"metadata": {"agent_id": "assistant", "agent_version": "v1", "vertical": "shopping"}}'
    await world.tell(Kind.TRACE, raw)
    assert len((await window(world)).drawable) == 1
    assert not world.letters.letters


async def test_a_running_trace_is_no_evidence_for_an_hour_and_left_out_from_then_on() -> None:
    world = World()
    await world.tell(Kind.TRACE, started(), event("other"))
    assert (await window(world)).traffic.eligible == 1
    world.wait(HOUR)
    found = (await window(world)).traffic
    assert (found.eligible, found.pooled, found.left_out) == (2, 1, {"not_ended": 1})


async def test_a_later_dead_letter_takes_the_turn_out_and_an_earlier_one_does_not() -> None:
    world = World()
    late_, early = event(at=NOW + 2 * SECOND), event(at=NOW - 2 * SECOND)
    for one in (late_, early):
        one["metadata"]["category"] = "x" * 200
    await world.tell(Kind.TRACE, event(), early)
    assert (await window(world)).traffic.left_out == {}
    await world.tell(Kind.TRACE, late_)
    found = await window(world)
    assert (found.traffic.left_out, found.drawable, found.traffic.difference) == ({"dead_lettered": 1}, [], 0)


async def test_a_later_trace_of_the_turn_moves_its_place_to_the_hour_in_which_it_ended() -> None:
    world = World()
    await world.tell(Kind.TRACE, event(at=NOW - HOUR))
    await world.tell(Kind.TRACE, event(trace_id=str(uuid.uuid4())))
    await world.tell(Kind.TRACE, event(at=NOW - HOUR // 2, trace_id=str(uuid.uuid4())))
    found = await window(world, seconds=3 * 3_600)
    assert [one.offset for one in found.drawable] == [1], "the one that ended last"
    assert (found.traffic.eligible, found.traffic.difference) == (1, 0)


async def test_the_window_is_exact_to_the_second() -> None:
    world = World()
    world.clock.ms = NOW + 61 * SECOND
    await world.tell(Kind.TRACE, event("a"), event("b", NOW + SECOND), event("c", NOW + 2 * SECOND))
    found = await window(world, seconds=60)
    assert (found.traffic.eligible, found.traffic.pooled, found.traffic.difference) == (1, 1, 0)
    assert [one.offset for one in found.drawable] == [2]


async def test_a_full_pool_cuts_whole_turns_and_the_account_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.gates.pools.POOL", 20)
    world = World()
    for _ in range(3):
        await world.tell(Kind.TRACE, *(event(f"r{n}", NOW + n) for n in range(90)))
    found = await window(world)
    assert len(found.drawable) == 20, "posted three times, they take no place of another turn"
    assert {one.offset for one in found.drawable} <= set(range(180, 270)), "each by its last record"
    assert (found.traffic.eligible, found.traffic.left_out) == (90, {"beyond_pool": 70})
    assert found.traffic.difference == 0
    await world.tell(Kind.TRACE, *(event(f"r{n}", NOW + HOUR // 2, trace_id=str(uuid.uuid4())) for n in range(90)))
    world.clock.ms = NOW + HOUR
    found = await window(world)
    assert (found.traffic.eligible, found.traffic.difference, found.population) == (90, 0, 90)
    assert len(found.drawable) == 20


async def test_members_that_were_removed_by_hand_show_in_the_sum() -> None:
    world = World()
    await world.tell(Kind.TRACE, *(event(f"r{n}") for n in range(40)))
    for _, members in world.store.lowest.values():
        for member in list(members)[:4]:
            del members[member]
    found = (await window(world)).traffic
    assert found.difference == 4
    assert found.eligible - found.pooled - sum(found.left_out.values()) == 4


@pytest.mark.parametrize("named", [{}, {"agent_id": "assistant"}], ids=["no names", "no version"])
async def test_an_end_that_names_no_version_leaves_the_turn_that_its_start_named_out(named: dict[str, str]) -> None:
    """As on a path of errors that forgets the metadata: else such turns vanish for an hour."""
    world = World()
    nameless = event() | {"metadata": {"vertical": "shopping", **named}}
    await world.tell(Kind.TRACE, started(), nameless)
    found = (await window(world)).traffic
    assert (found.eligible, found.pooled, found.left_out) == (1, 0, {"record_not_come": 1})


async def test_a_trace_that_ends_as_another_version_is_that_versions_alone() -> None:
    world = World()
    await world.tell(Kind.TRACE, started(), event(version="v2"))
    world.wait(HOUR + MINUTE)
    assert (await window(world)).traffic.eligible == 0
    assert (await window(world, "v2")).traffic.pooled == 1


@pytest.mark.parametrize("later", [10 * MINUTE, 6 * HOUR])
async def test_a_dead_letter_that_is_mended_is_pooled_however_late(later: int) -> None:
    world = World()
    bad = event()
    bad["metadata"]["category"] = "x" * 200
    await world.tell(Kind.TRACE, bad)
    world.wait(later)
    await world.tell(Kind.TRACE, bad)
    assert (await window(world, seconds=86_400)).traffic.left_out == {"dead_lettered": 1}
    await world.tell(Kind.TRACE, event())
    found = (await window(world, seconds=86_400)).traffic
    assert (found.eligible, found.pooled, found.left_out, found.difference) == (1, 1, {}, 0)


@pytest.mark.parametrize("end", [None, "yesterday"])
@pytest.mark.parametrize("first", [True, False])
async def test_a_dead_letter_of_no_known_end_takes_no_turn_out_whose_end_came(end: str | None, first: bool) -> None:
    world = World()
    bad = event() | {"ended_at": end, "project_name": None}
    for one in (bad, event()) if first else (event(), bad):
        world.wait(3 * SECOND)
        await world.tell(Kind.TRACE, one)
    found = (await window(world)).traffic
    assert (found.eligible, found.pooled, found.left_out) == (1, 1, {})


async def test_dead_letters_of_long_ago_that_say_whose_they_are_are_readable() -> None:
    world = World()
    old = event("old", NOW - 30 * 24 * HOUR)
    old["metadata"]["category"] = "x" * 200
    await world.tell(Kind.TRACE, old, event())
    found = (await window(world)).traffic
    assert (found.records, found.unreadable, found.left_out) == (2, 0, {})


async def test_two_versions_of_one_turn_are_two_turns_of_the_agents_production() -> None:
    world = World()
    await world.tell(Kind.TRACE, event(), event(version="v2", trace_id=str(uuid.uuid4())))
    await world.tell(Kind.TRACE, event(at=NOW + SECOND, version="v3", trace_id=str(uuid.uuid4())))
    found = await window(world, None)
    assert (found.traffic.eligible, len(found.drawable), found.traffic.difference) == (3, 3, 0)


async def test_turns_that_were_refused_before_a_version_was_known_are_stated() -> None:
    world = World()
    world.ports = replace(world.ports, newcomers=Newcomers(("shopping",), most=0))
    await world.tell(Kind.TRACE, event("refused", NOW - HOUR))
    world.ports = replace(world.ports, newcomers=Newcomers(("shopping",)))
    await world.tell(Kind.TRACE, event())
    assert (await window(world, seconds=3 * 3_600)).traffic.refused == 1
