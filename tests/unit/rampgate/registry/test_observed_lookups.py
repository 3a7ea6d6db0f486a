"""A worker's look-ups of judges are observed, by id, category and classification (PF-9 NFR-2)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from evalcore import reloading
from evalcore.yaml.suggestions import UnknownJudge
from rampgate.registry.metrics import observed
from rampgate.settings import Settings
from rampgate.wiring import make_parts
from rampgate.worker.operators import Operators
from schemas.checks.evaluation import EvaluatedJudge, Evaluation, Origin
from streams.alerts.regression_watch import RegressionWatch
from streams.metrics import Metrics
from tests.root import ROOT
from tests.unit.agents.builders import Rec


@pytest.fixture
def shipped() -> Iterator[None]:
    before = reloading._chosen
    reloading.use(ROOT / "configs")
    reloading.current()
    yield
    reloading._chosen = before


def lookups(metrics: Metrics, upto: str = "") -> float:
    name = "eval_judge_registry_lookup_latency_seconds"
    found = metrics.registry.get_sample_value(*((f"{name}_bucket", {"le": upto}) if upto else (f"{name}_count",)))
    return found or 0


@pytest.mark.usefixtures("shipped")
def test_pf9_nfr2_lookups_by_id_category_and_classification_are_observed_and_answer_the_same() -> None:
    metrics, plain = Metrics(), reloading.current()
    view = observed(metrics)()
    assert view is not None
    asked: list[Any] = [
        lambda of: of.judge("ux-quality", "receipts"),
        lambda of: of.category("general_qa", "receipts"),
        lambda of: of.classified("quality", None),
    ]
    for number, ask in enumerate(asked, 1):
        assert ask(view) == ask(plain)
        assert lookups(metrics) == number
    with pytest.raises(UnknownJudge):
        view.judge("no-such-judge")
    assert lookups(metrics, "0.05") == lookups(metrics) == 4, "under 50 ms, each of them"
    assert view.all("receipts") == plain.all("receipts")
    assert (view.config_hash, view.sub_agents) == (plain.config_hash, plain.sub_agents)


@pytest.mark.usefixtures("shipped")
def test_a_worker_looks_up_in_the_version_that_serves() -> None:
    looked = observed(Metrics())
    first = looked()
    assert looked() is first, "what is kept by registry is kept"
    reloading.use(ROOT / "configs")
    assert looked() is None
    reloading.current()
    second = looked()
    assert second is not None
    assert second is not first


@pytest.mark.usefixtures("shipped")
async def test_pf9_nfr2_a_worker_that_responds_to_an_evaluation_observes_its_lookups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def evaluated(*_: object) -> bool:
        return True

    monkeypatch.setattr(RegressionWatch, "evaluated", evaluated)
    parts = make_parts(Settings(kafka="127.0.0.1:1", redis="redis://127.0.0.1:1/0", configs=ROOT / "configs"))
    operators = Operators(parts, lambda: False)
    try:
        operators.start()
        assert operators.consumer is not None
        respond = operators.consumer._handlers[parts.topics["evaluations"]]
        judges = (EvaluatedJudge(judge_id="ux_quality", judge_version=reloading.current().judge("ux_quality").version),)
        said = Evaluation(
            event_id="e1", origin=Origin.AD_HOC, agent_id="assistant", agent_version="v7", judges=judges,
            at=datetime(2026, 11, 21, tzinfo=UTC),
        )  # fmt: skip
        now = parts.clock.now_ms()
        assert await respond([Rec(said.model_dump_json().encode(), timestamp=now)]) == []
        assert lookups(parts.metrics) == 1
    finally:
        await operators.close()
        await parts.close()
