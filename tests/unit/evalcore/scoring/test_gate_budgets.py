"""How long gates may take, with the limits as shipped and a model that answers in two seconds (PC5 NFR-2, NFR-3).

By the number of calls, and not by the clock: calls × latency ÷ calls at once. How near to that a gate comes is what
`benchmarks/judges.py` measures.
"""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path

import pytest

from evalcore.gates.gate import prepare
from evalcore.gates.golden import GoldenSet, golden_sample
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import Registry, build
from evalcore.scoring.assignments import assign, score_assignments
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.items import Item
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.runner import Scorer
from evalcore.validation import checked
from rampgate.settings import Settings
from schemas.judges import Milestone
from streams.gates.candidate import CandidateLimits
from tests.unit.evalcore.scoring.scoring_rig import Model

LATENCY = 2.0
AT_ONCE = Settings().model_calls_at_once


@pytest.fixture(scope="module")
def registry() -> Registry:
    return build(checked(read_tree(Path("configs")), date(2026, 11, 21))[0])


def seconds(calls: int) -> float:
    return calls * LATENCY / AT_ONCE


def traces(count: int) -> list[Item]:
    texts = [{"input": {"messages": [{"content": f"{n}?"}]}, "output": {"messages": [{"content": [{"text": f"{n}"}]}]}}
             for n in range(count)]  # fmt: skip
    return [Item(f"t{number}", "online", text) for number, text in enumerate(texts)]


def test_pc5_nfr_2_the_shipped_datasets_345_items_need_few_enough_calls_for_five_minutes(registry: Registry) -> None:
    """Items of all categories alike, each scored by its category's judges."""
    categories, count = sorted(registry.category_files), registry.manifest["dataset"]["items"]
    rows = [
        {"input": "?", "metadata": {"id": f"{n}", "category": categories[n % len(categories)]}} for n in range(count)
    ]
    answers = {f"{n}": {"output": "so"} for n in range(count)}
    sample = golden_sample(GoldenSet(rows, "golden", "golden", 1), answers, registry, None)
    gate = prepare(Milestone.PRE_MERGE, *sample, registry, None)
    assert count == len(gate.items) == 345
    assert len(gate.assignments) > count * sum(judge.safety for judge in gate.judges.values())
    assert seconds(len(gate.assignments)) < 300


def test_pc5_nfr_2_a_candidate_that_takes_three_seconds_an_answer_has_answered_them_all_by_then(
    registry: Registry,
) -> None:
    """As many at once as are asked where nobody says otherwise. Its time is not the judges': they score meanwhile
    (tests/unit/evalcore/gates/test_side_by_side.py)."""
    assert registry.manifest["dataset"]["items"] / CandidateLimits().at_once * 3.0 < 300


def test_pc5_nfr_3_a_hundred_traces_by_every_judge_there_is_need_few_enough_calls_for_ten_minutes(
    registry: Registry,
) -> None:
    judges, items = registry.all(), traces(100)
    most = len(judges) * len(items)
    assert 0 < len(assign(judges, items)) <= most, "filters and rates leave some out"
    assert seconds(most) < 600


async def test_pc5_nfr_3_a_gate_makes_one_call_for_each_trace_and_judge_and_uses_every_place(
    registry: Registry,
) -> None:
    """What the figures above stand on."""
    judges = [registry.judge(name) for name in ("jailbreaking", "safety_restricted", "sensitive_topics")]
    model = Model('{"score": true, "reason": "r"}', seconds=0.001)
    ours = Scorer(model, MemoryScoreCache(), CallLimits(AT_ONCE))
    pairs = assign(judges, traces(100))
    async with ours.begun("g") as scoring:
        found = await asyncio.wait_for(score_assignments(scoring, pairs), 60)
    assert (len(model.calls), model.busiest) == (len(pairs), AT_ONCE) == (300, 20)
    assert not [one.failure for one in found if one.failure]
