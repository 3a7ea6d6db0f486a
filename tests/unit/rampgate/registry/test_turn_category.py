"""A turn's category is a name that the manifest has, or it is counted as `other` (PF-9 §5.4, §10.2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore import reloading
from evalcore.reloading import ReloadingRegistry
from rampgate.registry.metrics import RegistryMetrics
from rampgate.registry.serving import ServedRegistry
from schemas.answers import Refresh
from schemas.outcomes import Kind
from streams.metrics import Metrics
from streams.queries.turn_view import joined
from tests.unit.agents.builders import thumb, trace
from tests.unit.agents.join.world import World
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.evalcore.registry.registry_files import TODAY


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
