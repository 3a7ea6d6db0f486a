"""A turn that others change while it is looked at is looked at again."""

from __future__ import annotations

from collections.abc import Mapping

from agents.codec import TraceFacts
from agents.join.due_turns import revisit
from agents.join.turn import Mark, Signal, Turn, decode_turn, encode_turn
from agents.newcomers import Newcomers
from agents.policy import Policy
from agents.ports import Ports
from schemas.signals import THUMBS
from schemas.topics import Topics
from tests.memory_ports import ManualClock, MemoryDeadLetters, MemoryLog, MemoryScores, MemoryStore, MemoryTraces

FOREVER = 1 << 46


async def test_a_trace_that_arrives_during_a_search_is_still_asked_for_its_judge_scores() -> None:
    """A parked signal's trace is sought; meanwhile its event comes, without judge scores, and the settle time is over.
    The look that the event asked for must not be taken for done by the search."""
    clock = ManualClock()
    store = MemoryStore(clock)
    then = clock.ms - 3_600_000
    thumb = Signal(0, then, b"\\1", mark=Mark.DONE, origin=THUMBS.origin)
    parked = Turn(thumbs=Signal(1, then, b"\\1", mark=Mark.PARKED, origin=THUMBS.origin, parked_at=clock.ms))
    trace = bytes.fromhex("01a1fd3723eb73ae8cdfcff83f22a3c5")
    arrived = Turn(trace=trace, project="p", vertical="v", time=then, thumbs=thumb)
    store.values["t2:r"] = (encode_turn(parked), FOREVER)

    class Traces(MemoryTraces):
        async def find(self, since_ms: Mapping[str, int]) -> dict[str, TraceFacts]:
            store.values["t2:r"] = (encode_turn(arrived), FOREVER)  # another step's work, while we search
            return {}

        async def judged(self, turns: Mapping[str, tuple[str, str, int]]) -> set[str]:
            return set(turns)

    ports = Ports(store, MemoryScores(), MemoryDeadLetters(), MemoryLog(), Traces(), clock, Newcomers())
    await revisit(["r"], ports, Policy(), Topics())
    assert decode_turn(store.values["t2:r"][0]).judged == 1
