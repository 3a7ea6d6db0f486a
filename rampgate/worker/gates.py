"""Makes, from the settings, what decides ramp-step requests inside a worker, and the limits on its model calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from agents.gates.ports import GatePorts, Scoring
from agents.gates.scoring import JudgeScoring
from agents.ports import Ports
from agents.ramp_steps import RampAnswers, RampCounting
from evalcore import reloading
from evalcore.canaries.suspensions import Suspensions
from evalcore.scoring.http_client import HttpClient
from evalcore.scoring.nonce_key import nonce_key
from evalcore.scoring.opik_model import model_at
from evalcore.scoring.runner import Scorer
from rampgate.judging import call_limits
from rampgate.registry.dataset_check import read_whole
from rampgate.registry.metrics import observed
from rampgate.settings import revealed
from rampgate.wiring import Parts
from streams.app import Consumption
from streams.gates.candidate import CandidateAnswers
from streams.gates.gate_skips import GateSkips
from streams.gates.judge_standing import JudgeStandings
from streams.gates.ramp_requests import RampRequests
from streams.gates.samples import FrozenSamples, PooledTraces
from streams.gates.traffic import StateCompleteness
from streams.gates.verdict_log import VerdictLog
from streams.metrics import JudgeAnswers, scores_given, verdict_published
from streams.queries.coverage import WindowCoverage
from streams.redis.score_cache import RedisScoreCache

LISTED = 100
CANDIDATE_CALLS = 64
"""Calls to candidates at once, by all gates of a worker; `sample.candidate.at_once` of the manifest limits one gate."""
CANDIDATE_SECONDS = 600.0
"""A client's limit on one call; the manifest allows less."""


def _versions() -> dict[str, str]:
    """The version of each judge that serves."""
    registry = reloading.loaded()
    return {judge.id: judge.version for judge in registry.all()} if registry is not None else {}


class Gates:
    """Started and closed with the worker; `requests` makes what answers the ramp steps that its consumption reads."""

    def __init__(self, parts: Parts, scoring: Scoring | None = None) -> None:
        """`scoring` None: as the settings say."""
        self.parts = parts
        self._client: HttpClient | None = None
        self._candidates = HttpClient(CANDIDATE_CALLS, CANDIDATE_SECONDS)
        self.scorer: Scorer | None = None
        if scoring is None:
            scoring = self._by_settings()
        topic = parts.topics["judge-standing"]
        self.standings = JudgeStandings(parts.access, topic, parts.clock, self._checks_read, _versions)
        self.skips = GateSkips(parts.access, parts.topics["gate-overrides"], parts.clock)
        self.verdicts = VerdictLog(
            parts.access,
            parts.producer,
            parts.topics["verdicts"],
            parts.store,
            self.standings,
        )
        ports = parts.ports
        joined = [parts.topics[name] for name in ("thumbs", "rerolls", "traces")]
        self._state = StateCompleteness(ports.store, parts.access, parts.settings.group, joined)
        samples = self._samples(ports)
        coverage = WindowCoverage(ports.store, parts.clock, sorted(parts.verticals), self._state.guard)
        room = asyncio.Semaphore(parts.settings.gates_at_once)
        scores = partial(scores_given, parts.metrics)
        self._ports = GatePorts(samples, scoring, self.verdicts, coverage, room, scores, self.skips.now)

    def _samples(self, ports: Ports) -> FrozenSamples:
        settings, policy, clock = self.parts.settings, self.parts.policy, self.parts.clock
        topic, verticals = self.parts.topics["traces"], list(self.parts.verticals.values())
        in_opik = self.parts.opik.traces.get
        traces = PooledTraces(ports.store, ports.records, topic, clock, in_opik, policy.forms, self._state.guard)
        key = revealed(settings.candidate_key)
        answers = CandidateAnswers(self._candidates, key, ports.store, policy, clock, settings.candidate_refusal)
        datasets = partial(read_whole, settings, verticals=verticals)
        return FrozenSamples(ports.store, traces, policy, clock, datasets, answers)

    def _checks_read(self, known: Suspensions) -> None:
        serving = _versions()
        passed, held = (
            {judge: at for judge, at in found.items() if judge in serving}
            for found in (known.passed_at(), known.held_against_people_at())
        )
        self.parts.metrics.observe_canary_passes(passed, self.parts.settings.canaries_days)
        today = datetime.fromtimestamp(self.parts.clock.now_ms() / 1_000, UTC).date()
        inverted = dict.fromkeys(("platform", *self.parts.verticals), 0) | known.inverted(serving, today)
        self.parts.metrics.observe_inversion(inverted, held)

    def _by_settings(self) -> Scoring:
        settings, store = self.parts.settings, self.parts.store
        events = self.parts.judge_scores
        if settings.model_url is None:
            return JudgeScoring(None, events, self.parts.clock)
        key = revealed(settings.model_key)
        limits = call_limits(settings)
        self._client = HttpClient(limits.at_once, limits.call_seconds)
        model = model_at(settings.model_url, self._client, key)
        cache = RedisScoreCache(store.redis, store.prefix, settings.judge_answer_seconds)
        answers = JudgeAnswers(self.parts.metrics)
        self.scorer = Scorer(
            model,
            cache,
            limits,
            observe=answers,
            look=answers.look,
            key=nonce_key(revealed(settings.seal_key or settings.model_key)),
        )
        return JudgeScoring(self.scorer, events, self.parts.clock, settings.gate_calls, settings.gate_tokens)

    async def start(self) -> None:
        await self.verdicts.start()
        self.standings.start()
        self.skips.start()

    async def close(self) -> None:
        await self.verdicts.close()
        await self.standings.close()
        await self.skips.close()
        await self._state.close()
        await self._candidates.aclose()
        if self._client is not None:
            await self._client.aclose()

    def requests(self, consumption: Consumption) -> RampRequests:
        parts = self.parts
        requests = RampRequests(
            RampAnswers(observed(parts.metrics), self._ports),
            self.verdicts,
            parts.ports.dead_letters,
            RampCounting(
                parts.store,
                parts.clock,
                parts.policy.lookback,
                partial(parts.metrics.observe_report, registered=parts.verticals),
            ),
            parts.clock,
            consumer=partial(getattr, consumption, "consumer"),
            fatal=consumption.fatal,
            decided=partial(verdict_published, parts.metrics),
            now=parts.clock.trusted_ms,
        )
        parts.metrics.ramp_steps_waiting.set_function(lambda: requests.running)
        parts.metrics.ramp_step_oldest.set_function(lambda: requests.oldest_seconds)
        return requests

    def listed(self, wanted: Mapping[str, str]) -> list[dict[str, Any]]:
        """The latest verdicts of an experiment, an agent or an agent version, newest first, as published."""
        known = map(self.verdicts.known, self.verdicts.history.about(wanted, LISTED))
        return [one for one in known if one is not None]
