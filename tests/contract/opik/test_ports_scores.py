"""What every Scores promises: one suite on OpikScores with a local Opik, and on its twin in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import uuid6

from agents.ports import Refusal, Write
from schemas.outcomes import Cause
from streams.opik.client import OpikClient, OpikScores
from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.memory_ports import MemoryScores

PROJECT = "signals"


def write(trace_id: str, value: float | None = 1.0, name: str = "user_signal_thumbs") -> Write:
    return Write(trace_id, PROJECT, name, value, "user_mobile")


def new_id() -> str:
    return str(uuid6.uuid7())


@dataclass
class Rig:
    """The port under test, what is held behind it, and a trace whose scores it refuses."""

    scores: OpikScores | MemoryScores
    opik: ScriptedOpik | None
    refused: set[str] = field(default_factory=set)

    async def held(self, trace_id: str) -> dict[str, float]:
        if isinstance(self.scores, MemoryScores):
            return {name: value for (trace, name), value in self.scores.held.items() if trace == trace_id}
        assert self.opik is not None
        return {name: score["value"] for name, score in (await self.opik.scores_of(trace_id)).items()}

    async def refuse(self, trace_id: str) -> None:
        self.refused.add(trace_id)
        if self.opik is not None:
            await self.opik.fault(match={"method": "PUT", "trace_id": trace_id}, status=422, body={"errors": ["no"]})

    async def traces(self, count: int) -> list[str]:
        ids = [new_id() for _ in range(count)]
        if self.opik is not None:
            at = "2027-01-01T00:00:00Z"
            await self.opik.add_traces(*({"id": i, "project_name": PROJECT, "start_time": at} for i in ids))
        return ids


@pytest.fixture(params=["opik", "memory"])
async def rig(request: pytest.FixtureRequest, opik: ScriptedOpik) -> AsyncIterator[Rig]:
    if request.param == "memory":
        refused: set[str] = set()
        twin = MemoryScores(
            refuse=lambda w: Refusal(Cause.OPIK_REJECTED, "no") if w.trace_id in refused else None,
        )
        yield Rig(twin, None, refused)
        return
    client = OpikClient(opik.url, "default", None, 10.0, 8)
    yield Rig(OpikScores(client, in_flight=4, retry_seconds=5.0), opik)
    await client.close()


async def test_a_score_is_put_and_put_again_and_the_last_write_stands(rig: Rig) -> None:
    (trace,) = await rig.traces(1)
    assert await rig.scores.write([write(trace, -1.0)]) == [None]
    assert await rig.held(trace) == {"user_signal_thumbs": -1.0}
    assert await rig.scores.write([write(trace, 1.0), write(trace, 0.0, "user_signal_reroll")]) == [None, None]
    assert await rig.held(trace) == {"user_signal_thumbs": 1.0, "user_signal_reroll": 0.0}


async def test_the_last_of_two_writes_in_one_call_stands(rig: Rig) -> None:
    (trace,) = await rig.traces(1)
    assert await rig.scores.write([write(trace, 1.0), write(trace, -1.0)]) == [None, None]
    assert await rig.held(trace) == {"user_signal_thumbs": -1.0}


async def test_a_deletion_takes_its_score_and_no_other_and_may_be_repeated(rig: Rig) -> None:
    mine, other = await rig.traces(2)
    await rig.scores.write([write(mine), write(mine, 0.0, "user_signal_reroll"), write(other)])
    for _ in range(2):
        assert await rig.scores.write([write(mine, None)]) == [None]
    assert await rig.held(mine) == {"user_signal_reroll": 0.0}
    assert await rig.held(other) == {"user_signal_thumbs": 1.0}


async def test_puts_and_deletions_mix_and_the_outcomes_stand_in_the_order_of_the_writes(rig: Rig) -> None:
    ids = await rig.traces(12)
    await rig.scores.write([write(trace) for trace in ids])
    await rig.refuse(ids[4])
    writes = [write(trace, None if number % 3 == 0 else -1.0) for number, trace in enumerate(ids)]
    outcomes = await rig.scores.write(writes)
    assert [number for number, outcome in enumerate(outcomes) if outcome is not None] == [4]
    for number, trace in enumerate(ids):
        expected = {} if number % 3 == 0 else {"user_signal_thumbs": 1.0 if number == 4 else -1.0}
        assert await rig.held(trace) == expected, number


async def test_nothing_to_write_is_no_error(rig: Rig) -> None:
    assert await rig.scores.write([]) == []


async def test_one_refused_score_among_a_thousand_stands_alone(rig: Rig) -> None:
    ids = await rig.traces(1_000)
    await rig.refuse(ids[617])
    outcomes = await rig.scores.write([write(trace) for trace in ids])
    refused = {number: outcome for number, outcome in enumerate(outcomes) if outcome is not None}
    assert list(refused) == [617]
    assert refused[617].cause is Cause.OPIK_REJECTED
    assert "no" in refused[617].detail
    for number in (0, 616, 618, 999):
        assert await rig.held(ids[number]) == {"user_signal_thumbs": 1.0}
    assert await rig.held(ids[617]) == {}


async def test_more_scores_than_one_request_takes_are_all_written(rig: Rig) -> None:
    ids = await rig.traces(2_500)
    outcomes = await rig.scores.write([write(trace, -1.0 if n % 2 else 1.0) for n, trace in enumerate(ids)])
    assert outcomes == [None] * 2_500
    for number in (0, 999, 1_000, 1_999, 2_000, 2_499):
        assert await rig.held(ids[number]) == {"user_signal_thumbs": -1.0 if number % 2 else 1.0}
    if rig.opik is not None:
        requests = await rig.opik.requests()
        assert requests["PUT /v1/private/traces/feedback-scores"] == 3
