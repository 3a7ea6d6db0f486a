"""What a client of Opik's HTTP contract sends and reads."""

from __future__ import annotations

import json
from typing import Any

import httpx
import uuid6

T = "/v1/private/traces"


def trace(project: str, **fields: Any) -> dict[str, Any]:
    identifier = str(uuid6.uuid7())
    return {"id": identifier, "project_name": project, "start_time": "2026-04-17T12:00:00Z", "name": "turn"} | fields


def score(identifier: str, project: str | None, name: str = "thumbs", value: Any = 1, **more: Any) -> dict[str, Any]:
    return {"id": identifier, "project_name": project, "name": name, "value": value, "source": "sdk"} | more


def scores_of(http: httpx.Client, identifier: str) -> dict[str, float]:
    found = http.get(f"{T}/{identifier}").json().get("feedback_scores", [])
    return {item["name"]: item["value"] for item in found}


def search(http: httpx.Client, project: str, *filters: dict[str, Any], **more: Any) -> list[str]:
    response = http.post(f"{T}/search", json={"project_name": project, "filters": list(filters), **more})
    assert response.status_code == 200, response.text
    return [json.loads(line)["id"] for line in response.content.split(b"\r\n") if line]
