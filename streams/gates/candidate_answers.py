"""What a version that asks to ramp answers to items, each asked for once (PC5 §5.5).

An answer is kept in Redis as soon as it comes. A gate that is resumed, and another gate of the same version, ask only
for what is missing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson

from agents.keys import CANDIDATE_ANSWER, Key
from agents.policy import Policy
from agents.ports import Change, Clock, Store, Unavailable
from evalcore.gates.golden import CandidateAnswer, Failed
from evalcore.scoring.chat_model import Client
from schemas.manifests import CandidateEndpoint, address
from schemas.ramp_steps import RampStep
from streams.gates.candidate import CandidateClient, CandidateLimits

LARGEST = 256 * 1024
"""Bytes of an answer; a larger one is asked for again."""


class CandidateAnswers:
    """`key` is sent as a bearer token. The client is closed by whoever made it."""

    def __init__(self, client: Client, key: str | None, store: Store, policy: Policy, clock: Clock) -> None:
        self._client, self._key = client, key
        self._store, self._policy, self._clock = store, policy, clock

    async def to(
        self, items: Sequence[Mapping[str, Any]], endpoint: CandidateEndpoint, step: RampStep
    ) -> list[CandidateAnswer]:
        """In the order of the items. Raises Unavailable where it can't be read what was answered before."""
        who = f"{step.agent_id} {step.agent_version} at {endpoint.url}"
        try:
            url = address(endpoint.url, step.agent_id, step.agent_version)
        except ValueError as error:
            return [Failed(f"{who}: {error}")] * len(items)
        keys = [_key(url, step, item) for item in items]
        known = [key for key in keys if key is not None]
        held = dict(zip(known, await self._store.read(known), strict=True))
        limits = CandidateLimits(endpoint.at_once, float(endpoint.seconds), endpoint.tries)
        candidate = CandidateClient(self._client, url, self._key, limits)

        async def one(item: Mapping[str, Any], key: Key | None) -> CandidateAnswer:
            if key is not None and held[key]:
                kept: dict[str, Any] = orjson.loads(held[key])
                return kept
            answer = await candidate.answer(item)
            if isinstance(answer, Failed):
                return Failed(f"{who}: {answer.why}")
            await self._keep(key, answer)
            return answer

        return await asyncio.gather(*map(one, items, keys))

    async def _keep(self, key: Key | None, answer: Mapping[str, Any]) -> None:
        """What can't be kept is asked for again, should the gate be resumed."""
        with suppress(Unavailable, orjson.JSONEncodeError):
            content = orjson.dumps(answer)
            if key is not None and len(content) <= LARGEST:
                until = self._clock.now_ms() + self._policy.lookback
                await self._store.apply(Change(sets={key: (content, until)}))


def _key(url: str, step: RampStep, item: Mapping[str, Any]) -> Key | None:
    """The key by all that the answer depends on (an address may be that of whatever version runs there); None where the
    item is nested too deep to be told from others."""
    asked = [url, step.agent_id, step.agent_version, item.get("input"), item.get("metadata")]
    try:
        text = orjson.dumps(asked, default=str, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return None
    return CANDIDATE_ANSWER.key(hashlib.sha256(text).hexdigest()[:40])
