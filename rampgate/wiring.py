"""Builds the parts of a process from its settings: the one place that puts real parts together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from agents import rerolls, thumbs, traces
from agents.join.batches import Agent
from agents.newcomers import Newcomers
from agents.own_calls import own_key
from agents.policy import Attributes, Policy
from agents.ports import Ports
from evalcore.remediation.sealing import TRACES, TraceForms
from rampgate.cluster import seals_of
from rampgate.registry.verticals import load_verticals
from rampgate.settings import Settings, revealed
from schemas.settings import KafkaAccess
from schemas.topics import Topics
from schemas.verticals import Vertical
from streams.app import Tuning
from streams.kafka.client import JudgeScoresTopic, KafkaDeadLetters, KafkaRecords, Producer
from streams.kafka.inflation import limit_inflation
from streams.metrics import Metrics, scores_sent
from streams.redis.seal_key import InstallationSeal
from streams.redis.state import RedisStore
from streams.retry import WallClock

AGENTS: dict[str, Agent] = {"thumbs": thumbs.AGENT, "rerolls": rerolls.AGENT, "traces": traces.AGENT}
"""Topic -> agent. A new topic is one schema, one agent file and one line here."""
REMEMBERED = 90 * 86_400_000
"""Milliseconds for which the verdicts' topic must keep its records; a worker reads all that it has. Baselines and
histories reach further back than the lookback window; a calibration holds for a quarter."""


@dataclass
class Parts:
    """Everything a process is made of; `close` closes its connections."""

    settings: Settings
    topics: Topics
    policy: Policy
    verticals: dict[str, Vertical]
    access: KafkaAccess
    store: RedisStore
    producer: Producer
    records: KafkaRecords
    metrics: Metrics
    clock: WallClock
    newcomers: Newcomers
    sealing: InstallationSeal
    _opik: OpikParts | None = None

    @property
    def opik(self) -> OpikParts:
        """Made on first use: importing the SDK takes a second, and many commands need no Opik."""
        if self._opik is None:
            self._opik = OpikParts(self)
        return self._opik

    @property
    def ports(self) -> Ports:
        topic, limit = self.topics["dead-letters"], self.settings.max_record_bytes
        letters = KafkaDeadLetters(self.producer, topic, limit, self.sealing)
        scores, traces = self.opik.scores, self.opik.traces
        return Ports(self.store, scores, letters, self.records, traces, self.clock, self.newcomers, self.sealing)

    @property
    def judge_scores(self) -> JudgeScoresTopic:
        return JudgeScoresTopic(self.producer, self.topics["judge-scores"], partial(scores_sent, self.metrics))

    @property
    def tuning(self) -> Tuning:
        settings = self.settings
        return Tuning(
            settings.group,
            settings.batch_records,
            settings.batches_in_flight,
            settings.bad_records_in_a_row,
            settings.session_timeout_seconds,
            settings.commit_interval_seconds,
            settings.group_instance_id,
        )

    @property
    def kept(self) -> dict[str, int]:
        """The milliseconds for which each topic must keep its records: those that a lost state is rebuilt from, and
        verdicts as long as gates remember them."""
        inputs = {self.topics[name]: self.policy.lookback for name in (*AGENTS, "ramp-steps")}
        return inputs | {self.topics["verdicts"]: max(self.policy.lookback, REMEMBERED)}

    async def close(self) -> None:
        if self._opik is not None:
            await self._opik.close()
        await self.producer.close()
        await self.records.close()
        await self.store.close()


class OpikParts:
    """The gateways to Opik and their one client."""

    def __init__(self, parts: Parts) -> None:
        from streams.opik.client import OpikClient, OpikScores
        from streams.opik.traces import OpikTraces

        settings = parts.settings
        key = revealed(settings.opik_api_key)

        observe = parts.metrics.observe_opik
        self.client = OpikClient(
            settings.opik,
            settings.opik_workspace,
            key,
            settings.opik_timeout_seconds,
            settings.opik_writes_in_flight + 4,
        )
        self.scores = OpikScores(
            self.client,
            in_flight=settings.opik_writes_in_flight,
            retry_seconds=settings.opik_retry_seconds,
            send_seconds=settings.opik_doubt_seconds * 0.4,
            observe=observe,
        )
        self.traces = OpikTraces(
            self.client,
            per_minute=settings.opik_lookups_per_minute,
            retry_seconds=settings.opik_retry_seconds,
            projects=tuple(dict.fromkeys(v.project for v in parts.verticals.values())),
            observe=observe,
            own_key=parts.policy.own_key,
        )

    async def close(self) -> None:
        await self.client.close()


def make_policy(settings: Settings, verticals: dict[str, Vertical]) -> Policy:
    def ms(seconds: float) -> int:
        return round(seconds * 1000)

    return Policy(
        write=settings.write,
        mirror_legacy_names=settings.mirror_legacy_names,
        lookback=ms(settings.lookback_seconds),
        missing_trace=ms(settings.missing_trace_seconds),
        trace_lookup=ms(settings.trace_lookup_seconds),
        judge_settle=ms(settings.judge_settle_seconds),
        future=ms(settings.future_tolerance_seconds),
        doubt=ms(settings.opik_doubt_seconds),
        reroll_window=ms(settings.reroll_window_seconds),
        reroll_windows={v.name: ms(v.reroll_window_seconds) for v in verticals.values()},
        layouts={v.name: v.trace for v in verticals.values()},
        max_record_bytes=settings.max_record_bytes,
        attributes=Attributes(
            settings.attribute_message_id,
            settings.attribute_user_id,
            settings.attribute_response_id,
            settings.attribute_thumbs,
            settings.attribute_created_at,
            settings.attribute_vertical,
        ),
        own_key=own_key(revealed(settings.seal_key)),
        forms=TraceForms(
            seals_of(settings, TRACES),
            {v.name: frozenset(v.proposal_namespaces) for v in verticals.values() if v.proposal_namespaces},
        ),
        enrichment_wait=ms(settings.enrichment_wait_seconds),
    )


def make_access(settings: Settings) -> KafkaAccess:
    security = settings.kafka_security
    sasl = security.protocol.startswith("SASL")
    return KafkaAccess(
        tuple(settings.brokers),
        security.protocol,
        security.mechanism,
        security.user,
        security.secret() if sasl else None,
        str(security.ca_file) if security.ca_file else None,
    )


@asynccontextmanager
async def producing(settings: Settings) -> AsyncIterator[Producer]:
    """Yields a producer of a command, which needs no other part."""
    producer = Producer(make_access(settings))
    try:
        yield producer
    finally:
        await producer.close()


def make_parts(settings: Settings, *, registry: bool = True) -> Parts:
    """Parts that connect on first use. Raises SettingsError for settings or verticals that can't be used, and without
    the registry's folder, unless what they are for needs no `registry`."""
    verticals = load_verticals(settings.configs, needed=registry)
    access, metrics = make_access(settings), Metrics()
    limit_inflation(settings.max_record_bytes)
    store = RedisStore(settings.redis_url, settings.redis_prefix)
    return Parts(
        settings=settings,
        topics=Topics(settings.topic_prefix, settings.audit_topic),
        policy=make_policy(settings, verticals),
        verticals=verticals,
        access=access,
        store=store,
        producer=Producer(access, max_bytes=max(settings.max_record_bytes, 1_048_576)),
        records=KafkaRecords(access),
        metrics=metrics,
        clock=WallClock(),
        newcomers=Newcomers(
            verticals, settings.new_names_per_hour, lambda sort: metrics.new_names_refused.labels(sort).inc()
        ),
        sealing=InstallationSeal(store, revealed(settings.seal_key)),
    )
