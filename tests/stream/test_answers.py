"""A worker process, asked over HTTP and by commands: PF-9's AC-4 and AC-11, every metric, probes without Redis."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Producer

from rampgate.local.dev import DevStack
from tests.fault.ledger.kafka_log import KafkaLog
from tests.stream.local.dev_rig import get, rampgate, running, send
from tests.stream.plain_events import PROJECT, thumb, trace_event
from tests.unit.streams.specified_metrics import SPECIFIED
from tests.waiting import until

TIER_1 = {"user_id": "u-1", "session_id": "s-1", "environment": "production", "agent_version": "2026.11.1"}
TIER_2 = {"vertical": "receipts", "sub_agent": "receipts", "prompt_version": "p-7"}
REST = {"response_id": "resp_ac4", "category": "receipt_dispute_flow", "frames": [{"event": "delta", "data": "…"}]}
JUDGES = {"response_quality": 0.8, "tool_compliance": 1.0, "ux_quality": 0.4, "fetch_legal": 1.0}


@pytest.fixture(scope="module")
def dev() -> Iterator[DevStack]:
    with running(DevStack) as stack:
        yield stack


@pytest.fixture(scope="module")
def sdk(dev: DevStack) -> Iterator[Any]:
    os.environ["OPIK_SENTRY_ENABLE"] = os.environ["OPIK_ANALYTICS_ENABLE"] = "false"
    import opik

    client = opik.Opik(host=dev.addresses["opik"], project_name=PROJECT)
    yield client
    client.end()


@pytest.fixture(scope="module")
def judged_turn(dev: DevStack, sdk: Any) -> Any:
    """Its trace: a turn with four judges' scores, Tier 2 metadata, a thumb and a reroll, told to the worker."""
    now = datetime.now(UTC)
    trace = sdk.trace(
        name="turn", input={"q": "where is it"}, output={"a": "here"}, metadata={**TIER_1, **TIER_2, **REST}
    )
    trace.end()
    sdk.flush()
    sdk.log_traces_feedback_scores(
        [{"id": trace.id, "name": name, "value": value, "reason": f"why {name}"} for name, value in JUDGES.items()],
        project_name=PROJECT,
    )
    sdk.flush()
    event = trace_event("resp_ac4", "receipts", now, trace.id, feedback_scores=[])
    event["metadata"] |= {**TIER_1, **TIER_2, "category": REST["category"]}
    reroll = {
        "event_id": "r-1",
        "response_id": "resp_ac4",
        "new_response_id": "resp_ac4_again",
        "elapsed_seconds": 12.0,
        "occurred_at": now.isoformat(),
    }
    send(dev, "traces", event)
    send(dev, "thumbs", thumb("resp_ac4", now))
    send(dev, "rerolls", reroll)
    return trace


def test_ac_4_the_view_joins_four_judges_both_signals_and_tier_2_metadata(
    dev: DevStack, sdk: Any, judged_turn: Any
) -> None:
    trace = judged_turn

    def view() -> Any:
        return get(dev, "/turns/resp_ac4?purpose=feedback")[1]

    signals = {"user_signal_thumbs": -1.0, "user_signal_reroll": 1.0}
    until(lambda: view().get("feedback_scores") == signals, "both signals in the view")
    found = view()
    assert {judge["judge_id"]: judge["score"] for judge in found["judge_scores"]} == JUDGES
    assert {judge["reason"] for judge in found["judge_scores"]} == {None}, "a judge's reason may quote the user"
    told = {**TIER_1, **TIER_2, **REST, "frames": []}  # frames hold what was said
    assert {name: found[name] for name in told} == told
    assert found["timestamp"]
    assert (found["trace"]["id"], found["trace"]["project_name"]) == (trace.id, PROJECT)
    # The trace itself holds what AC-4 asks for, as the official SDK reads it.
    scores = {score.name: score.value for score in sdk.get_trace_content(trace.id).feedback_scores}
    assert scores == {**JUDGES, **signals}
    ran = rampgate(dev, "turn", "resp_ac4", "--json")
    assert (ran.code, ran.json) == (0, found)


def row(dev: DevStack, vertical: str, window: str = "24h") -> Any:
    (found,) = get(dev, f"/coverage?vertical={vertical}&window={window}")[1]["verticals"]
    return found


@pytest.fixture(scope="module")
def day(dev: DevStack) -> None:
    """Turns of two verticals now, just within a day and just outside of it, with and without thumbs; and five thumbs
    that have no trace: told to the worker, and counted by it."""
    now = datetime.now(UTC) - timedelta(seconds=5)
    inside, outside = now - timedelta(hours=23, minutes=59), now - timedelta(hours=24, minutes=1)
    traces, thumbs = list[dict[str, Any]](), list[dict[str, Any]]()
    for vertical, both, silent in (("rewards_assistant", 6, 2), ("pilot", 3, 1)):
        for number in range(both + silent):
            for when, at in (("now", now), ("in", inside), ("out", outside)):
                rid = f"{vertical}-{number}-{when}"
                traces.append(trace_event(rid, vertical, at))
                if number < both:
                    thumbs.append(thumb(rid, at))
    thumbs += [thumb(f"traceless-{number}", now) for number in range(5)]
    send(dev, "traces", *traces)
    send(dev, "thumbs", *thumbs)
    until(lambda: row(dev, "rewards_assistant", "7d")["both_present"] == 18, "every turn counted")
    until(
        lambda: row(dev, "pilot", "7d")["both_present"] == 9 and row(dev, "unknown")["missing_trace"] == 5,
        "the rest counted",
    )


def test_ac_11_a_day_of_coverage_per_vertical(dev: DevStack, day: None) -> None:
    """PF-9 AC-11."""
    assert row(dev, "rewards_assistant") == {
        "vertical": "rewards_assistant",
        "window_seconds": 86_400,
        "both_present": 12,
        "missing_trace": 0,
        "missing_signal": 4,
        "unjudged": 0,
        "rate": 12 / 16,
    }
    assert (row(dev, "pilot")["both_present"], row(dev, "pilot")["missing_signal"]) == (6, 2)
    assert row(dev, "unregistered")["both_present"] == 6
    listed = {found["vertical"]: found for found in get(dev, "/coverage?window=24h")[1]["verticals"]}
    assert {"rewards_assistant", "receipts", "remediation", "unregistered", "unknown"} == set(listed)
    assert "pilot" not in listed
    ran = rampgate(dev, "coverage", "--window", "24h", "--vertical", "pilot", "--json")
    assert ran.json["verticals"] == [row(dev, "pilot")]
    assert "eval_correlation_deadletter" not in json.dumps(listed)


@pytest.fixture(scope="module")
def malformed(dev: DevStack) -> None:
    """One thumb that can't be decoded, told to the worker and counted by it."""
    producer = Producer({"bootstrap.servers": dev.addresses["kafka"]})
    producer.produce("rampgate.thumbs", value=b"\xff not json")
    assert producer.flush(15) == 0
    until(lambda: get(dev, "/conservation")[1]["signals"]["thumbs"]["dead_lettered"] >= 1, "the dead letter counted")


def test_conservation_balances_over_http_and_as_a_command(dev: DevStack, malformed: None) -> None:
    document = get(dev, "/conservation")[1]
    assert document["balanced"]
    thumbs = document["signals"]["thumbs"]
    assert thumbs["reasons"]["dead_lettered"] == {"malformed": 1}
    states = ("done", "superseded", "dead_lettered", "parked", "filtered")
    assert thumbs["consumed"] == sum(thumbs[state] for state in states) > 0
    assert rampgate(dev, "conservation", "--json").code == 0
    listing = get(dev, "/dead-letters?cause=malformed")
    assert (listing[0], listing[1]["total"]) == (200, 1)


def test_metrics_have_every_specified_name_and_the_state_s_figures(dev: DevStack, day: None, malformed: None) -> None:
    def text() -> str:
        return str(get(dev, "/metrics")[1])

    found = text()
    kinds = {line.split()[2]: line.split()[3] for line in found.splitlines() if line.startswith("# TYPE")}
    assert kinds.keys() >= SPECIFIED
    until(lambda: 'eval_correlation_coverage_both_present_count{vertical="rewards_assistant"} 18.0' in text(), "gauges")
    until(lambda: 'rampgate_consumer_lag_records{partition="0",topic="rampgate.thumbs"} 0.0' in text(), "no lag")
    found = text()
    assert 'rampgate_conservation_difference{signal="thumbs"} 0.0' in found
    assert 'eval_correlation_coverage_rate_ratio{vertical="rewards_assistant"} 0.75' in found
    assert 'eval_correlation_deadletter_count_total{cause="malformed",signal="thumbs"} 1.0' in found
    assert "rampgate_parked_signals 5.0" in found
    assert "rampgate_write_enabled 1.0" in found


def test_a_read_for_evaluation_leaves_one_audit_record(dev: DevStack, judged_turn: Any) -> None:
    status, whole = get(dev, "/turns/resp_ac4?purpose=eval")
    assert status == 200
    assert {judge["reason"] for judge in whole["judge_scores"]} == {f"why {name}" for name in JUDGES}
    assert whole["frames"] == REST["frames"]
    log = KafkaLog(dev.addresses["kafka"], "")
    until(lambda: bool(log.records("ps5.query_audit")), "an audit record")
    (record,) = [json.loads(one.value or b"") for one in log.records("ps5.query_audit")]
    assert (record["purpose"], record["vertical"], record["count"]) == ("eval", "receipts", 1)
    assert record["query"] == {"response_id": "resp_ac4"}
    assert set(record) == {"at", "caller", "purpose", "query", "vertical", "count", "response_ids_sha256"}


def test_probes_while_redis_is_gone_and_back(dev: DevStack, day: None) -> None:
    assert (get(dev, "/livez")[0], get(dev, "/readyz")[0]) == (200, 200)
    dev.stack.redis.stop()
    until(lambda: get(dev, "/readyz")[0] == 503, "not ready without Redis")
    status, health = get(dev, "/readyz")
    assert status == 503
    assert any(reason.startswith("redis:") for reason in health["reasons"])
    assert get(dev, "/livez")[0] == 200
    assert get(dev, "/coverage")[0] == 503
    assert get(dev, "/metrics")[0] == 200
    ran = rampgate(dev, "coverage", "--json")
    assert (ran.code, ran.out) == (2, b"")
    assert "Redis" in ran.err
    assert "Traceback" not in ran.err
    dev.stack.redis.start()
    until(lambda: get(dev, "/readyz")[0] == 200, "ready again")
    # Redis came back empty: what it held has been rebuilt from the topics.
    until(
        lambda: get(dev, "/coverage?vertical=pilot&window=7d")[1]["verticals"][0]["both_present"] == 9,
        "coverage rebuilt",
    )
    assert get(dev, "/conservation")[1]["balanced"]
