"""Runs a candidate on items over HTTP: POST {input, metadata} -> {output} (contracts §3, PC5 §5.5). A caller may send
more with each item, such as a prompt to use.

A candidate never sees an expected_output. What it fails to answer is no score: judges leave that item unscored. On the
stream each answer is kept in Redis as soon as it comes, so a gate that is resumed, and another gate of the same
version, ask only for what is missing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import httpx
import orjson

from agents.keys import CANDIDATE_ANSWER, KEPT_FORM, Key
from agents.policy import Policy
from agents.ports import Change, Clock, Store, Unavailable
from evalcore.gates.golden import TRACEPARENT, CandidateAnswer, Pending, question
from evalcore.nesting import TOO_DEEP, too_deep
from evalcore.scoring.chat_model import Client, retry_after
from evalcore.scoring.http_client import LONGEST_ANSWER, TooLong
from evalcore.scoring.items import Failed
from schemas.manifests import CandidateEndpoint, address
from schemas.ramp_steps import RampStep
from streams.retry import RETRIED_STATUSES, Retry, TryAgain

LONGEST_PAUSE: Final = 20.0
GIVEN_UP_AFTER: Final = 10
"""Items that failed before any was answered: the others are not asked."""
LARGEST_KEPT: Final = 256 * 1024
"""Bytes of an answer that is kept; a larger one is asked for again."""


@dataclass(frozen=True)
class CandidateLimits:
    at_once: int = 8
    seconds: float = 60.0
    tries: int = 3
    first_pause: float = 0.5


class CandidateClient:
    """Asks one candidate for one gate. After GIVEN_UP_AFTER items without any answer it asks no more."""

    def __init__(
        self, client: Client, url: str, key: str | None = None, limits: CandidateLimits | None = None,
        beside: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._client, self._url, self._key, self._beside = client, url, key, beside or {}
        self._limits = limits or CandidateLimits()
        self._room = asyncio.Semaphore(self._limits.at_once)
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        self._answered = self._failed = 0
        self._may_pass = False

    async def answer(self, item: Mapping[str, Any]) -> CandidateAnswer:
        """The candidate's answer, or why there is none; waits while `at_once` others are asked. Raises nothing but
        CancelledError."""
        async with self._room:
            return await self._tried(item)

    async def _tried(self, item: Mapping[str, Any]) -> CandidateAnswer:
        if not self._answered and self._failed >= GIVEN_UP_AFTER:
            why = f"not asked: the candidate answered none of the first {self._failed} items"
            return Failed(why, self._may_pass)
        try:
            body = orjson.dumps(question(item, self._beside), default=str)
        except orjson.JSONEncodeError as error:
            return Failed(f"the item can't be sent to the candidate: {error}")
        headers = self._headers | ({TRACEPARENT: str(item[TRACEPARENT])} if TRACEPARENT in item else {})
        retry = Retry(self._limits.first_pause, LONGEST_PAUSE, LONGEST_PAUSE, self._limits.tries)
        try:
            answer = await retry.call(lambda: self._ask(body, headers), TryAgain)
        except TryAgain as error:
            answer = Failed(str(error), may_pass=True)
        if isinstance(answer, Failed):
            self._failed += 1
            self._may_pass = answer.may_pass
        else:
            self._answered += 1
        return answer

    async def _ask(self, body: bytes, headers: Mapping[str, str]) -> CandidateAnswer:
        """Raises TryAgain where another try may mend it."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                response = await self._client.post(self._url, content=body, headers=headers)
        except TooLong:
            return Failed(f"the candidate's answer has more than {LONGEST_ANSWER >> 20} MB")
        except (TimeoutError, httpx.TimeoutException) as error:
            raise TryAgain(f"the candidate gave no answer in {self._limits.seconds:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise TryAgain(f"the candidate can't be reached ({type(error).__name__})") from error
        if response.status_code in RETRIED_STATUSES:
            raise TryAgain(f"the candidate answers {response.status_code}", retry_after(response.headers))
        if response.status_code != 200:
            return Failed(f"the candidate answers {response.status_code}")
        return _read(response.content)


def _read(content: bytes) -> CandidateAnswer:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return Failed("the candidate answers 200 without JSON")
    if not isinstance(found, dict) or found.get("output") is None:
        return Failed("the candidate answers 200 without an output")
    return found if not too_deep(found) else Failed(f"the candidate's answer {TOO_DEEP}")


class CandidateAnswers:
    """Candidates' answers for gates on the stream, each asked for once and kept in Redis. `key` is sent as a bearer
    token. `refusal` says why an address may not be asked, None where it may. The caller closes the client."""

    def __init__(
        self, client: Client, key: str | None, store: Store, policy: Policy, clock: Clock,
        refusal: Callable[[str], str | None] = lambda url: None,
    ) -> None:  # fmt: skip
        self._client, self._key, self._refusal = client, key, refusal
        self._store, self._policy, self._clock = store, policy, clock

    async def to(
        self, items: Sequence[Mapping[str, Any]], endpoint: CandidateEndpoint, step: RampStep
    ) -> list[CandidateAnswer | Pending]:
        """Answers in the order of the items: those that are kept, and others that the candidate is asked for when they
        are waited for. Raises Unavailable while earlier answers can't be read."""
        who = f"{step.agent_id} {step.agent_version} at {endpoint.url.partition('?')[0]}"  # a query may hold a key
        try:
            url = address(endpoint.url, step.agent_id, step.agent_version)
        except ValueError as error:
            return [Failed(f"{who}: {error}")] * len(items)
        refused = self._refusal(url)
        if refused is not None:
            return [Failed(f"{who}: not asked: {refused}")] * len(items)
        keys = [_key(url, step, item) for item in items]
        known = [key for key in keys if key is not None]
        held = dict(zip(known, await self._store.read(known), strict=True))
        limits = CandidateLimits(endpoint.at_once, float(endpoint.seconds), endpoint.tries)
        candidate = CandidateClient(self._client, url, self._key, limits)

        async def one(item: Mapping[str, Any], key: Key | None) -> CandidateAnswer:
            answer = await candidate.answer(item)
            if isinstance(answer, Failed):
                return Failed(f"{who}: {answer.why}", answer.may_pass)
            await self._keep(key, answer)
            return answer

        return [
            orjson.loads(raw) if key is not None and (raw := held[key]) else Pending(partial(one, item, key))
            for item, key in zip(items, keys, strict=True)
        ]

    async def _keep(self, key: Key | None, answer: Mapping[str, Any]) -> None:
        """Keep the answer if that is possible; otherwise a gate that is resumed asks again."""
        with suppress(Unavailable, orjson.JSONEncodeError):
            content = orjson.dumps(answer)
            if key is not None and len(content) <= LARGEST_KEPT:
                until = self._clock.now_ms() + self._policy.lookback
                await self._store.apply(Change(sets={key: (content, until)}))


def _key(url: str, step: RampStep, item: Mapping[str, Any]) -> Key | None:
    """The key of all that the answer depends on, the version too, since an address may serve whatever version runs
    there; None where the item is nested too deep to be hashed."""
    question = [KEPT_FORM, url, step.agent_id, step.agent_version, item.get("input"), item.get("metadata")]
    try:
        text = orjson.dumps(question, default=str, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return None
    return CANDIDATE_ANSWER.key(hashlib.sha256(text).hexdigest()[:40])
