"""Messages to PagerDuty, Slack and Grafana, each tried again within bounds (PC5 §5.5, §5.7)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
import structlog

from schemas.dead_letters import clean

log = structlog.get_logger(__name__)
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
LONGEST_PAUSE = 30.0
PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"


class Undelivered(Exception):
    """The message names the service's host and what it answered; neither its path, which may be a secret (a Slack
    webhook is one), nor a key."""


@dataclass(frozen=True)
class Address:
    """Where a kind of message goes, and with which headers."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


def grafana(url: str, token: str) -> Address:
    """`url` is Grafana's own, such as https://grafana.example.com."""
    return Address(url.rstrip("/") + "/api/annotations", {"authorization": f"Bearer {token}"})


class Notifier:
    """`seconds` in all for one message, `timeout` for one try. The client is the caller's; give it no redirects.
    `observe` is told of each message whether it was delivered."""

    def __init__(
        self, client: httpx.AsyncClient, *, tries: int = 5, seconds: float = 60.0, timeout: float = 10.0,
        first_pause: float = 0.5, observe: Callable[[bool], None] = lambda delivered: None,
    ) -> None:  # fmt: skip
        self._client, self._tries, self._seconds = client, tries, seconds
        self._timeout, self._first, self._observe = timeout, first_pause, observe

    async def post(self, address: Address, body: Mapping[str, Any]) -> None:
        """Return once it is taken (2xx). Raises Undelivered."""
        last = "no answer"
        try:
            async with asyncio.timeout(self._seconds):
                for attempt in range(self._tries):
                    last, again, hinted = await self._try(address, body)
                    if not last:
                        self._observe(True)
                        return
                    if not again or attempt == self._tries - 1:
                        break
                    pause = self._first * 2**attempt * (0.75 + random.random() / 2)  # noqa: S311 - jitter
                    log.warning("notification_retry", host=address.host, after=last, attempt=attempt + 1)
                    await asyncio.sleep(min(max(pause, hinted), LONGEST_PAUSE))
        except TimeoutError:
            last = f"{last}; gave up after {self._seconds:g} s"
        self._observe(False)
        raise Undelivered(f"{address.host}: {last}")

    async def _try(self, address: Address, body: Mapping[str, Any]) -> tuple[str, bool, float]:
        """What went wrong, empty where nothing did; whether to try again; what the server asks to wait."""
        try:
            answer = await self._client.post(
                address.url, json=dict(body), headers=dict(address.headers), timeout=self._timeout
            )
        except (httpx.HTTPError, OSError) as error:
            return type(error).__name__, True, 0.0
        if answer.is_success:
            return "", False, 0.0
        said = clean(answer.text, 120)
        hint = answer.headers.get("retry-after", "")
        waits = float(hint) if hint.replace(".", "", 1).isdecimal() else 0.0
        return f"{answer.status_code} {said}".rstrip(), answer.status_code in RETRIED, waits
