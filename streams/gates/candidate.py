"""A candidate, run on items over HTTP: POST {input, metadata} -> {output} (contracts §3).

It never sees an expected_output. What it fails to answer is no score; the judges leave that item unscored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx
import orjson

from evalcore.gates.golden import CandidateAnswer, Failed
from evalcore.scoring.chat_model import Client, make_client, retry_after
from evalcore.scoring.items import identity
from streams.retry import RETRIED_STATUSES, Retry, TryAgain

LONGEST_PAUSE: Final = 20.0
GIVEN_UP_AFTER: Final = 10
"""Items that failed before any was answered: the others are not asked."""
LONGEST_ANSWER: Final = 4 * 1024 * 1024


@dataclass(frozen=True)
class CandidateLimits:
    at_once: int = 8
    seconds: float = 60.0
    tries: int = 3
    first_pause: float = 0.5


class CandidateClient:
    """For one gate: after GIVEN_UP_AFTER items without any answer it asks no more."""

    def __init__(self, client: Client, url: str, key: str | None = None, limits: CandidateLimits | None = None) -> None:
        self._client, self._url, self._key = client, url, key
        self._limits = limits or CandidateLimits()
        self._room = asyncio.Semaphore(self._limits.at_once)
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        self._answered = self._failed = 0

    async def answers(self, items: Sequence[Mapping[str, Any]]) -> dict[str, CandidateAnswer]:
        """By the item's id. Raises nothing but CancelledError."""
        found = await asyncio.gather(*map(self.answer, items))
        return {identity(item, number): answer for number, (item, answer) in enumerate(zip(items, found, strict=True))}

    async def answer(self, item: Mapping[str, Any]) -> CandidateAnswer:
        """Waits for room. Raises nothing but CancelledError."""
        async with self._room:
            return await self._one(item)

    async def _one(self, item: Mapping[str, Any]) -> CandidateAnswer:
        if not self._answered and self._failed >= GIVEN_UP_AFTER:
            return Failed(f"not asked: the candidate answered none of the first {self._failed} items")
        try:
            body = orjson.dumps({"input": item.get("input"), "metadata": item.get("metadata") or {}}, default=str)
        except orjson.JSONEncodeError as error:
            return Failed(f"the item can't be sent to the candidate: {error}")
        retry = Retry(self._limits.first_pause, LONGEST_PAUSE, LONGEST_PAUSE, self._limits.tries)
        try:
            answer = await retry.call(lambda: self._ask(body), TryAgain)
        except TryAgain as error:
            answer = Failed(str(error))
        if isinstance(answer, Failed):
            self._failed += 1
        else:
            self._answered += 1
        return answer

    async def _ask(self, body: bytes) -> CandidateAnswer:
        """Raises TryAgain where another try may mend it."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                response = await self._client.post(self._url, content=body, headers=self._headers)
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
    if len(content) > LONGEST_ANSWER:
        return Failed(f"the candidate's answer has more than {LONGEST_ANSWER >> 20} MB")
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return Failed("the candidate answers 200 without JSON")
    if not isinstance(found, dict) or found.get("output") is None:
        return Failed("the candidate answers 200 without an output")
    return found


async def ask_candidate(
    url: str, items: Sequence[Mapping[str, Any]], key: str | None = None, limits: CandidateLimits | None = None
) -> dict[str, CandidateAnswer]:
    limits = limits or CandidateLimits()
    client = make_client(limits.at_once, limits.seconds)
    try:
        return await CandidateClient(client, url, key, limits).answers(items)
    finally:
        await client.aclose()
