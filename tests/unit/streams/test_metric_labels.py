"""Labels of metrics come from the registry: what producers make up is `other`, and makes no series."""

from __future__ import annotations

from pathlib import Path

from agents.join.step_data import Report
from streams.metrics import OTHER, Metrics
from tests.unit.rampgate.registry.serving_rig import World, registry

WRITTEN = "eval_correlation_records_written_total"


def series(metrics: Metrics) -> list[str]:
    return [line for line in metrics.exposition().decode().splitlines() if line.startswith(WRITTEN + "{")]


def report(*names: tuple[str, str, str]) -> Report:
    return Report(written={(*one, "thumbs"): 1 for one in names})


def test_twenty_thousand_made_up_names_are_one_series() -> None:
    metrics = Metrics()
    for start in range(0, 20_000, 1_000):
        metrics.observe_report(
            report(*((f"v{n}", f"agent-{n}", f"category-{n}") for n in range(start, start + 1_000))), ["shopping"]
        )
    (line,) = series(metrics)
    assert line == (
        f'{WRITTEN}{{category="{OTHER}",signal="thumbs",sub_agent="{OTHER}",vertical="unregistered"}} 20000.0'
    )
    assert len(metrics.exposition()) < 200_000


async def test_names_of_the_registry_are_shown_and_without_a_registry_none_is(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/ux_quality.yaml").write_text("id: ux_quality\n")
    world = World(tmp_path, registry())
    turn = ("receipts", "receipts", "receipt_scan")
    world.metrics.observe_report(report(turn), ["receipts"])
    await world.served.refresh("start")
    made_up, unnamed = ("receipts", "made up", "receipt_scan"), ("receipts", "", "")
    world.metrics.observe_report(report(turn, made_up, unnamed), ["receipts"])
    labels = {"signal": "thumbs", "vertical": "receipts"}
    for sub_agent, category, count in (
        (OTHER, OTHER, 1.0),
        ("receipts", "receipt_scan", 1.0),
        (OTHER, "receipt_scan", 1.0),
        ("", "", 1.0),
    ):
        assert world.value(WRITTEN, **labels, sub_agent=sub_agent, category=category) == count
    assert len(series(world.metrics)) == 4
