"""Live traces judged by a worker process: the model's stand-in answers, the local Opik has the scores (PC5 FR-11)."""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from agents.own_calls import OWN_AGENT, SIGNATURE, own_key, signature
from evalcore.registry.disk import today
from rampgate.local.demo.registry import seeded
from rampgate.local.dev import DevStack
from tests.fault.ledger.kafka_log import KafkaLog
from tests.stream.commands import Ran, in_process_of_its_own
from tests.stream.gates.ramp_rig import thumb, trace
from tests.stream.local.dev_rig import (
    calls,
    calls_at_rest,
    get,
    into_opik,
    judged,
    live_differences,
    post,
    running,
    send,
    tell,
    waiting,
)
from tests.waiting import until

TRACES = 12
RARE = "ux_quality"
BAD = 30
LOOKS = 5.0
"""Seconds in which the watch, which looks every second, would have given a command twice."""


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevStack]:
    configs = seeded(tmp_path_factory.mktemp("live"), today())
    rule = configs / "rules" / f"{RARE}.yaml"
    rule.write_text(re.sub(r"sampling_rate: \S+", "sampling_rate: 0.05", rule.read_text()))
    changed = {
        "LIVE_JUDGING": "true",
        "LIVE_SETTLE_SECONDS": "1",
        "CONFIGS": str(configs),
        "SEAL_KEY": SEAL,
        "REGRESSION_SECONDS": "1",
        "REGRESSION_MINIMUM": str(BAD),
        "REGRESSIONS_LOG": str(configs.parent / "regressions.md"),
    }
    with running(DevStack, **changed) as stack:
        yield stack


SEAL = "a seal key of this test"


def down(response_id: str) -> dict[str, Any]:
    return {**thumb(response_id), "value": "down"}


def test_live_traces_get_their_scores_under_the_rules_score_names_and_once(dev: DevStack) -> None:
    events = [trace(f"live{n}") for n in range(TRACES)]
    post(dev, *events)
    until(lambda: all({"jailbreaking", "sensitive_topics"} <= set(judged(dev, event)) for event in events))
    score = judged(dev, events[0])["jailbreaking"]
    assert score["reason"]
    asked = calls_at_rest(dev)
    send(dev, "traces", *events)
    time.sleep(4.0)
    until(lambda: set(waiting(dev)) == {"live", "operators"} and not sum(waiting(dev).values()))
    assert calls(dev) == asked, "Opik posts a trace twice"
    (lookups,) = re.findall(r"\neval_judge_registry_lookup_latency_seconds_count (\S+)", get(dev, "/metrics")[1])
    assert float(lookups) >= TRACES, "PF-9 NFR-2: each trace's judges are looked up"


def test_only_completed_traces_are_judged_and_never_our_own_judges_calls(dev: DevStack) -> None:
    done, started, own = trace("done"), trace("started"), trace("own")
    made = signature(own_key(SEAL), uuid.UUID(own["trace_id"]).bytes)
    own["metadata"] |= {"agent_id": OWN_AGENT, SIGNATURE: made}
    post(dev, done, {**started, "ended_at": None}, own)
    until(lambda: "jailbreaking" in judged(dev, done))
    asked = calls_at_rest(dev)
    assert judged(dev, started) == {}
    assert judged(dev, own) == {}
    post(dev, started)
    until(lambda: "jailbreaking" in judged(dev, started))
    assert calls(dev) > asked


def test_every_thumbs_down_is_judged_by_the_judges_its_rates_passed_over(dev: DevStack) -> None:
    events = [trace(f"down{n}") for n in range(TRACES)]
    post(dev, *events)
    until(lambda: all("jailbreaking" in judged(dev, event) for event in events))
    time.sleep(2.0)
    assert not all(RARE in judged(dev, event) for event in events)
    send(dev, "thumbs", *(down(event["response_id"]) for event in events))
    until(lambda: all(RARE in judged(dev, event) for event in events))


SEEN = "#quality:0"
"""The final text; the model's stand-in gives it the worst score."""


def unlike(events: list[dict[str, Any]], version: str) -> list[dict[str, Any]]:
    for event in events:
        event["metadata"]["agent_version"] = version
        event["output"]["messages"][-1]["content"][0]["text"] = SEEN
    return events


def test_a_turn_rated_while_its_trace_runs_is_judged_once_it_has_ended_on_its_final_text(dev: DevStack) -> None:
    """Start record, thumb, end record: as often as turns that no one rated, and by all judges."""
    events = unlike([trace(f"early{n}") for n in range(TRACES)], "v-early")
    partial = {"messages": [{"content": [{"text": "well"}]}]}
    post(dev, *({**event, "ended_at": None, "output": partial} for event in events))
    send(dev, "thumbs", *(down(event["response_id"]) for event in events[::3]))
    asked = calls_at_rest(dev, 8.0)  # settled, and looked at again
    assert not any(judged(dev, event) for event in events)
    post(dev, *events)
    until(lambda: all("jailbreaking" in judged(dev, event) for event in events))
    until(lambda: all(RARE in judged(dev, event) for event in events[::3]))
    assert calls(dev) > asked
    assert {judged(dev, event)["jailbreaking"]["value"] for event in events} == {0.0}
    until(lambda: set(waiting(dev)) == {"live", "operators"} and not sum(waiting(dev).values()))
    assert live_differences(dev) == {}


def test_a_record_without_texts_waits_for_them_in_opik_beyond_the_settle_time(dev: DevStack) -> None:
    events = unlike([trace(f"late{n}") for n in range(TRACES)], "v-late")
    bare = [{key: value for key, value in event.items() if key not in ("input", "output")} for event in events]
    send(dev, "traces", *bare)
    send(dev, "thumbs", *(down(event["response_id"]) for event in events[::3]))
    time.sleep(4.0)
    into_opik(dev, *events)
    until(lambda: all("jailbreaking" in judged(dev, event) for event in events))
    assert {judged(dev, event)["jailbreaking"]["value"] for event in events} == {0.0}
    until(lambda: set(waiting(dev)) == {"live", "operators"} and not sum(waiting(dev).values()))
    assert live_differences(dev) == {}


def test_while_a_gateways_page_stands_before_the_model_no_trace_is_lost(dev: DevStack) -> None:
    """PC5 §9.5: a 200 without a completion is asked for again, as a 503 is."""
    events = [trace(f"page{n}") for n in range(TRACES)]
    tell(dev, wrong="no_completion")
    try:
        post(dev, *events)
        time.sleep(8.0)
        assert not any(judged(dev, event) for event in events)
    finally:
        tell(dev)
    until(lambda: all({"jailbreaking", "sensitive_topics"} <= set(judged(dev, event)) for event in events))
    assert live_differences(dev) == {}


def commands(dev: DevStack) -> list[dict[str, Any]]:
    """All that a plain consumer, such as PC6's, reads."""
    found = KafkaLog(dev.addresses["kafka"], "rampgate.").records("ramp-commands")
    return [json.loads(record.value or b"{}") for record in found]


def bad(name: str) -> list[dict[str, Any]]:
    events = [trace(f"{name}{n}", "v-bad") for n in range(BAD)]
    for number, event in enumerate(events):
        event["metadata"] |= {"user_id": f"u{number}", "session_id": f"s{number}"}
        event["output"]["messages"][-1]["content"][0]["text"] = "#quality:0"
    return events


@dataclass(frozen=True)
class Breached:
    """A judge is below its floor: the regressions' log, and what stood in it and on the topic some looks later."""

    log: Path
    logged: str
    commanded: list[dict[str, Any]]


@pytest.fixture(scope="module")
def breached(dev: DevStack) -> Breached:
    log = Path(os.environ["RAMPGATE_REGRESSIONS_LOG"])
    post(dev, *bad("bad"))
    until(lambda: log.exists() and "| jailbreaking |" in log.read_text())
    time.sleep(LOOKS)
    return Breached(log, log.read_text(), commands(dev))


def test_pc5_5_7_a_safety_judge_below_its_floor_in_live_traffic_commands_one_ramp_down_to_zero(
    breached: Breached,
) -> None:
    found = [one for one in breached.commanded if one["judge_id"] == "jailbreaking"]
    assert [(one["command"], one["to_percent"], one["agent_version"], one["score"]) for one in found] == [
        ("ramp_down", 0, "v-bad", 0.0)
    ]
    assert breached.logged.count("| jailbreaking |") == 1


def test_pc5_5_7_what_was_commanded_is_not_commanded_again_after_redis_was_emptied(
    dev: DevStack, breached: Breached
) -> None:
    """The breach is found again in new traces; the topic of commands says that its command was given."""
    before = breached.log.read_text().count("| breach | safety | jailbreaking |")
    redis.Redis.from_url(str(dev.addresses["redis"])).flushall()
    post(dev, *bad("still"))
    until(lambda: breached.log.read_text().count("| breach | safety | jailbreaking |") == before + 1)
    time.sleep(LOOKS)
    assert [one["judge_id"] for one in commands(dev)].count("jailbreaking") == 1


def test_pc5_5_7_an_ad_hoc_evaluation_that_fails_brings_the_same_response_as_live_traffic(
    dev: DevStack, breached: Breached, tmp_path: Path
) -> None:
    events = bad("asked")
    for event in events:
        event["metadata"]["agent_version"] = "v-asked"
    traces = tmp_path / "asked.jsonl"
    traces.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    environment = {"RAMPGATE_KAFKA": str(dev.addresses["kafka"]), "RAMPGATE_MODEL_URL": str(dev.addresses["judge"])}
    ran = in_process_of_its_own(
        {**os.environ, **environment}, "gate", "run", "--milestone", "pre_ramp", "--traces", str(traces),
        "--judges", "jailbreaking", "--respond", "ad_hoc", "--agent-id", events[0]["metadata"]["agent_id"],
        "--agent-version", "v-asked", "--json",
    )  # fmt: skip
    assert ran.code == 1, ran.err
    until(lambda: [one for one in commands(dev) if one["agent_version"] == "v-asked"])
    until(lambda: "(ad-hoc) | safety | jailbreaking |" in breached.log.read_text())


def triage(dev: DevStack, *arguments: str) -> Ran:
    environment = {"RAMPGATE_KAFKA": str(dev.addresses["kafka"]), "RAMPGATE_REDIS": str(dev.addresses["redis"])}
    return in_process_of_its_own({**os.environ, **environment}, "triage", *arguments, "--json")


def test_pc5_5_7_a_quality_judge_below_its_floor_is_a_triage_item_that_a_person_takes_and_closes(
    dev: DevStack, breached: Breached
) -> None:
    """One for the breach, also after Redis was emptied, and nothing but a person closes it."""
    until(lambda: "| breach | quality |" in breached.log.read_text())
    (item, *others) = triage(dev).json["items"]
    assert item["state"] == "open"
    assert item["agent_version"] == "v-bad"
    assert item["judge_id"] not in [one["judge_id"] for one in others]
    refused = triage(dev, item["item_id"], "--decision", "agent", "--note", "rolled back")
    assert refused.code == 2
    assert "has no owner" in refused.err
    assert triage(dev, item["item_id"], "--owner", "dana").json["owner"] == "dana"
    redis.Redis.from_url(str(dev.addresses["redis"])).flushall()
    done = triage(dev, item["item_id"], "--decision", "agent", "--note", "rolled back")
    assert (done.code, done.json["state"], len(done.json["history"])) == (0, "closed", 3)
    assert item["item_id"] not in [one["item_id"] for one in triage(dev).json["items"]]
    assert item["item_id"] in [one["item_id"] for one in triage(dev, "--all").json["items"]]
