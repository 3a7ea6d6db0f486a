"""A worker's look-ups of judges are observed, by id, category and classification (PF-9 NFR-2). A turn's category is a
name that the manifest has, or it is counted as `other` (PF-9 §5.4, §10.2)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalcore import reloading
from evalcore.reloading import ReloadingRegistry
from evalcore.scoring.http_client import HttpClient
from evalcore.yaml.suggestions import UnknownJudge
from rampgate.registry.metrics import RegistryMetrics, observed
from rampgate.registry.serving import ServedRegistry
from rampgate.settings import Settings
from rampgate.wiring import make_parts
from rampgate.worker.live_judging import ALERTS, LiveJudges, make_watch
from rampgate.worker.operators import Operators
from schemas.answers import Refresh
from schemas.checks.evaluation import EvaluatedJudge, Evaluation, Origin
from schemas.outcomes import Kind
from streams.alerts.regression_watch import RegressionWatch
from streams.metrics import Metrics
from streams.queries.turn_view import joined
from tests.root import ROOT
from tests.unit.agents.builders import Rec, thumb, trace
from tests.unit.agents.join.world import World
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.evalcore.scoring.scoring_rig import Model, scorer


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


@pytest.mark.usefixtures("shipped")
async def test_pf9_nfr2_live_judging_and_the_watch_over_its_scores_each_observe_their_lookups() -> None:
    """The watch looks so often that its lookups would hide that live judging observes none."""
    given: dict[str, Any] = {"live_judging": True, "model_url": "http://127.0.0.1:1", "write": True}
    parts = make_parts(Settings(kafka="127.0.0.1:1", redis="redis://127.0.0.1:1/0", configs=ROOT / "configs", **given))
    live, client = LiveJudges(parts, scorer(Model())), HttpClient(*ALERTS)
    try:
        live.start(lambda: True)
        assert live.consumer is not None
        handled: Any = live.consumer._handlers[parts.topics["traces"]]
        for number, looked in enumerate(
            (handled.__self__.registry, make_watch(parts, client, lambda: True).registry), 1
        ):
            assert looked().judge("ux_quality") == reloading.current().judge("ux_quality")
            assert lookups(parts.metrics) == number
    finally:
        await live.close()
        await client.aclose()
        await parts.close()


@pytest.mark.parametrize(("category", "label"), [("general_qa", "general_qa"), ("genral_qa", "other"), (None, "")])
async def test_pf9_5_4_10_2_a_turns_category_is_compared_with_the_manifest_where_it_is_counted(
    tmp_path: Path, category: str | None, label: str
) -> None:
    """The turn itself keeps the word of its trace: another day's manifest may have it."""
    served, metrics = ReloadingRegistry(written(tmp_path), ttl=None), Metrics()
    refresh = Refresh(
        outcome="loaded", message="", config_hash="", previous_config_hash=None, judges=4, error_count=0,
        warning_count=0, errors=[], warnings=[],
    )  # fmt: skip
    RegistryMetrics(metrics, lambda: TODAY).moved(refresh, served.refresh(), served.current())
    world, told = World(), trace("r")
    told["metadata"]["category"] = category
    await world.tell(Kind.TRACE, told)
    metrics.observe_report(await world.tell(Kind.THUMBS, thumb("r", "up")), registered=["shopping"])
    written_of = "eval_correlation_records_written_total"
    of = {"category": label, "signal": "thumbs", "sub_agent": "other", "vertical": "shopping"}
    assert metrics.registry.get_sample_value(written_of, of) == 1.0
    assert world.turn("r").category == (category or "")
    assert joined("r", world.turn("r"), "project", {}).category == category


async def test_pf9_5_4_a_category_that_a_refresh_brings_has_its_name_and_one_that_it_takes_is_other(
    tmp_path: Path,
) -> None:
    root, metrics = written(tmp_path), Metrics()
    served = ServedRegistry(root, metrics, reloading, lambda: TODAY)
    assert (await served.refresh("test")).outcome == "loaded"
    assert "general_qa" in metrics.categories
    manifest = root / "evaluation_manifest.yaml"
    manifest.write_text(manifest.read_text().replace("general_qa", "questions"))
    assert (await served.refresh("test")).outcome == "loaded"
    assert ("questions" in metrics.categories, "general_qa" in metrics.categories) == (True, False)
