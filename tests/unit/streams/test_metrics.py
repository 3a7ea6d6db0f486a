"""What is exposed, documented, alerted on and drawn is one list. Labels of metrics come from the registry: what
producers make up is `other`, and makes no series."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from agents.join.step_data import Report
from schemas.outcomes import Cause, Kind, State
from streams.metric_set import as_markdown
from streams.metrics import OTHER, Metrics
from tests.root import ROOT
from tests.unit.rampgate.registry.serving_rig import World, registry
from tests.unit.streams.specified_metrics import SPECIFIED

NAME = re.compile(r"\b(?:eval|rampgate)_[a-z_]+\b(?!\()")


def exposed_names() -> set[str]:
    names = set()
    for spec in Metrics().specs:
        names |= (
            {spec.name + suffix for suffix in ("_bucket", "_sum", "_count")}
            if spec.kind == "histogram"
            else {spec.name}
        )
    return names


def test_every_name_the_specifications_and_the_contract_give_exists() -> None:
    assert not SPECIFIED - {spec.name for spec in Metrics().specs}


def test_names_are_exposed_as_listed_and_in_base_units() -> None:
    metrics = Metrics()
    text = metrics.exposition().decode()
    for spec in metrics.specs:
        assert f"# TYPE {spec.name} {spec.kind}\n" in text
        assert (spec.kind == "counter") == spec.name.endswith("_total")
        assert spec.help.endswith(".")
        assert not re.search(r"_(ms|milliseconds|minutes|percent)\b", spec.name)
    assert "_created" not in text


def test_closed_label_sets_stand_at_zero_before_anything_happens() -> None:
    registry = Metrics().registry
    for cause in Cause:
        for kind in Kind:
            labels = {"cause": cause.value, "signal": kind.value}
            assert registry.get_sample_value("eval_correlation_deadletter_count_total", labels) == 0.0
    for kind in Kind:
        for state in State:
            reason = {State.PARKED: "withheld", State.FILTERED: "ttl_expiry"}.get(state, "")
            labels = {"signal": kind.value, "state": state.value, "reason": reason}
            assert registry.get_sample_value("rampgate_records_total", labels) == 0.0
    assert registry.get_sample_value("rampgate_conservation_difference", {"signal": "thumbs"}) == 0.0


def test_the_limit_of_nfr_1_is_a_bucket_so_that_its_share_is_exact() -> None:
    sample = Metrics().registry.get_sample_value(
        "eval_correlation_pipeline_lag_seconds_bucket", {"signal": "thumbs", "le": "300.0"}
    )
    assert sample == 0.0


def test_two_instances_do_not_share_anything() -> None:
    first, second = Metrics(), Metrics()
    first.state_rebuilds.inc()
    assert second.registry.get_sample_value("rampgate_state_rebuilds_total") == 0.0


def test_the_documentation_is_the_generated_page() -> None:
    assert (ROOT / "docs/metrics.md").read_text() == as_markdown(Metrics().specs), "run `make docs`"


def test_alerts_name_only_metrics_that_exist() -> None:
    folder = ROOT / "configs/prometheus"
    rules = yaml.safe_load((folder / "alerts.yml").read_text())
    cases = yaml.safe_load((folder / "alerts_test.yml").read_text())
    texts = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    texts += [series["series"] for case in cases["tests"] for series in case["input_series"]]
    found = {name for text in texts for name in NAME.findall(text)}
    assert len(found) > 15
    assert found <= exposed_names(), found - exposed_names()


def test_the_dashboard_draws_only_metrics_that_exist_with_unique_panels() -> None:
    dashboard = json.loads((ROOT / "configs/grafana/dashboards/correlation.json").read_text())
    panels = dashboard["panels"]
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert len(expressions) > 20
    assert {name for text in expressions for name in NAME.findall(text)} <= exposed_names()
    assert len({panel["id"] for panel in panels}) == len(panels)
    source = yaml.safe_load((ROOT / "configs/grafana/provisioning/datasources/prometheus.yaml").read_text())
    uids = {panel["datasource"]["uid"] for panel in panels if "datasource" in panel}
    assert uids == {source["datasources"][0]["uid"]}


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
