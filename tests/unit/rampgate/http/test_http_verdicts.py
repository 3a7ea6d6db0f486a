"""`GET /verdicts`: by experiment, agent or agent version (contracts §4; PC5 §5.5 "Per-Agent-Definition lifecycle
threads")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from evalcore.gates.history import History
from rampgate.http.routes import Side, make_app
from schemas.answers import Health
from schemas.publish.examples import FAILED
from streams.metrics import Metrics

GOOD = Health(ok=True, reasons=[], checks={})
VERDICTS = {
    number: {**FAILED, "request_id": number, "experiment_id": experiment, "agent_id": agent, "agent_version": version}
    for number, experiment, agent, version in (
        ("1", "e-1", "alpha", "old"),
        ("2", "e-2", "alpha", "new"),
        ("3", "e-2", "beta", "new"),
    )
}


async def ask(query: str) -> tuple[int, Any]:
    known = History()
    for one in VERDICTS.values():
        known.add(one)

    def listed(wanted: Mapping[str, str]) -> list[dict[str, Any]]:
        return [VERDICTS[request] for request in known.about(wanted, 100)]

    side = Side(Metrics(), lambda: GOOD, lambda: GOOD, verdicts=listed)
    async with TestClient(TestServer(make_app(side))) as client:
        answer = await client.get(f"/verdicts{query}")
        return answer.status, await answer.json()


@pytest.mark.parametrize(
    ("query", "requests"),
    [
        ("?experiment_id=e-2", ["3", "2"]),
        ("?agent_id=alpha", ["2", "1"]),
        ("?agent_version=new", ["3", "2"]),
        ("?agent_id=alpha&agent_version=old", ["1"]),
        ("?agent_id=alpha&agent_version=old&experiment_id=", ["1"]),
        ("?experiment_id=e-1&agent_id=beta", []),
        ("?agent_version=never", []),
    ],
)
async def test_each_definition_has_a_history_of_its_own(query: str, requests: list[str]) -> None:
    status, body = await ask(query)
    assert (status, [one["request_id"] for one in body["verdicts"]]) == (200, requests)
    asked = dict(pair.split("=") for pair in query[1:].split("&"))
    assert {name: word for name, word in body.items() if name != "verdicts"} == {k: v for k, v in asked.items() if v}


@pytest.mark.parametrize(
    ("query", "told"),
    [("", "say whose"), ("?experiment_id=", "say whose"), ("?x=1", "no such parameter: x")],
)
async def test_who_asks_about_nobody_is_told_how(query: str, told: str) -> None:
    status, body = await ask(query)
    assert (status, body["error"]) == (400, "bad_request")
    assert told in body["message"]
