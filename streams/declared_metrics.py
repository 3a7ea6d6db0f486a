"""Declares every metric, in one typed list (contracts §6).

The `eval_*` names are PF-9's (§4.1 FR-11, §5.4, §10.2) and PC5's (§10.2), with underscores for dots and seconds for
milliseconds; the `rampgate_*` names are ours. Series whose labels all have a closed list of values start at zero, so
that `rate` and `increase` see the first event too.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from agents.completing import End as Completed
from agents.live.balance import End
from evalcore.framing import SUSPICIONS
from evalcore.remediation.objects import Why
from schemas.outcomes import Cause, State
from schemas.signals import DECLARED, kinds
from streams.metric_set import (
    JUDGE_ANSWERS,
    LOOKUPS,
    MILESTONES,
    OPEN,
    RUNS,
    SCORES,
    WAITS,
    MetricSet,
    record_states,
)


class DeclaredMetrics(MetricSet):
    """Every metric of a process."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        super().__init__(registry)
        self._correlation()
        self._gates_and_judges()
        self._registry()
        self._flow()
        self._parts()
        self._suite()

    def _correlation(self) -> None:
        """PF-9 FR-11, §5.4 and §10.2: the join of signals and judge scores."""
        self.missing_trace = self._gauge(
            "eval_correlation_coverage_missing_trace_count",
            "Turns in the lookback window with a user signal and no Opik trace.",
            vertical=OPEN,
        )
        self.missing_signal = self._gauge(
            "eval_correlation_coverage_missing_signal_count",
            "Turns in the lookback window whose trace carries judge scores and no user signal.",
            vertical=OPEN,
        )
        self.both_present = self._gauge(
            "eval_correlation_coverage_both_present_count",
            "Turns in the lookback window with a user signal and a trace, judged or not.",
            vertical=OPEN,
        )
        self.joined_unjudged = self._gauge(
            "rampgate_joined_unjudged_turns", "Of both_present, the turns that no judge scored.", vertical=OPEN
        )
        self.coverage_rate = self._gauge(
            "eval_correlation_coverage_rate_ratio",
            "Of the turns with a user signal or a judged trace, the share with a signal and a trace; no series where "
            "there is no turn.",
            vertical=OPEN,
        )
        self.dead_letters = self._counter(
            "eval_correlation_deadletter_count_total",
            "Records sent to the dead-letter topic.",
            cause=tuple(Cause),
            signal=kinds(),
        )
        self.records_written = self._counter(
            "eval_correlation_records_written_total",
            "Feedback scores that Opik has confirmed; a sub-agent or category that the registry lacks is other.",
            vertical=OPEN,
            sub_agent=OPEN,
            category=OPEN,
            signal=tuple(DECLARED),
        )
        self.unreadable_traces = self._counter(
            "rampgate_unreadable_traces_total",
            "Records of ended traces of which judges can't read the question or the answer, neither where the "
            "vertical's `trace` says nor as plain text, content or messages; gates fail with unreadable_item. A repeat "
            "counts again.",
            vertical=OPEN,
        )
        self.forged_traces = self._counter(
            "rampgate_forged_traces_total",
            "Records of traces with fields that only Rampgate writes (proposal_results and the like) without its valid "
            "seal: the fields are dropped. An agent forges them, or the seal key was replaced. A repeat counts again.",
            vertical=OPEN,
        )
        self.pipeline_lag = self._histogram(
            "eval_correlation_pipeline_lag_seconds",
            "From the last input that a score needs, the user's signal or the trace's arrival, to Opik's confirmation "
            "(NFR-1: p95 under 300 s).",
            WAITS,
            signal=tuple(DECLARED),
        )

    def _gates_and_judges(self) -> None:
        """PC5 §10.2 and PF-9 §10.2: gates, rules, judges and their calibration."""
        self.gates_fired = self._counter(
            "eval_gate_fired_total",
            "Gates that ran, or came too late; those of CI as far as their verdicts were published.",
            milestone=MILESTONES,
        )
        self.gate_verdicts = self._counter(
            "eval_gate_verdict_total",
            "Verdicts of gates; error is a gate that could not be evaluated, and its verdict is fail.",
            milestone=MILESTONES,
            verdict=("pass", "warn", "fail", "error"),
        )
        self.gate_duration = self._histogram(
            "eval_gate_duration_seconds", "What a gate itself took, with its waits.", RUNS, milestone=MILESTONES
        )
        self.samples_incomplete = self._counter(
            "rampgate_samples_incomplete_total",
            "Gates that failed since their sample is not the traffic (sample_incomplete).",
            milestone=MILESTONES,
        )
        self.ramp_steps_waiting = self._gauge(
            "rampgate_ramp_steps_waiting",
            "Ramp-step requests this process is answering: read, not counted as consumed until their verdict stands.",
        )
        self.ramp_step_oldest = self._gauge(
            "rampgate_ramp_step_oldest_seconds",
            "How long the oldest ramp-step request that this process has read waits for its verdict; 0 without any.",
        )
        self.judge_scores = self._histogram(
            "eval_judge_score_distribution",
            "A judge's scores at gates, in its own scale: each item that it scored, also from what was kept.",
            SCORES,
            judge_id=OPEN,
            milestone=MILESTONES,
        )
        self.judge_calls = self._counter(
            "rampgate_judge_calls_total",
            "Calls of the judges' model by how they ended, tries included; cached is an answer that needed no call.",
            outcome=JUDGE_ANSWERS,
        )
        self.judged_cut = self._counter(
            "rampgate_judged_cut_total",
            "Questions to a judge of whose turn it was not shown all: RAMPGATE_JUDGED_TOKENS bounds it.",
            judge_id=OPEN,
        )
        self.injection_suspected = self._counter(
            "eval_judge_injection_suspected_total",
            "Questions to a judge whose turn imitates what judges are told: a delimiter, a speaker, a heading, a ready "
            "answer, a chat template's separator, unseen letters. Nothing follows by itself.",
            judge_id=OPEN,
            kind=SUSPICIONS,
        )
        self.live_scores = self._counter(
            "rampgate_live_judge_scores_total",
            "Live traces judged, each judge counted; unscored is where its model gave no usable answer.",
            outcome=("scored", "not_applicable", "unscored"),
        )
        self.score_events = self._counter(
            "rampgate_judge_score_events_total",
            "Judges' scores that are durable on their topic (PC5 §9.4); a repeat counts again.",
            source=("live", "gate"),
        )
        self.live_escapes = self._counter(
            "rampgate_live_escapes_total",
            "Completed traces that live judging passes over by what they claim, an id that is no UUID version 7 or a "
            "vertical left to Opik; unsigned ones claim to be of our own judges, and are judged.",
            reason=("not_uuid7", "left_to_opik", "unsigned"),
        )
        whose = {"agent_id": OPEN, "agent_version": OPEN, "rated": ("yes", "no")}
        self.live_due = self._counter(
            "rampgate_live_due_total",
            "Records that fell due to live judging, of traces and of thumbs-down: what ended and what waits. "
            "A rated one has a thumb on its turn.",
            None,
            **whose,
        )
        self.live_ended = self._counter(
            "rampgate_live_ended_total",
            "How records ended that fell due: judged, dead-lettered, or passed over for a reason.",
            None,
            **whose,
            end=tuple(End),
        )
        self.live_waiting = self._gauge(
            "rampgate_live_waiting_records",
            "Records in work, or waiting for a trace's end or texts, missing_trace_seconds at most.",
            **whose,
        )
        self.workflows_due = self._counter(
            "rampgate_workflows_due_total",
            "Records of traces that name a workflow, where their vertical completes them: what ended and what waits.",
        )
        self.workflows_ended = self._counter(
            "rampgate_workflows_ended_total",
            "How those records ended: the trace completed, now or before, dead-lettered, superseded by a later record, "
            "or handed over with its partition.",
            end=tuple(Completed),
        )
        self.workflows_waiting = self._gauge(
            "rampgate_workflows_waiting_records",
            "Those that wait for their workflow's end, enrichment_wait_seconds at most.",
        )
        self.workflows_missing = self._counter(
            "rampgate_workflows_missing_total",
            "What could not be read of workflows that completed a trace, by why.",
            why=tuple(Why),
        )
        self.regressions = self._counter(
            "rampgate_regressions_total",
            "Live floor breaches (PC5 §5.7): begun, as breach or, where scores are missing, as unscored; confirmed, so "
            "that the agent is ramped down; ended by better scores, or for want of scores.",
            tier=("safety", "quality"),
            event=("breach", "unscored", "confirmed", "recovered", "lapsed"),
        )
        self.triage_items = self._gauge(
            "rampgate_triage_items",
            "Triage items that no one has closed, by state (PC5 §5.7).",
            state=("open", "owned"),
        )
        self.triage_overdue = self._gauge(
            "rampgate_triage_overdue", "Triage items that no one has closed within a day of the breach."
        )
        self.notifications = self._counter(
            "rampgate_notifications_total",
            "Messages to PagerDuty, Slack and Grafana; failed is one that none of its tries delivered.",
            outcome=("delivered", "failed"),
        )
        self.rule_validation_failed = self._counter(
            "eval_rule_validation_failed_total",
            "Errors in rule files, each counted when it comes up; a vertical's file is <vertical>/<judge>.",
            rule_id=OPEN,
            error_type=OPEN,
        )
        self.manifest_drift = self._counter(
            "eval_manifest_drift_total",
            "Judges that a manifest names and no rule file defines, or the other way round; counted when it comes up.",
        )
        self.rollback_duration = self._histogram(
            "eval_rollback_duration_seconds", "From the start of a rules rollback to its confirmation.", RUNS
        )
        self.registry_lookup = self._histogram(
            "eval_judge_registry_lookup_latency_seconds",
            "Lookups in the judge registry (NFR-2: p95 under 0.05 s).",
            LOOKUPS,
        )
        self.recalibration_duration = self._histogram(
            "eval_recalibration_cycle_duration_seconds",
            "Wall-clock time of one recalibration cycle (NFR-3: under 14,400 s).",
            RUNS,
            vertical=OPEN,
        )
        self.recalibration_overdue = self._gauge(
            "eval_calibration_recalibration_overdue",
            "1 where a judge's recalibration_due is past, the platform's or a vertical's own, else 0.",
            judge_id=OPEN,
        )
        self.canaries_overdue = self._gauge(
            "rampgate_judge_canaries_overdue",
            "1 where a judge's last pass of its canaries is longer ago than the setting canaries_days, else 0; none of "
            "a judge that was never checked, or is suspended.",
            judge_id=OPEN,
        )
        self.canaries_age = self._gauge(
            "rampgate_judge_canaries_age_seconds",
            "Time since a judge last passed its canaries; none of a judge that was never checked, or is suspended.",
            judge_id=OPEN,
        )
        self.inverted_judges = self._gauge(
            "eval_inverted_judge_count",
            "Judges that stand suspended because their scores run against those of the vertical's people (FR-10); "
            "`platform`: against people of no vertical.",
            vertical=OPEN,
        )
        self.inversion_overdue = self._gauge(
            "rampgate_judge_inversion_overdue",
            "1 where a judge was last compared with people more than 92 days ago, else 0; none of a judge that never "
            "was (FR-10).",
            judge_id=OPEN,
        )

        self.weeks_against_users = self._gauge(
            "rampgate_judge_weeks_against_users",
            "Closed weeks in a row up to the last one in which a judge scored against users' thumbs (FR-10); two page, "
            "and suspend no one. No series of a judge that did not.",
            judge_id=OPEN,
            vertical=OPEN,
        )
        self.user_weeks_overdue = self._gauge(
            "rampgate_user_weeks_overdue",
            "1 where a week closed more than two days ago and judges were not compared with its users, else 0.",
        )

    def _registry(self) -> None:
        """The judge registry as this process serves it."""
        self.registry_refreshes = self._counter(
            "rampgate_registry_refreshes_total",
            "Times the registry's files were read.",
            outcome=("loaded", "unchanged", "refused", "empty"),
        )
        self.registry_refused = self._gauge(
            "rampgate_registry_refused",
            "1 while the registry's files are broken and an older version serves, or none; else 0.",
        )
        self.registry_judges = self._gauge("rampgate_registry_judges", "Judges in the registry that serves.")
        self.registry_loaded = self._gauge(
            "rampgate_registry_loaded_timestamp_seconds", "Unix time at which the version that serves was loaded."
        )
        self.rules_sync_duration = self._histogram(
            "rampgate_rules_sync_duration_seconds", "From the start of a rules sync to Opik's last confirmation.", RUNS
        )

    def _flow(self) -> None:
        """Records on their way: conservation, lag, parked signals, the worker's own state."""
        self.records = self._counter(
            "rampgate_records_total",
            "Consumed records by the state they ended in; reason is set for parked and filtered only.",
            zeros=record_states(),
            signal=kinds(),
            state=tuple(State),
            reason=OPEN,
        )
        self.consumer_lag = self._gauge(
            "rampgate_consumer_lag_records",
            "Records between the committed offset and the end of an assigned partition.",
            topic=OPEN,
            partition=OPEN,
        )
        self.partitions_standing = self._gauge(
            "rampgate_partitions_standing",
            "Partitions whose records wait and do not come, though they are fetched: a broker can't read its log.",
        )
        self.side_lag = self._gauge(
            "rampgate_side_lag_records",
            "Records that wait for a reader beside the join: the live judges (live), who let live_settle_seconds pass "
            "first, what completes traces with their workflows (completing), or the news of failed verdicts "
            "(operators).",
            reader=OPEN,
            topic=OPEN,
            partition=OPEN,
        )
        self.new_names_refused = self._counter(
            "rampgate_new_names_refused_total",
            "Traces and signals whose vertical or agent version was new beyond new_names_per_hour: they count as "
            "unregistered, or are not pooled.",
            sort=("vertical", "agent"),
        )
        self.parked = self._gauge("rampgate_parked_signals", "Signals in durable state that wait to be written.")
        self.conservation_difference = self._gauge(
            "rampgate_conservation_difference",
            "Consumed minus done, superseded, dead-lettered, parked and filtered; anything but 0 is a bug or a loss.",
            signal=kinds(),
        )
        self.topic_partitions = self._gauge(
            "rampgate_topic_partitions",
            "Partitions of a topic that this process reads, or publishes verdicts on. More than before has an alert.",
            topic=OPEN,
        )
        self.gaps = self._counter(
            "rampgate_gaps_total",
            "Times that Kafka had lost records before they were read: retention came first, or the log is a new one.",
            topic=OPEN,
            reason=("retention", "new_log"),
        )
        self.gap_records = self._counter(
            "rampgate_gap_records_total",
            "Offsets that Kafka no longer had when they were to be read: at most so many records are lost.",
            topic=OPEN,
        )
        self.write_enabled = self._gauge(
            "rampgate_write_enabled", "1 while scores are written, 0 while the feature flag withholds them."
        )
        self.state_rebuilding = self._gauge(
            "rampgate_state_rebuilding", "1 while the join state is rebuilt from the topics, else 0."
        )
        self.state_rebuilds = self._counter("rampgate_state_rebuilds_total", "Rebuilds of the join state begun.")
        self.state_rebuild_progress = self._gauge(
            "rampgate_state_rebuild_progress_ratio",
            "How much of the scores in Opik a rebuild has adopted, 0 to 1; 1 also where none is under way.",
        )
        self.state_rebuild_progress.set(1)
        self.state_rebuild_remaining = self._gauge(
            "rampgate_state_rebuild_remaining_seconds",
            "Seconds until a rebuild has adopted all, at its pace so far; 0 where none is under way, or none can tell.",
        )
        self.bad_records_in_a_row = self._gauge(
            "rampgate_bad_records_in_a_row",
            "Undecodable records since the last good one; at the limit their partition pauses.",
        )
        self.partition_paused = self._gauge(
            "rampgate_partition_paused",
            "1 for a partition that pauses, since too many of its records in a row can't be decoded; no series else.",
            topic=OPEN,
            partition=OPEN,
        )
        self.clock_ahead = self._gauge(
            "rampgate_clock_ahead_seconds",
            "How far this machine's clock is ahead of Redis's (below 0: behind); beyond 60 s the worker waits.",
        )
        self.seal_keys_differ = self._gauge(
            "rampgate_seal_keys_differ",
            "1 while other workers seal dead letters with another key than this one, else 0.",
        )
        self.loop_lag = self._gauge("rampgate_loop_lag_seconds", "How late the event loop ran its last timer.")
        self.last_progress = self._gauge(
            "rampgate_last_progress_timestamp_seconds",
            "Unix time at which the worker started, last settled a batch or last found nothing to do.",
        )
        self.build_info = self._gauge("rampgate_build_info", "1, labelled with the version that runs.", version=OPEN)

    def _parts(self) -> None:
        """The gateway to Opik and the DynamoDB feed."""
        self.opik_requests = self._counter(
            "rampgate_opik_requests_total",
            "Requests to Opik.",
            operation=OPEN,
            outcome=("ok", "rejected", "unauthorized", "rate_limited", "unavailable"),
        )
        self.late_writes = self._counter(
            "rampgate_late_writes_total",
            "Scores that Opik held otherwise than it had confirmed, as when a write was applied late; written over.",
            signal=kinds(),
        )
        self.feed_records = self._counter(
            "rampgate_feed_records_total",
            "DynamoDB stream records the feed has handled.",
            outcome=("published", "skipped", "failed"),
        )
        self.feed_behind = self._gauge(
            "rampgate_feed_behind_seconds",
            "Age of the oldest stream record not yet published; the stream forgets records after 86,400 s.",
        )
        self.feed_shards_waiting = self._gauge(
            "rampgate_feed_shards_waiting", "Shards of the stream that may be read and that no feed reads yet."
        )
        self.feed_gaps = self._counter(
            "rampgate_feed_gaps_total", "Times the feed's place in a shard was gone: records may be lost, sweep them."
        )
        self.feed_heartbeat = self._gauge(
            "rampgate_feed_heartbeat_timestamp_seconds", "Unix time of the feed's last complete round over its shards."
        )
        self.sweep_items = self._counter(
            "rampgate_sweep_items_total",
            "Items of the table and rerolls in a sweep.",
            outcome=("published", "unchanged", "older", "bad"),
        )
        self.sweep_finished = self._gauge(
            "rampgate_sweep_finished_timestamp_seconds", "Unix time at which a sweep last came to its end."
        )

    def _suite(self) -> None:
        """The offline suite's own four; a command that ends leaves them in a textfile or pushes them."""
        self.suite_turnaround = self._histogram(
            "rampgate_suite_turnaround_seconds", "From the start of a suite's run to its verdict.", RUNS
        )
        self.judge_cache_hits = self._gauge(
            "rampgate_judge_cache_hit_ratio",
            "Judgements answered from the cache / all answered: of a worker since it started, else of the runs that "
            "the last suite check looked at.",
        )
        self.suite_detection = self._gauge(
            "rampgate_suite_detection_ratio",
            "Candidates with broken cases in a slice that were blocked or warned of / all, in the last suite check.",
            slice=OPEN,
        )
        self.suite_false_alarms = self._gauge(
            "rampgate_suite_false_alarm_ratio",
            "Unchanged candidates a gate refused / all, as shipped, in the last suite check; pull_request is all gates "
            "together, warning those that got a warning of a slice or a case.",
            gate=OPEN,
        )
