"""Reads what Opik holds: every trace of some projects with its scores, by plain GETs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx

_PAGE = 2_000
RESERVED = "user_signal_"
"""Begins the names of users' signals, and no others (contracts §2)."""


@dataclass
class OpikContent:
    """`scores`: each (trace, name) of a user's signal, with every value that stands for it: one per author.
    `traces`: each response's trace."""

    scores: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    traces: dict[str, str] = field(default_factory=dict)

    def add(self, trace: dict[str, Any]) -> None:
        response = (trace.get("metadata") or {}).get("response_id")
        if response:
            self.traces[response] = trace["id"]
        for score in trace.get("feedback_scores") or ():
            if score["name"].startswith(RESERVED):
                authors = score.get("value_by_author") or {"": score}
                values = [float(own["value"]) for own in authors.values()]
                self.scores.setdefault((trace["id"], score["name"]), []).extend(values)


def opik_content(url: str, projects: Iterable[str]) -> OpikContent:
    """`url` ends in /api. A project that Opik does not know is empty."""
    found = OpikContent()
    with httpx.Client(base_url=url + "/v1/private/", timeout=60) as http:
        for project in projects:
            page, seen, total = 1, 0, 1
            while seen < total:
                asked: dict[str, str | int] = {"project_name": project, "page": page, "size": _PAGE}
                answer = http.get("traces", params=asked | {"exclude": '["input", "output"]'})
                if answer.status_code == httpx.codes.NOT_FOUND:
                    break
                body = answer.raise_for_status().json()
                for trace in body["content"]:
                    found.add(trace)
                page, seen, total = page + 1, seen + len(body["content"]), body["total"]
                if not body["content"]:
                    break
    return found
