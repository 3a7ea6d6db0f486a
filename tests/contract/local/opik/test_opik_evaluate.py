"""Opik's own `evaluate` over a dataset, with our metrics, gives the scores that the gate gives: the official SDK, the
stand-ins for Opik and for a judges' model (PC5 §5.4, AC-9; contracts §3, "One way").
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterator
from datetime import date
from typing import Any

import httpx
import opik
import pytest
from opik.api_objects import opik_client
from opik.evaluation.evaluation_result import EvaluationResult

import evalcore
from evalcore import reloading
from evalcore.gates.evaluate import ScoredGate, score_gate, scorer_for
from evalcore.gates.gate import prepare
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import Registry, build
from evalcore.scoring.answers import Scored
from evalcore.scoring.items import items_of
from evalcore.validation import checked
from schemas.judges import Milestone
from tests.root import ROOT
from tests.unit.rampgate.ci_gate.gate_rig import local_model

TODAY = date(2026, 11, 21)
SAID: dict[str, str | None] = {
    "good": "Here you are. #quality:1",
    "middling": "Perhaps so. #quality:0.4",
    "poor": "No. #quality:0",
    "beside the point": "#quality:na",
    "silent": None,
}
"""What the agent answers to an item, by the item's id."""
ITEMS: list[dict[str, Any]] = [
    {
        "input": f"How do I return a {name} parcel?",
        "expected_output": "WRITTEN BY HAND",
        "metadata": {"id": name, "category": "general_qa"},
    }
    for name in SAID
]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    made = build(checked(read_tree(ROOT / "configs"), TODAY)[0])
    monkeypatch.setattr(reloading, "current", lambda: made)
    return made


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The stand-in, where metrics and gates look for a model."""
    with local_model() as running:
        monkeypatch.setenv("OPENAI_API_BASE", running.url)
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up")
        yield running.url


@pytest.fixture
def sdk(client: opik.Opik) -> Iterator[opik.Opik]:
    opik_client.set_global_client(client)
    yield client
    opik_client.reset_global_client(end_client=False)


def evaluated(sdk: opik.Opik, project: str, registry: Registry) -> EvaluationResult:
    dataset = sdk.create_dataset(f"golden-{uuid.uuid4()}", project_name=project)
    dataset.insert(ITEMS)
    return opik.evaluate(
        dataset=dataset,
        task=lambda item: {"output": SAID[item["metadata"]["id"]]},
        scoring_metrics=[evalcore.get_metric_by_id(judge.id) for judge in registry.all()],
        project_name=project,
        verbose=0,
        task_threads=4,
    )


async def gated(model: str, registry: Registry) -> ScoredGate:
    given = [{**item, "output": SAID[item["metadata"]["id"]]} for item in ITEMS]
    items = items_of(given, Milestone.PRE_MERGE, registry.manifest["schema"])
    gate = prepare(Milestone.PRE_MERGE, items, registry.rules(), registry, None)
    async with scorer_for(url=model, key="sk-made-up") as scorer:
        return await score_gate(scorer, gate, TODAY)


def test_opiks_own_evaluate_gives_each_item_the_score_that_the_gate_gives_it(
    sdk: opik.Opik, http: httpx.Client, project: str, registry: Registry, model: str
) -> None:
    """A failed score is kept by Opik as no score, never as a zero."""
    logging.getLogger("opik").setLevel(logging.ERROR)
    run = evaluated(sdk, project, registry)
    found: dict[tuple[str, str], Any] = {}
    for result in run.test_results:
        item = result.test_case.dataset_item_content["metadata"]["id"]
        for score in result.score_results:
            outcome = (score.metadata or {}).get("outcome", "scored")
            found[score.name, item] = (outcome, score.value if outcome == "scored" else None)
    gate = asyncio.run(gated(model, registry))
    wanted: dict[tuple[str, str], Any] = {}
    for (judge, one), made in zip(gate.assignments, gate.judgements, strict=True):
        outcome = {"NotApplicable": "not_applicable", "Unscored": "unscored"}.get(type(made.answer).__name__, "scored")
        value = made.answer.value if isinstance(made.answer, Scored) else None
        wanted[judge.score_name, one.id] = (outcome, value)
    assert found == wanted
    assert len(found) == len(registry.all()) * len(ITEMS)
    assert {outcome for outcome, _ in found.values()} == {"scored", "not_applicable", "unscored"}
    assert {outcome for (_, item), (outcome, _) in found.items() if item == "silent"} == {"unscored"}
    assert http.get(f"/v1/private/experiments/{run.experiment_id}").json()["trace_count"] == len(ITEMS)
    for result in run.test_results:
        kept = sdk.get_trace_content(result.test_case.trace_id).feedback_scores or []
        given = {score.name: score.value for score in result.score_results if not score.scoring_failed}
        assert {score.name: score.value for score in kept} == given
