"""A local Opik whose failures are scripted, as a process of its own."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rampgate.services.opik import LocalOpik
from rampgate.services.process import ChildProcess
from tests.fault.traffic import Traffic


class FaultyOpik(LocalOpik):
    """The local Opik with its fault controls; in memory, so that it is quick."""

    def _prepare(self, folder: Path) -> ChildProcess:
        command = [sys.executable, "-m", "rampgate.localopik", "--port", str(self.port), "--faults"]
        return ChildProcess(self.name, command, folder)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data=data, method=method)  # noqa: S310 - our own server
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - the same
            text = answer.read()
        return json.loads(text) if text else None

    def fault(self, **rule: Any) -> None:
        self.call("POST", "/_faults", rule)

    def heal(self) -> None:
        self.call("DELETE", "/_faults")

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
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + "/v1/private/traces/search", data=data, method="POST")  # noqa: S310
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return [json.loads(line) for line in answer.read().splitlines() if line.strip()]
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise
