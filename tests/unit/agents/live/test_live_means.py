"""Means over live scores stand for the whole traffic, though every thumbs-down is scored (PC5 FR-11).

The way is the real one: traces and thumbs come in, live judges score what their rates choose and what was voted down,
and the mean is the one that is compared with the floor.
"""

from __future__ import annotations

import json
import random
import re
import uuid
from typing import Any

import pytest

from agents.live.scores import watched
from evalcore.gates.limits import aggregate
from evalcore.gates.regression import Watched
from evalcore.judges.evaluator import Prompt
from evalcore.scoring.calls import Reply
from tests.unit.agents.builders import DAY, thumb, trace
from tests.unit.agents.live.live_rig import Rig, Willing
from tests.unit.evalcore.registry.registry_disk import built

RATE, TURNS, RUNS = 0.2, 250, 8
REGISTRY = built({"rules/helpfulness.yaml": f"{{sampling_rate: {RATE}}}"})


class Reader(Willing):
    """Gives the score that stands in the turn."""

    async def complete(self, asked: Prompt) -> Reply:
        found = re.search(r"quality-(\d)", asked.messages[1]["content"])
        if found is None or asked.schema["properties"]["score"]["anyOf"][0]["type"] != "integer":
            return await super().complete(asked)
        self.calls.append(asked.output)
        return Reply(json.dumps({"score": int(found[1]), "reason": "as it stands there"}))


class Traffic:
    """A seeded run of turns. The worse one was, the likelier it is voted down."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.rig = Rig(REGISTRY)
        self.rig.model = Reader()
        self.turns = [draw.choices((1, 2, 3, 4, 5), (1, 1, 2, 4, 4))[0] for _ in range(TURNS)]
        self.down = [draw.random() < (0.6, 0.4, 0.1, 0.02, 0.01)[quality - 1] for quality in self.turns]
        self.ids = [str(uuid.UUID(bytes=draw.randbytes(16), version=4)) for _ in range(TURNS)]

    @property
    def truth(self) -> float:
        return sum(self.turns) / TURNS

    def event(self, number: int) -> dict[str, Any]:
        made = trace(f"r{number}", vertical=None)
        made["metadata"]["agent_version"] = "v7"
        text = f"so {number}: quality-{self.turns[number]}"
        version_7 = self.ids[number][:14] + "7" + self.ids[number][15:]
        return made | {
            "trace_id": version_7,
            "input": {"messages": [{"content": "how?"}]},
            "output": {"messages": [{"content": text}]},
        }

    async def come(self) -> None:
        """Half of the thumbs come before the turn is judged, the others later."""
        votes = [thumb(f"r{n}") for n in range(TURNS) if self.down[n]]
        await self.rig.thumbs(*votes[::2])
        await self.rig.traces(*(self.event(n) for n in range(TURNS)))
        await self.rig.thumbs(*votes[1::2])

    async def seen(self) -> Watched:
        world = self.rig.world
        found = await watched(world.store, REGISTRY, world.clock.ms, DAY)
        return next(one for one in found if one.judge.id == "helpfulness")


def held_against_the_floor(one: Watched) -> float:
    found = aggregate(one.answers, one.judge.score_range, False)
    assert found.best == found.worst is not None
    return found.worst


async def test_the_mean_that_is_held_against_the_floor_is_unbiased_and_the_plain_mean_is_not() -> None:
    weighted, plain = [], []
    for seed in range(RUNS):
        traffic = Traffic(seed)
        await traffic.come()
        one = await traffic.seen()
        assert len(one.answers.values) < TURNS / 2, "most turns were not sampled"
        assert len(one.answers.values) >= sum(traffic.down), "every thumbs-down was"
        weighted.append(held_against_the_floor(one) - traffic.truth)
        plain.append(sum(one.answers.values) / len(one.answers.values) - traffic.truth)
    assert sum(weighted) / RUNS == pytest.approx(0.0, abs=0.1)
    assert max(plain) < -0.3
    assert sum(plain) / RUNS < -0.5


async def test_a_redelivery_and_a_later_thumb_count_nothing_twice() -> None:
    traffic = Traffic(7)
    await traffic.come()
    before, calls = await traffic.seen(), len(traffic.rig.model.calls)
    await traffic.come()
    again = await traffic.seen()
    assert sorted(zip(again.answers.values, again.answers.weights, strict=True)) == sorted(
        zip(before.answers.values, before.answers.weights, strict=True)
    )
    assert len(traffic.rig.model.calls) == calls


async def test_a_later_thumbs_down_on_a_sampled_turn_changes_its_weight_and_adds_no_score() -> None:
    traffic = Traffic(3)
    traffic.down = [False] * TURNS
    await traffic.come()
    before = await traffic.seen()
    assert set(before.answers.weights) == {1 / RATE}
    calls = len(traffic.rig.model.calls)
    turns = len(before.answers.values)
    await traffic.rig.thumbs(*(thumb(f"r{n}", at=traffic.rig.world.clock.ms) for n in range(TURNS)))
    after = await traffic.seen()
    assert (len(after.answers.values), set(after.answers.weights)) == (TURNS, {1.0})
    assert len(traffic.rig.model.calls) == calls + TURNS - turns, "whoever had scored it is not asked again"
    assert held_against_the_floor(after) == pytest.approx(traffic.truth)
