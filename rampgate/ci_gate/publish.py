"""Publishes the verdict of a gate from CI, and reads past verdicts of rollouts from the same topic.

A published one stands in the history of its agent definition, where the first step of its rollout asks for it (PC5
§5.5; contracts §3, "The gate before"). Its judges' scores go before it, for the store of traces (PC5 §9.4).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson

from agents.gates.ports import AskingGate
from agents.gates.scoring import gate_events
from evalcore.gates.history import NO_VERDICT, History
from evalcore.gates.verdict import Moment, as_json, of_pull_request
from rampgate.ci_gate.run import GateRun
from rampgate.settings import Settings
from rampgate.wiring import make_access, producing
from schemas.topics import Topics
from schemas.verdicts import Composition, SampleFacts, Verdict
from schemas.wire_forms import ScoreEvent
from streams.gates.verdict_log import BODY, PLACE
from streams.kafka.client import JudgeScoresTopic
from streams.kafka.reading import records_now

PLACED = "gate run"


def verdict_of(outcome: GateRun, agent_id: str, agent_version: str) -> Verdict:
    """The record of a gate's outcome on an agent definition. Each run is a request of its own."""
    moment = Moment(outcome.decided_at, outcome.duration_seconds)
    return of_pull_request(
        agent_id, agent_version, outcome.verdict, moment,
        request_id=f"gate-run-{uuid.uuid4()}", vertical=outcome.wanted.vertical, sample=_sample(outcome),
        config_hash=outcome.wanted.registry.config_hash,
    )  # fmt: skip


def events_of_run(outcome: GateRun, verdict: Verdict) -> Iterator[ScoreEvent]:
    """Yield the events of the scores that the verdict rests on. An item is named as in a rollout's gate, with its
    dataset."""
    gate = AskingGate(
        verdict.request_id, outcome.wanted.milestone, str(verdict.agent_id), str(verdict.agent_version),
        verdict.vertical,
    )  # fmt: skip
    golden, declared = outcome.golden, outcome.wanted.registry.dataset(outcome.wanted.vertical)
    name = golden.name if golden is not None and golden.name is not None else declared.name
    version = golden.version if golden is not None and golden.version is not None else declared.version
    items = {item.id: replace(item, id=f"{name} v{version}: {item.id}") for _, item in outcome.scored.assignments}
    pairs = [(judge, items[item.id]) for judge, item in outcome.scored.assignments]
    at_ms = round(datetime.fromisoformat(outcome.decided_at).timestamp() * 1000)
    return gate_events(gate, pairs, outcome.scored.judgements, at_ms)


async def publish(settings: Settings, verdict: Verdict, events: Iterable[ScoreEvent] = ()) -> None:
    """Send the events, then the verdict, and return once all are durable. Raises Unavailable; without the events there
    is no verdict."""
    topics = Topics(settings.topic_prefix, settings.audit_topic)
    body = hashlib.sha256(verdict.request_id.encode()).hexdigest()
    headers = [(BODY, body.encode()), (PLACE, PLACED.encode())]
    async with producing(settings) as producer:
        await JudgeScoresTopic(producer, topics["judge-scores"]).put(events)
        await producer.send(
            [(topics["verdicts"], str(verdict.agent_id).encode(), orjson.dumps(as_json(verdict)), headers)]
        )


async def past_verdicts(settings: Settings, definitions: Collection[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the verdicts on the topic about these agents' versions, each id and version, one for each request. What is
    no verdict is passed over. Raises Unavailable."""
    topic = Topics(settings.topic_prefix, settings.audit_topic)["verdicts"]
    found: dict[str, dict[str, Any]] = {}
    async for one in records_now(make_access(settings), topic):
        try:
            record = orjson.loads(one.value or b"")
            if (record["agent_id"], record["agent_version"]) in definitions:
                History().add(record)
                found.setdefault(record["request_id"], record)
        except (orjson.JSONDecodeError, *NO_VERDICT):
            continue
    return [*found.values()]


def _sample(outcome: GateRun) -> SampleFacts | None:
    """What the gate judged; None where the dataset could not be read."""
    golden = outcome.golden
    if golden is None:
        return outcome.sample
    size = len(golden.items)
    fingerprint = hashlib.sha256(orjson.dumps(golden.items, option=orjson.OPT_NON_STR_KEYS)).hexdigest()[:32]
    return SampleFacts(
        scope="dataset",
        fingerprint=fingerprint,
        size=size,
        window_seconds=None,
        composition=Composition(golden=size),
        frozen_at=None,
    )
