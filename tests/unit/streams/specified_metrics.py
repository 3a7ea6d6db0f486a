"""The metrics that the specifications and the contract name (PC5 §10.2; PF-9 §10.2; contracts §6)."""

from __future__ import annotations

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
