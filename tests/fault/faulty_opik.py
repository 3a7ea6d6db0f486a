"""A local Opik whose failures are scripted, as a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx

from rampgate.local.services.http_services import LocalOpik
from rampgate.local.services.process import ChildProcess
from tests.fault.traffic import Traffic


class FaultyOpik(LocalOpik):
    """The local Opik with its fault controls; in memory, so that it is quick."""

    def __init__(self) -> None:
        super().__init__()
        self._http = httpx.Client(base_url=self.url, timeout=30)

    def _prepare(self, folder: Path) -> ChildProcess:
        command = [sys.executable, "-m", "rampgate.local.opik", "--port", str(self.port), "--faults"]
        return ChildProcess(self.name, command, folder)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._http.request(method, path, json=body).raise_for_status()
        return answer.json() if answer.content else None

    def fault(self, **rule: Any) -> None:
        self.call("POST", "/_faults", rule)

    def heal(self) -> None:
        self.call("DELETE", "/_faults")

    def kept(self) -> int:
        """Requests that a `late` rule keeps."""
        return int(self.call("GET", "/_late")["kept"])

    def apply_late(self) -> int:
        """Apply them; their number."""
        return int(self.call("POST", "/_late")["applied"])

    def writes(self) -> dict[tuple[str, str], int]:
        """Score rows written per (trace, name)."""
        found = self.call("GET", "/_writes")
        return {(trace, name): n for trace, names in found.items() for name, n in names.items()}

    def load(self, traffic: Traffic) -> None:
        """Put the traces and judge scores of this traffic where Opik would have them."""
        traces, scores = traffic.opik_traces(), traffic.opik_judgements()
        for start in range(0, len(traces), 1000):
            self.call("POST", "/v1/private/traces/batch", {"traces": traces[start : start + 1000]})
        for start in range(0, len(scores), 1000):
            self.call("PUT", "/v1/private/traces/feedback-scores", {"scores": scores[start : start + 1000]})
        self.call("DELETE", "/_writes")

    def scores(self, projects: Iterable[str]) -> dict[tuple[str, str], float]:
        """Every user signal Opik holds in these projects, as its search shows them."""
        held: dict[tuple[str, str], float] = {}
        for project in projects:
            last: str | None = None
            while True:
                body: dict[str, Any] = {"project_name": project, "limit": 2000, "exclude": ["input", "output"]}
                if last:
                    body["last_retrieved_id"] = last
                page = self._search(body)
                for trace in page:
                    for score in trace.get("feedback_scores") or ():
                        if score["name"].startswith("user_signal_"):
                            held[trace["id"], score["name"]] = score["value"]
                if len(page) < 2000:
                    break
                last = page[-1]["id"]
        return held

    def _search(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        answer = self._http.post("/v1/private/traces/search", json=body)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return []
        lines = answer.raise_for_status().content.splitlines()
        return [json.loads(line) for line in lines if line.strip()]

    def _release(self) -> None:
        self._http.close()
        super()._release()
