"""People hear of a regression apart from the looks: a receiver that never answers delays no ramp-down (PC5 §5.7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from agents.keys import REGRESSION_STATE
from agents.ports import Change
from evalcore.gates.regression import Event, Step, WatchLimits
from schemas.checks.evaluation import Origin
from streams.alerts import regression_watch
from streams.alerts.regression_watch import Ours, PendingResponse, Regressions, RegressionWatch
from streams.redis.lease import SHORT_LEASE_MS
from tests.memory_ports import ManualClock, MemoryStore
from tests.unit.agents.builders import DAY
from tests.unit.evalcore.gates.regression_cases import REGISTRY, bad, good

AT_ONCE = 0.5
"""Seconds within which what does not wait for a notice is done."""


class World:
    """Workers on one store. Receivers accept each notice and answer once `answered` is set."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store: Any = MemoryStore(self.clock)
        self.answered = asyncio.Event()
        self.lost: set[Step] = set()
        self.begun: list[tuple[str, Event, Step]] = []
        self.ended: list[tuple[str, Event, Step]] = []
        self.slow = asyncio.Event()
        self.slow.set()
        self.watches: list[RegressionWatch] = []

    async def carry_out(self, pending: PendingResponse, step: Step, ours: Ours) -> bool:
        response = pending.response
        about = response.breach.agent_version, response.event, step
        self.begun.append(about)
        if step is Step.RAMP_DOWN:
            if response.breach.agent_version == "slow":
                await self.slow.wait()
        else:
            await self.answered.wait()
        if step in self.lost:
            return False
        self.ended.append(about)
        return True

    def watch(self, **options: Any) -> RegressionWatch:
        """A worker's."""
        options = {"window_seconds": 86_400, "limits": WatchLimits(), "every": 0.1, **options}
        made = RegressionWatch(self.store, self.clock, lambda: REGISTRY, self.carry_out, **options)
        self.watches.append(made)
        return made

    async def find(self, watch: RegressionWatch, *versions: str, well: bool = False) -> bool:
        """An evaluation of these versions comes, and is responded to without delay."""
        self.clock.ms += 1
        found = good("refusal") if well else bad("refusal")
        lines = [replace(found, agent_version=version, origin=Origin.AD_HOC) for version in versions]
        async with asyncio.timeout(AT_ONCE):
            return await watch.evaluated(lines, self.clock.ms)

    async def known(self) -> Regressions:
        return Regressions.decode(*await self.store.read([REGRESSION_STATE.key()]))

    async def answer(self) -> None:
        """Receivers answer, and every notice under way ends."""
        self.answered.set()
        for watch in self.watches:
            await watch.notified()


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(regression_watch, "WAIT_SECONDS", 0.3)
    made = World()
    yield made
    for watch in made.watches:
        await watch.close()


async def settle() -> None:
    """Let every task go on until it waits."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_receivers_that_never_answer_delay_neither_their_own_breachs_command_nor_any_other(world: World) -> None:
    one, other = world.watch(), world.watch()
    for number, watch in enumerate([one, one, other, other, one]):
        assert not await world.find(watch, f"v{number}"), "its page is still under way"
        assert (f"v{number}", Event.BREACH, Step.RAMP_DOWN) in world.ended
    await settle()
    assert {step for _, _, step in world.begun} == {Step.RAMP_DOWN, Step.PAGE, Step.LOG}
    await world.answer()
    assert await world.find(one, *(f"v{number}" for number in range(5))), "nothing is left"
    assert len(world.ended) == len(set(world.ended)) == 5 * 3


async def test_all_commands_of_a_look_go_before_its_first_notice_and_none_waits_for_another(world: World) -> None:
    world.slow.clear()
    look = asyncio.create_task(world.find(world.watch(), "slow", "v1", "v2"))
    await settle()
    assert {version for version, _, step in world.ended if step is Step.RAMP_DOWN} == {"v1", "v2"}
    assert {step for _, _, step in world.begun} == {Step.RAMP_DOWN}
    world.slow.set()
    await look
    await settle()
    assert {(version, step) for version, _, step in world.begun} == {
        (version, step) for version in ("slow", "v1", "v2") for step in (Step.RAMP_DOWN, Step.PAGE, Step.LOG)
    }


async def test_a_notice_that_hangs_holds_up_no_other_of_its_breach(world: World) -> None:
    await world.find(world.watch(), "v1")
    await settle()
    assert [step for _, _, step in world.begun] == [Step.RAMP_DOWN, Step.PAGE, Step.LOG]


async def test_what_a_notice_did_while_a_look_wrote_down_a_breach_is_forgotten_by_neither(world: World) -> None:
    """Both change the same key: the page's end falls between a look's reading and its writing."""
    watch = world.watch()
    await world.find(watch, "v1")
    await settle()
    apply, interrupted = world.store.apply, False

    async def in_between(change: Change) -> Any:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            await world.answer()
        return await apply(change)

    world.store.apply = in_between
    await world.find(watch, "v2")
    await watch.notified()
    known = await world.known()
    assert {breach.agent_version for breach in known.open.values()} == {"v1", "v2"}
    assert known.pending == []
    await world.find(watch)
    assert len(world.ended) == len(set(world.ended)) == 2 * 3, "no step is lost, none repeated"


async def test_a_breach_that_is_over_before_its_page_arrived_is_resolved_after_it_and_paged_no_second_time(
    world: World,
) -> None:
    """By whichever worker looks. Else a late page would leave an incident open that no one resolves."""
    one, other = world.watch(), world.watch()
    await world.find(one, "v1")
    await settle()
    for watch in (other, one):
        await world.find(watch, "v1", well=True)
        await settle()
    assert (Event.RECOVERED, Step.RESOLVE_PAGE) not in {(event, step) for _, event, step in world.begun}
    await world.answer()
    await world.find(other)
    await world.answer()
    sent = [(event, step) for _, event, step in world.ended if step in (Step.PAGE, Step.RESOLVE_PAGE)]
    assert sent == [(Event.BREACH, Step.PAGE), (Event.RECOVERED, Step.RESOLVE_PAGE)]
    assert (await world.known()).pending == []


async def test_of_two_workers_one_sends_a_notice_and_a_worker_that_slept_gives_its_notices_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper, other = world.watch(), world.watch()
    await world.find(sleeper, "v1")
    await settle()
    await world.find(other)
    await settle()
    assert [step for _, _, step in world.begun] == [Step.RAMP_DOWN, Step.PAGE, Step.LOG]
    world.clock.ms += SHORT_LEASE_MS
    await world.find(other)
    await settle()
    assert [step for _, _, step in world.begun].count(Step.PAGE) == 2, "the other takes over"
    async with asyncio.timeout(5 * SHORT_LEASE_MS / 1_000):
        await sleeper.notified()  # it notices at its next renewal
    assert (await world.known()).pending != []
    await world.answer()
    assert [step for _, _, step in world.ended].count(Step.PAGE) == 1


@pytest.mark.parametrize("ready", [True, False])
async def test_what_a_stopped_worker_left_undone_is_done_at_the_next_start_before_any_look(
    world: World, monkeypatch: pytest.MonkeyPatch, ready: bool
) -> None:
    """Also while the state is rebuilt, when no one may look at scores, which a worker that starts can't tell yet."""
    looked: list[Any] = []
    monkeypatch.setattr(world.store, "pools", looked.append)
    world.lost = {Step.RAMP_DOWN}
    first = world.watch()
    await world.find(first, "v1")
    await settle()
    await first.close()
    assert world.ended == []
    world.lost.clear()
    world.answered.set()
    second = world.watch(every=3600.0, ready=lambda: ready)
    running = asyncio.create_task(second.run())
    await asyncio.sleep(AT_ONCE)
    assert (await world.known()).pending == looked == []
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert [step for _, _, step in world.ended] == [Step.RAMP_DOWN, Step.PAGE, Step.LOG]


async def test_a_worker_that_stops_leaves_no_notice_running(world: World) -> None:
    running = asyncio.create_task(world.watch().run())
    await settle()
    await world.find(world.watches[0], "v1")
    await settle()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    left = [task for task in asyncio.all_tasks() if task.get_name().startswith(("notices", "renew"))]
    assert left == []


async def test_a_command_that_is_given_up_after_a_day_is_never_said_to_have_gone_out(world: World) -> None:
    world.lost = {Step.RAMP_DOWN, Step.PAGE}
    world.answered.set()
    watch = world.watch()
    await world.find(watch, "v1")
    await watch.notified()
    world.clock.ms += DAY - 2
    await world.find(watch)
    await watch.notified()
    (left,) = (await world.known()).pending
    assert left.left == (Step.RAMP_DOWN, Step.PAGE)
    known = await world.known()
    known.strike(left, Step.RAMP_DOWN, done=False)
    (left,) = known.pending
    assert left.left == (Step.PAGE,)
    assert left.response.steps == (Step.MANUAL_RAMP_DOWN, Step.PAGE, Step.LOG)
    world.clock.ms += 2
    await world.find(watch)
    await watch.notified()
    assert (await world.known()).pending == []
