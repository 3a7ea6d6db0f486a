"""While a lost state is rebuilt, scores wait of which no one knows whether Opik holds them, and no others."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any, cast

import pytest

from agents import rerolls, thumbs, traces
from agents.codec import TraceFacts
from agents.join.batches import Batch
from agents.join.due_turns import revisit
from agents.join.rebuilding import adopt
from agents.join.step import Hold
from agents.join.turn import Mark
from agents.keys import FOREVER
from schemas.outcomes import Kind
from tests.unit.agents.builders import MINUTE, REROLL_SCORE, THUMBS_SCORE, reroll, thumb, trace
from tests.unit.agents.join.world import World

AGENTS = {Kind.THUMBS: thumbs.AGENT, Kind.REROLL: rerolls.AGENT, Kind.TRACE: traces.AGENT}


class Rebuilding:
    """A world whose state was lost now: `old` is a turn of before, `new` one of later."""

    def __init__(self) -> None:
        self.world = World()
        self.lost_at = self.world.clock.ms
        self.hold = Hold(self.lost_at + MINUTE)
        self.ids = {"old": self._id(self.lost_at - MINUTE), "new": self._id(self.lost_at + MINUTE)}
        self.world.wait(2 * MINUTE)

    @staticmethod
    def _id(ms: int) -> str:
        return str(uuid.UUID(int=(ms << 80) | (7 << 76) | (2 << 62) | ms % 1_000))

    def trace(self, rid: str) -> dict[str, Any]:
        return trace(rid, self.world.clock.ms) | {"trace_id": self.ids[rid]}

    async def tell(self, kind: str, event: Any, *, again: bool = False) -> None:
        """One record, handled under the hold; `again`: it was settled before the state was lost."""
        world = self.world
        (record,) = world.send(kind, event)
        batch = Batch(world.topics.of(kind), 0, record.offset, [record])
        if batch.watermark_key not in world.store.values:
            world.store.values[batch.watermark_key] = (str(batch.base).encode(), FOREVER)
        await world.handle(batch, AGENTS[Kind(kind)], hold=self.hold, settled=batch.end if again else 0)

    def written(self, rid: str) -> dict[str, list[float | None]]:
        """Name -> what was written, in order."""
        out: dict[str, list[float | None]] = {}
        for write in self.world.scores.log:
            if write.trace_id == self.ids[rid]:
                out.setdefault(write.name, []).append(write.value)
        return out

    def held_by_opik(self, rid: str, **wrote: int) -> TraceFacts:
        at, project = self.world.clock.ms - MINUTE, str(self.trace(rid)["project_name"])
        return TraceFacts(rid, uuid.UUID(self.ids[rid]).bytes, project, "", "", "", at, at, False, wrote=wrote)

    async def adopt(self, *found: TraceFacts) -> None:
        await adopt(found, self.world.ports, self.world.policy, self.hold.before)

    async def over(self) -> None:
        """The rebuild is over, and what waited is due."""
        self.hold.before = 0
        self.world.wait(MINUTE)
        await self.world.due()


@pytest.fixture
def rebuilding() -> Rebuilding:
    return Rebuilding()


async def test_a_turn_whose_trace_began_after_the_loss_is_scored_at_once(rebuilding: Rebuilding) -> None:
    await rebuilding.tell(Kind.TRACE, rebuilding.trace("new"))
    await rebuilding.tell(Kind.THUMBS, thumb("new", "up", rebuilding.world.clock.ms))
    assert rebuilding.written("new") == {THUMBS_SCORE: [1.0], REROLL_SCORE: [0.0]}


async def test_an_older_turn_waits_and_is_scored_once_the_rebuild_is_over(rebuilding: Rebuilding) -> None:
    await rebuilding.tell(Kind.TRACE, rebuilding.trace("old"))
    await rebuilding.tell(Kind.THUMBS, thumb("old", "up", rebuilding.world.clock.ms))
    assert rebuilding.written("old") == {}
    turn = rebuilding.world.turn("old")
    assert turn.thumbs is not None
    assert turn.thumbs.mark == Mark.WITHHELD
    await rebuilding.over()
    assert rebuilding.written("old") == {THUMBS_SCORE: [1.0], REROLL_SCORE: [0.0]}


async def test_an_older_turn_whose_project_is_adopted_is_scored_at_once(rebuilding: Rebuilding) -> None:
    event = rebuilding.trace("old")
    await rebuilding.tell(Kind.TRACE, event)
    rebuilding.hold.project = event["project_name"]
    await rebuilding.tell(Kind.THUMBS, thumb("old", "up", rebuilding.world.clock.ms))
    assert rebuilding.written("old") == {}, "this project is being adopted"
    rebuilding.hold.project = event["project_name"] + "-next"
    await rebuilding.tell(Kind.THUMBS, thumb("old", "down", rebuilding.world.clock.ms + 1_000))
    assert rebuilding.written("old") == {THUMBS_SCORE: [-1.0], REROLL_SCORE: [0.0]}


async def test_a_trace_whose_id_tells_no_time_counts_as_older(rebuilding: Rebuilding) -> None:
    rebuilding.ids["new"] = str(uuid.uuid4())
    await rebuilding.tell(Kind.TRACE, rebuilding.trace("new"))
    await rebuilding.tell(Kind.THUMBS, thumb("new", "up", rebuilding.world.clock.ms))
    assert rebuilding.written("new") == {}


@pytest.mark.parametrize("adopted_first", [True, False])
async def test_what_opik_holds_is_written_no_second_time_whichever_is_known_first(
    rebuilding: Rebuilding, adopted_first: bool
) -> None:
    """Adoption and reading again go on side by side."""
    held, at = rebuilding.held_by_opik("old", thumbs=-1, reroll=1), rebuilding.world.clock.ms
    if adopted_first:
        await rebuilding.adopt(held)
    await rebuilding.tell(Kind.TRACE, rebuilding.trace("old"), again=True)
    await rebuilding.tell(Kind.THUMBS, thumb("old", "up", at - 2_000), again=True)
    await rebuilding.tell(Kind.THUMBS, thumb("old", None, at - 1_000), again=True)
    await rebuilding.tell(Kind.THUMBS, thumb("old", "down", at), again=True)
    if not adopted_first:
        await rebuilding.adopt(held)
    await rebuilding.over()
    assert rebuilding.written("old") == {}
    turn = rebuilding.world.turn("old")
    assert turn.thumbs is not None
    assert (turn.thumbs.mark, turn.wrote_thumbs, turn.wrote_reroll) == (Mark.DONE, -1, 1)


async def test_a_new_record_beside_one_that_another_worker_has_still_to_read_writes_no_overruled_thumb(
    rebuilding: Rebuilding,
) -> None:
    """Thumbs up, then down, both settled: up is read again; then a reroll comes on another worker's partition."""
    at = rebuilding.world.clock.ms
    await rebuilding.adopt(rebuilding.held_by_opik("old", thumbs=-1, reroll=1))
    await rebuilding.tell(Kind.TRACE, rebuilding.trace("old"), again=True)
    await rebuilding.tell(Kind.THUMBS, thumb("old", "up", at - 1_000), again=True)
    await rebuilding.tell(Kind.REROLL, reroll("old", at=at))
    await rebuilding.tell(Kind.THUMBS, thumb("old", "down", at), again=True)
    await rebuilding.over()
    assert rebuilding.written("old") == {REROLL_SCORE: [1.0]}


async def test_what_is_written_during_the_rebuild_is_not_adopted_afterwards(rebuilding: Rebuilding) -> None:
    """A page of Opik's may be older than the withdrawal that was written since; the turn knows better."""
    at = rebuilding.world.clock.ms
    page = rebuilding.held_by_opik("new", thumbs=1, reroll=1)
    await rebuilding.tell(Kind.TRACE, rebuilding.trace("new"))
    await rebuilding.tell(Kind.THUMBS, thumb("new", "up", at))
    await rebuilding.tell(Kind.THUMBS, thumb("new", None, at + 1_000))
    await rebuilding.adopt(page)
    await rebuilding.tell(Kind.THUMBS, thumb("new", "up", at + 2_000))
    assert rebuilding.world.scores.held[rebuilding.ids["new"], THUMBS_SCORE] == 1.0


@pytest.mark.parametrize("held_by_opik", [True, False])
async def test_a_search_that_was_asked_before_the_loss_writes_nothing_while_the_state_is_rebuilt(
    rebuilding: Rebuilding, held_by_opik: bool
) -> None:
    """Opik lets a search wait; meanwhile the state is lost, and the turn's records are read again."""
    world, at = rebuilding.world, rebuilding.world.clock.ms
    rebuilding.hold.before = 0
    await rebuilding.tell(Kind.TRACE, rebuilding.trace("old"))
    await rebuilding.tell(Kind.THUMBS, thumb("old", "up", at))
    held = rebuilding.held_by_opik("old", thumbs=1, reroll=1)
    lost = False

    async def waits() -> bool:
        return lost

    class Slow:
        async def judged(self, turns: Any) -> set[str]:
            nonlocal lost
            if not lost:
                lost, rebuilding.hold.before = True, world.clock.ms + MINUTE
                world.lose_state()
                await rebuilding.tell(Kind.TRACE, rebuilding.trace("old"), again=True)
                await rebuilding.tell(Kind.THUMBS, thumb("old", "up", at), again=True)
            return set()

    before = rebuilding.written("old")
    ports = replace(world.ports, traces=cast(Any, Slow()))
    await revisit(["old"], ports, world.policy, world.topics, waits)
    assert lost
    assert rebuilding.written("old") == before
    if held_by_opik:
        await rebuilding.adopt(held)
    await rebuilding.over()
    again = 1 if held_by_opik else 2
    assert rebuilding.written("old") == {name: values * again for name, values in before.items()}
