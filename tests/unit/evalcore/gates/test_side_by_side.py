"""The candidate and the judges run side by side: a gate takes as long as the slower of them, and not both (PC5 NFR-2).

By virtual time, so that no machine's load moves it. In whatever order the candidate's answers come, the verdict is the
one that the same answers at hand have.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.gates.ports import GatePorts
from agents.gates.scoring import JudgeScoring
from agents.policy import Policy
from agents.ramp_steps import answer
from evalcore.gates.golden import CandidateAnswer, GoldenSet, Pending
from evalcore.judges.evaluator import Prompt
from evalcore.remediation.sealing import TraceForms
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import Reply, Spend
from evalcore.scoring.items import Failed, identity
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.runner import Scorer
from rampgate.ci_gate.run import GateRequest, GateRun, run
from schemas.verdicts import Code, VerdictLevel
from streams.gates.candidate import CandidateAnswers, CandidateClient, CandidateLimits
from streams.gates.samples import FrozenSamples, PooledTraces
from tests.memory_ports import MemoryScoreEvents
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.streams.gates.sample_world import NOW, Told, World, asked, known, not_in_opik
from tests.virtual_time import loop_time, virtual_time

ROWS, SECONDS, AT_ONCE = 64, 3.0, 8
REGISTRY = built({"evaluation_manifest.yaml": f"{{dataset: {{name: golden, version: 7, items: {ROWS}}}}}"})


@dataclass
class Model:
    """A model that takes its time. `scores`: what an output says of numbers; `busy` is when it was asked."""

    seconds: float = 0.0
    busy: list[float] = field(default_factory=list)

    def source(self, model: str) -> str:
        return "test"

    async def complete(self, prompt: Prompt) -> Reply:
        self.busy.append(loop_time())
        await asyncio.sleep(self.seconds)
        kinds = [one["type"] for one in prompt.schema["properties"]["score"]["anyOf"]]
        number = int(prompt.output.rpartition(" ")[2]) if prompt.output.rpartition(" ")[2].isdigit() else 0
        score: Any = True if "boolean" in kinds else 1 + number % 5 if "integer" in kinds else (number % 5) / 4
        return Reply(json.dumps({"score": score, "reason": "r"}), 100)


@dataclass
class Agent:
    """A candidate that takes three seconds. `ended` is when it has answered last."""

    ended: float = 0.0
    seconds: float = SECONDS

    async def post(self, url: str, *, content: bytes, headers: Mapping[str, str]) -> Any:
        await asyncio.sleep(self.seconds)
        self.ended = loop_time()
        said = f"so: {json.loads(content)['input']}"
        return SimpleNamespace(status_code=200, headers={}, content=json.dumps({"output": said}).encode())


def scorer(model: Model, at_once: int = 20) -> Scorer:
    return Scorer(model, MemoryScoreCache(), CallLimits(at_once), now=loop_time)


def ports(world: World, agent: Agent, scorer: Scorer) -> GatePorts:
    """A rollout's gate with a real candidate and real judges."""
    this: Any = world
    told: Any = Told()
    answers = CandidateAnswers(agent, None, world.store, Policy(), world.clock)
    traces = PooledTraces(world.store, this, "traces", world.clock, not_in_opik, TraceForms())
    samples = FrozenSamples(world.store, traces, Policy(), world.clock, world.read, answers)
    return GatePorts(samples, JudgeScoring(scorer, MemoryScoreEvents(), world.clock), told, told)


def rows(count: int = ROWS) -> list[dict[str, Any]]:
    return [
        {"input": f"do {n}", "metadata": {"id": f"i{n}", "category": ("general_qa", "shop_returns")[n % 2]}}
        for n in range(count)
    ]


async def gate_run(
    answers: Mapping[str, CandidateAnswer | Pending], model: Model, items: list[dict[str, Any]], **more: Any
) -> GateRun:
    async def dataset() -> GoldenSet:
        return GoldenSet(items, "golden")

    return await run(GateRequest(REGISTRY, TODAY, **more), dataset, lambda _: answers, scorer(model))


@virtual_time
async def test_pc5_nfr_2_before_a_merge_the_gate_takes_as_long_as_the_slower_of_candidate_and_judges() -> None:
    agent, model = Agent(), Model(2.0)
    client = CandidateClient(agent, "http://agents", limits=CandidateLimits(AT_ONCE))
    items = rows()
    answers = {identity(row): Pending(partial(client.answer, row)) for row in items}
    done = await gate_run(answers, model, items)
    candidates, judges = ROWS / AT_ONCE * SECONDS, len(model.busy) * model.seconds / 20
    assert agent.ended == candidates
    assert judges > candidates / 2, "else it would show nothing"
    assert loop_time() <= 1.15 * max(candidates, judges) + SECONDS, "the judges have nothing to do before an answer"
    assert done.answered == ROWS
    assert done.document()["evidence"]["model_calls"] == len(model.busy), "each was asked once"


@virtual_time
async def test_the_evidence_counts_every_call_also_one_that_gave_no_score() -> None:
    """Every second reply of the model is prose, and what it is asked again costs as much."""

    class Slipping(Model):
        async def complete(self, prompt: Prompt) -> Reply:
            slips = len(self.busy) % 2 == 0
            said = await super().complete(prompt)
            return Reply("well", 100) if slips else said

    model, items = Slipping(), rows(4)
    client = CandidateClient(Agent(), "http://agents", limits=CandidateLimits(AT_ONCE))
    done = await gate_run({identity(row): Pending(partial(client.answer, row)) for row in items}, model, items)
    assert done.document()["evidence"]["model_calls"] == len(model.busy) > len(done.scored.judgements)


@virtual_time
async def test_pc5_nfr_2_a_rollouts_gate_judges_what_the_candidate_has_answered_while_it_answers_the_rest() -> None:
    world, agent, model = World(), Agent(), Model(1.0)
    world.datasets["golden"] = rows(ROWS)
    registry = known(None, candidate={"url": "http://agents", "at_once": AT_ONCE, "tries": 1})
    await world.traced(40)
    request = asked(deadline_seconds=None, eval_gates={"pre_ramp": ["helpfulness"], "pre_full": []})
    verdict = await answer(request, registry, ports(world, agent, scorer(model, 4)), NOW)
    assert verdict.sample is not None
    candidates, judges = -(-verdict.sample.size // AT_ONCE) * SECONDS, len(model.busy) * model.seconds / 4
    assert agent.ended == candidates
    assert judges > candidates / 2
    assert loop_time() <= 1.15 * max(candidates, judges) + SECONDS


@virtual_time
async def test_a_candidate_that_is_slower_than_the_deadline_is_cut_off_and_nothing_goes_on() -> None:
    world, agent, model = World(), Agent(seconds=1_000.0), Model()
    at = datetime.now(UTC)
    request = asked(deadline_seconds=5.0, requested_at=at.isoformat(), eval_gates={"pre_ramp": ["helpfulness"]})
    verdict = await answer(request, known(), ports(world, agent, scorer(model)), at)
    assert (verdict.verdict, {one.code for one in verdict.reasons}) == (VerdictLevel.FAIL, {Code.DEADLINE_EXCEEDED})
    assert len(asyncio.all_tasks()) == 1


@dataclass(frozen=True)
class Turn:
    """An item, its answer, None where the candidate fails, and when that comes."""

    named: bool
    said: int | None
    after: float


TURNS = st.lists(
    st.builds(Turn, st.booleans(), st.none() | st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0])),
    min_size=1, max_size=24,
)  # fmt: skip


@given(TURNS, st.none() | st.integers(0, 40), st.sampled_from([0.0, 0.7, 3.0]))
@settings(max_examples=60, deadline=None)
@virtual_time
async def test_in_whatever_order_answers_come_the_verdict_is_that_of_the_answers_at_hand(
    turns: list[Turn], calls: int | None, seconds: float
) -> None:
    """Items without an id and alike, failed ones, equal answers, and what a gate may spend too."""
    items = [
        {"input": "do it", "metadata": {"category": "general_qa"} | ({"id": f"i{n}"} if turn.named else {})}
        for n, turn in enumerate(turns)
    ]
    said: dict[str, CandidateAnswer] = {
        identity(row, n): Failed(f"down {n}") if turn.said is None else {"output": f"so {turn.said}"}
        for n, (row, turn) in enumerate(zip(items, turns, strict=True))
    }

    async def after(wait: float, found: CandidateAnswer) -> CandidateAnswer:
        await asyncio.sleep(wait)
        return found

    waits = zip(said.items(), turns, strict=True)
    pending = {name: Pending(partial(after, turn.after, found)) for (name, found), turn in waits}
    at_hand = await gate_run(said, Model(seconds), items, spend=Spend(calls))
    as_they_come = await gate_run(pending, Model(seconds), items, spend=Spend(calls))
    assert asdict(as_they_come.verdict) == asdict(at_hand.verdict)
    assert as_they_come.answered == at_hand.answered
    assert as_they_come.document()["evidence"]["judged"] == at_hand.document()["evidence"]["judged"]


@virtual_time
async def test_what_was_judged_ahead_is_no_question_twice() -> None:
    model, spend = Model(), Spend()
    said = {identity(row, n): {"output": f"so {n}"} for n, row in enumerate(rows(10))}
    waits = {name: Pending(partial(asyncio.sleep, 1.0, found)) for name, found in said.items()}
    await gate_run(waits, model, rows(10), spend=spend)
    assert spend.questions == len(model.busy)


@pytest.mark.parametrize("scored", [True, False], ids=["a model", "no model"])
@virtual_time
async def test_what_an_answer_costs_in_the_end_is_one_ask(scored: bool) -> None:
    items, count = rows(10), 0

    async def ask() -> CandidateAnswer:
        nonlocal count
        count += 1
        return {"output": "so"}

    async def dataset() -> GoldenSet:
        return GoldenSet(items, "golden")

    answers = {identity(row): Pending(ask) for row in items}
    await run(GateRequest(REGISTRY, TODAY), dataset, lambda _: answers, scorer(Model()) if scored else None)
    assert count == len(items)
