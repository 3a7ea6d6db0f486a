"""What is exposed, documented, alerted on and drawn is one list."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ruamel.yaml import YAML
from scoring_rig import GOOD, Model, down, many, scorer

from evalcore.scoring import Failure
from evalcore.scoring.calls import PASSING
from schemas.outcomes import Cause, Kind, State
from streams.metrics import JUDGE_ANSWERS, Metrics, as_markdown

ROOT = Path(__file__).resolve().parents[2]
SPECIFIED = {
    "eval_correlation_coverage_missing_trace_count",
    "eval_correlation_coverage_missing_signal_count",
    "eval_correlation_coverage_both_present_count",
    "eval_correlation_deadletter_count_total",
    "eval_correlation_pipeline_lag_seconds",
    "eval_correlation_records_written_total",
    "eval_judge_registry_lookup_latency_seconds",
    "eval_recalibration_cycle_duration_seconds",
    "eval_calibration_recalibration_overdue",
    "eval_inverted_judge_count",
    "eval_gate_fired_total",
    "eval_gate_verdict_total",
    "eval_judge_score_distribution",
    "eval_gate_duration_seconds",
    "eval_rule_validation_failed_total",
    "eval_manifest_drift_total",
    "eval_rollback_duration_seconds",
    "rampgate_suite_turnaround_seconds",
    "rampgate_judge_cache_hit_ratio",
    "rampgate_suite_detection_ratio",
    "rampgate_suite_false_alarm_ratio",
}
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


async def test_a_judges_calls_and_its_answers_without_a_call_are_counted() -> None:
    """Contracts §6; issue 5: a repeated gate costs nothing, and it shows."""
    metrics, wrong = Metrics(), {"o0": down(Failure.UNAVAILABLE), "o1": "prose"}
    model = Model(lambda output, attempt: wrong.get(output, GOOD) if attempt == 1 else GOOD)
    ours = scorer(model, observe=metrics.judge_answered)
    for _ in range(4):
        await ours.score("g", many(5))

    def counted(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    found = {outcome: counted("rampgate_judge_calls_total", outcome=outcome) for outcome in JUDGE_ANSWERS}
    # A slip is an answer, too: the call ended well.
    assert {name: count for name, count in found.items() if count} == {
        "ok": 6, "unavailable": 1, "slip": 1, "cached": 15
    }  # fmt: skip
    assert counted("rampgate_judge_cache_hit_ratio") == 15 / 21
    assert {kind.value for kind in Failure} >= set(JUDGE_ANSWERS) - {"ok", "cached"} >= {kind.value for kind in PASSING}


def test_the_documentation_is_the_generated_page() -> None:
    assert (ROOT / "docs/metrics.md").read_text() == as_markdown(Metrics().specs), "run `make docs`"


def test_alerts_name_only_metrics_that_exist() -> None:
    folder = ROOT / "configs/prometheus"
    rules = YAML(typ="safe").load((folder / "alerts.yml").read_text())
    cases = YAML(typ="safe").load((folder / "alerts_test.yml").read_text())
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
    source = YAML(typ="safe").load((ROOT / "configs/grafana/provisioning/datasources/prometheus.yaml").read_text())
    uids = {panel["datasource"]["uid"] for panel in panels if "datasource" in panel}
    assert uids == {source["datasources"][0]["uid"]}
