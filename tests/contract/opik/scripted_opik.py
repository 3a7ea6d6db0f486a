"""A local Opik seen from outside: its fault controls, and ways to put in and to look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
import uuid6


@dataclass
class ScriptedOpik:
    """`url` is what the client wants; the rest acts and looks at the server from outside."""

    url: str
    http: httpx.AsyncClient

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self.http.request(method, self.url + path, json=body)
        assert answer.status_code < 400, answer.text
        return answer.json() if answer.content else None

    async def fault(self, **rule: Any) -> None:
        await self.call("POST", "/_faults", rule)

    async def heal(self) -> None:
        await self.call("DELETE", "/_faults")

    async def requests(self) -> dict[str, int]:
        """Requests since the start, per method and path template."""
        return dict(await self.call("GET", "/_requests"))

    async def add_traces(self, *traces: dict[str, Any]) -> None:
        for first in range(0, len(traces), 1000):
            await self.call("POST", "/v1/private/traces/batch", {"traces": traces[first : first + 1000]})

    async def add_score(self, trace_id: str, name: str, value: float, project: str, source: str = "sdk") -> None:
        score = {"id": trace_id, "name": name, "value": value, "project_name": project, "source": source}
        await self.call("PUT", "/v1/private/traces/feedback-scores", {"scores": [score]})

    async def scores_of(self, trace_id: str) -> dict[str, Any]:
        """name -> the score as Opik's detail shows it."""
        trace = await self.call("GET", f"/v1/private/traces/{trace_id}")
        return {score["name"]: score for score in trace.get("feedback_scores") or ()}


def trace_id_at(ms: int) -> str:
    """A fresh version 7 id of that moment: Opik's time bounds look at the ids."""
    random = uuid6.uuid7().hex[13:]
    head = f"{ms:012x}7"
    digits = head + random[: 32 - len(head)]
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
