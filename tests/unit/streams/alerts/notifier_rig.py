"""A server that takes notifications, and a notifier that is quick to give up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from evalcore.scoring.http_client import HttpClient
from streams.alerts.notifiers import Notifier


@dataclass
class Server:
    """Answers with `statuses` in turn, then with 202. `taken`: (path, headers, body)."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    text: str = "said the server"
    taken: list[tuple[str, Any, Any]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.taken.append((request.path, request.headers, await request.json()))
        status = self.statuses.pop(0) if self.statuses else 202
        return web.Response(status=status, text=self.text, headers=self.headers)


def notifier(client: HttpClient, **more: Any) -> Notifier:
    return Notifier(client, **{"first_pause": 0.01, "tries": 3, "timeout": 1.0, **more})
