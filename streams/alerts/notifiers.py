"""Sends messages to PagerDuty, Slack and Grafana, and repeats each within bounds (PC5 §5.5, §5.7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import structlog

from evalcore.gates.messages import message
from evalcore.scoring.chat_model import Client, retry_after
from evalcore.scoring.http_client import TooLong
from schemas.dead_letters import clean
from schemas.foreign_words import LONGEST_READ, foreign_words
from streams.retry import RETRIED_STATUSES, Retry, TryAgain

log = structlog.get_logger(__name__)
LONGEST_PAUSE = 30.0
PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"


class Undelivered(Exception):
    """A message was not delivered. The text names the service's host and its answer, but neither a path, which may be
    secret (a Slack webhook is), nor a key."""


@dataclass(frozen=True)
class Address:
    """The URL of a channel, and the headers that it needs."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


def grafana(url: str, token: str) -> Address:
    """The address of Grafana's annotations; `url` is Grafana's own, such as https://grafana.example.com."""
    return Address(url.rstrip("/") + "/api/annotations", {"authorization": f"Bearer {token}"})


class Notifier:
    """Posts messages: each has `seconds` in all and `timeout` for one try. `observe` is told whether a message was
    delivered. The caller closes the client."""

    def __init__(
        self, client: Client, *,
        tries: int = 5, seconds: float = 60.0, timeout: float = 10.0,
        first_pause: float = 0.5, observe: Callable[[bool], None] = lambda delivered: None,
    ) -> None:  # fmt: skip
        self._client, self._seconds, self._timeout, self._observe = client, seconds, timeout, observe
        self._retry = Retry(first_pause, LONGEST_PAUSE, LONGEST_PAUSE, tries)

    async def post(self, address: Address, body: Mapping[str, Any]) -> None:
        """Return once the service answers 2xx. Raises Undelivered."""
        last = "no answer"

        def noticed(error: BaseException, failures: int, pause: float) -> None:
            nonlocal last
            last = str(error)
            log.warning("notification_retry", host=address.host, after=last, attempt=failures)

        try:
            async with asyncio.timeout(self._seconds):
                await self._retry.call(lambda: self._try(address, body), TryAgain, noticed=noticed)
        except TimeoutError:
            last = f"{last}; gave up after {self._seconds:g} s"
        except (TryAgain, Undelivered) as error:
            last = str(error)
        else:
            self._observe(True)
            return
        self._observe(False)
        raise Undelivered(f"{address.host}: {last}")

    async def _try(self, address: Address, body: Mapping[str, Any]) -> None:
        """Post once. Raises TryAgain where a repetition may help, else Undelivered."""
        try:
            async with asyncio.timeout(self._timeout):
                headers = {"content-type": "application/json", **address.headers}
                answer = await self._client.post(address.url, content=orjson.dumps(dict(body)), headers=headers)
        except TooLong:
            return  # it is delivered, whatever else is answered
        except (httpx.HTTPError, OSError) as error:
            raise TryAgain(type(error).__name__) from None  # the error's own text may name the path
        if 200 <= answer.status_code < 300:
            return
        said = answer.content[:LONGEST_READ].decode(errors="replace")
        why = f"{answer.status_code} {foreign_words(said)}".rstrip()
        if answer.status_code in RETRIED_STATUSES:
            raise TryAgain(why, retry_after(answer.headers))
        raise Undelivered(why)


@dataclass(frozen=True)
class Slack:
    """Where operators are told: `address` is that of Slack's webhook, None where none is configured."""

    notifier: Notifier
    address: Address | None

    async def tell(self, text: str, failed: str, **about: object) -> str:
        """Return who was told, or that no one was, since no webhook is set. Empty where the text was not delivered: the
        log line `failed` says so."""
        if self.address is None:
            return "no one: slack_webhook is not set"
        try:
            await self.notifier.post(self.address, message(text))
        except Undelivered as error:
            log.warning(failed, reason=clean(str(error)), **about)
            return ""
        return "Slack"
