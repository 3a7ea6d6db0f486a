"""Each score of a gate is an event for PS-5: once for each gate, item and judge, and before its verdict (PC5 §9.4)."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agents.gates.ports import AskingGate, GatePorts, Item, OutOfTime, Sample
from agents.gates.scoring import JudgeScoring
from agents.ports import Unavailable
from agents.ramp_steps import answer
from evalcore.gates.requests import RampRequest, read
from evalcore.judges.evaluator import Task
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Judgement, Scored, Unscored
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import Failure
from schemas.judges import Milestone
from schemas.publish.contracts import schema
from schemas.verdicts import Verdict
from schemas.wire_forms import ScoreEvent
from tests.memory_ports import ManualClock, MemoryScoreEvents
from tests.unit.agents.gates.ramp_answers_rig import NOW, REQUEST, SAFETY, Coverage, Scripted, registry
from tests.unit.agents.live.live_rig import Otherwise, Willing
from tests.unit.evalcore.scoring.scoring_rig import scorer

TRACES = [uuid.UUID(int=number + (7 << 76)) for number in range(40)]
CANARY = "canary@example.org"
METADATA = {"sub_agent": "receipts", "category": "receipt_scan", "vertical": "receipts"}
JUDGES = SAFETY | {"ux_quality"}


def traced(trace: uuid.UUID) -> Item:
    metadata = {**METADATA, "agent_id": "receipts-agent", "agent_version": "abc122"}
    turn = {"response_id": f"r-{trace.int % 100}", "input": f"{CANARY} {trace}", "output": "so", "metadata": metadata}
    return Item(trace.hex, "online", turn)


def sample() -> list[Item]:
    """Traces of an earlier version, an item of a dataset, the candidate's answer to the first trace's input."""
    own = {"input": CANARY, "output": "thus", "expected_output": "thus", "metadata": {"category": "receipt_scan"}}
    again = {"input": f"{CANARY}!", "output": "well", "metadata": {**METADATA, "agent_version": "abc123"}}
    return [
        *map(traced, TRACES),
        Item("set v7: ts-014", "offline", own),
        Item(f"{TRACES[0].hex} by the candidate", "online", again),
    ]


@dataclass
class World(Scripted):
    """A gate's ports whose judges really score. `events` is the topic."""

    events: MemoryScoreEvents = field(default_factory=MemoryScoreEvents)
    cache: MemoryScoreCache = field(default_factory=MemoryScoreCache)
    model: Willing = field(default_factory=Willing)

    async def frozen(self, asked: RampRequest, milestone: Milestone, registry: Registry) -> Sample:
        return replace(await super().frozen(asked, milestone, registry), items=sample())

    async def decided(self, **changes: Any) -> Verdict:
        """By a worker that remembers nothing but what stores hold."""
        request = read(json.dumps({**REQUEST, "deadline_seconds": None, **changes}).encode())
        assert isinstance(request, RampRequest)
        scoring = JudgeScoring(scorer(self.model, self.cache), self.events, ManualClock())
        return await answer(request, registry(), GatePorts(self, scoring, self, Coverage(self)), NOW)

    def of(self, **wanted: Any) -> list[ScoreEvent]:
        return [event for event in self.events.events if wanted.items() <= event.items()]


async def test_pc5_9_4_each_item_and_judge_of_a_gate_is_one_event_of_the_published_form() -> None:
    world = World()
    await world.decided()
    assert len(world.events.distinct()) == len(world.events.events) == len(sample()) * len(JUDGES)
    for event in world.events.events:
        Draft202012Validator(schema("judge-score")).validate(event)
        assert (event["source"], event.get("request_id"), event.get("milestone")) == ("gate", "r-1", "pre_ramp")
        assert CANARY not in json.dumps(event)
    assert {event["judge_id"] for event in world.events.events} == JUDGES


async def test_a_trace_keeps_its_id_its_turn_and_its_version_and_what_is_no_trace_is_an_item() -> None:
    world = World()
    await world.decided()
    names = ("trace_id", "item_id", "response_id", "agent_id", "agent_version", "vertical")
    about = {tuple(event.get(name) for name in names) for event in world.of(judge_id="ux_quality")}
    made = "receipts-agent", "abc123", "receipts"
    assert about == {
        *((str(one), None, f"r-{one.int % 100}", "receipts-agent", "abc122", "receipts") for one in TRACES),
        (None, "set v7: ts-014", None, *made),
        (None, f"{TRACES[0].hex} by the candidate", None, *made),
    }


async def test_both_gates_of_a_jump_have_events_of_their_own() -> None:
    world = World()
    await world.decided(from_percent=0, to_percent=100)
    assert len(world.events.distinct()) == len(world.events.events) == 2 * len(sample()) * len(JUDGES)


async def test_a_gate_that_is_decided_again_has_the_same_events_and_another_request_has_others() -> None:
    world = World()
    await world.decided()
    once = world.events.distinct()
    world.cache, world.model = MemoryScoreCache(), Otherwise()
    await world.decided()
    assert Counter(event["event_id"] for event in world.events.events) == dict.fromkeys(once, 2)
    await world.decided(request_id="r-2")
    assert len(world.events.distinct()) == 2 * len(once)


async def test_remembered_answers_are_events_too() -> None:
    world = World()
    await world.decided()
    calls = len(world.model.calls)
    await world.decided(request_id="r-2")
    assert len(world.model.calls) == calls
    assert len(world.of(request_id="r-2")) == len(world.of(request_id="r-1"))


async def test_there_is_no_verdict_before_the_events_are_durable() -> None:
    world = World(events=MemoryScoreEvents(down=True))
    with pytest.raises(Unavailable):
        await world.decided()
    calls = len(world.model.calls)
    world.events.down = False
    assert (await world.decided()).gates
    assert len(world.model.calls) == calls, "answers are kept meanwhile"
    assert len(world.events.distinct()) == len(sample()) * len(JUDGES)


async def test_of_a_gates_time_judges_have_what_the_candidates_answers_left() -> None:
    class Timed:
        in_order = False
        given: float | None = None

        @asynccontextmanager
        async def begun(self, *_: Any) -> AsyncIterator[Timed]:
            yield self

        def take(self, tasks: Sequence[Task]) -> None: ...

        async def ended(self, tasks: Sequence[Task], within: float | None) -> list[Judgement]:
            self.given = within
            return [Judgement(Scored(1.0)) for _ in tasks]

    async def answered() -> Item:
        await asyncio.sleep(0.2)
        return Item("late", "offline", {"input": "how?", "output": "so"})

    timed: Any = Timed()
    scoring = JudgeScoring(timed, MemoryScoreEvents(), ManualClock())
    waits = Item("late", "offline", {}, later=answered)
    gate = AskingGate("r-1", Milestone.PRE_RAMP, "a", "v")
    await scoring.score(gate, [registry().judge("ux_quality")], [waits], 60.0)
    assert 30.0 < timed.given < 59.9


async def test_what_judges_answered_before_a_gate_ran_out_of_time_is_told() -> None:
    class Late:
        in_order = False

        @asynccontextmanager
        async def begun(self, *_: Any) -> AsyncIterator[Late]:
            yield self

        async def ended(self, tasks: Sequence[Task], within: float | None) -> list[Judgement]:
            missing = Judgement(Unscored("late"), failure=Failure.OUT_OF_TIME)
            return [missing if number else Judgement(Scored(1.0)) for number, _ in enumerate(tasks)]

    events = MemoryScoreEvents()
    late: Any = Late()
    scoring = JudgeScoring(late, events, ManualClock())
    gate = AskingGate("r-1", Milestone.PRE_RAMP, "a", "v")
    with pytest.raises(OutOfTime):
        await scoring.score(gate, [registry().judge("ux_quality")], sample(), 60.0)
    assert [event["score"] for event in events.events] == [1.0] + [None] * (len(sample()) - 1)
    assert [event.get("unscored", False) for event in events.events] == [False] + [True] * (len(sample()) - 1)
