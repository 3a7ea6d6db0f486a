"""What tests have of a running `rampgate dev`: its topics, its pages, its commands, the model's stand-in and Opik."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from confluent_kafka import Producer

from rampgate.local.dev import DevStack
from rampgate.local.services.process import ServiceUnavailable
from tests.asking import HTTP
from tests.giving_up import give_up
from tests.stream.commands import Ran, in_process_of_its_own

D = TypeVar("D", bound=DevStack)


@contextmanager
def running(made: Callable[[], D], **settings: str) -> Iterator[D]:
    """The embedded stack with a worker of these settings, as `rampgate dev` has it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(f"RAMPGATE_{name}", value)
        try:
            with made() as stack:
                yield stack
        except ServiceUnavailable as error:
            give_up(error)


def get(dev: DevStack, path: str) -> tuple[int, Any]:
    """Status and body, JSON where it is."""
    answer = HTTP.get(f"{dev.addresses['http']}{path}")
    return answer.status_code, answer.json() if answer.text.startswith("{") else answer.text


def rampgate(dev: DevStack, *arguments: str, module: str = "rampgate") -> Ran:
    addresses = {f"RAMPGATE_{name.upper()}": str(dev.addresses[name]) for name in ("kafka", "redis", "opik")}
    return in_process_of_its_own({**os.environ, **addresses}, *arguments, module=module)


def send(dev: DevStack, name: str, *events: dict[str, Any]) -> None:
    """Onto the topic `rampgate.<name>`, under the keys that their writers give them."""
    producer = Producer({"bootstrap.servers": dev.addresses["kafka"]})
    for event in events:
        key = event["experiment_id"] if name == "ramp-steps" else event["response_id"]
        producer.produce(f"rampgate.{name}", key=key, value=json.dumps(event))
    assert producer.flush(15) == 0


def post(dev: DevStack, *events: dict[str, Any]) -> None:
    """As tracing does: into Opik, and onto the topic."""
    into_opik(dev, *events)
    send(dev, "traces", *events)


def into_opik(dev: DevStack, *events: dict[str, Any]) -> None:
    traces = [
        {
            "id": event["trace_id"],
            "project_name": event["project_name"],
            "name": "turn",
            "start_time": event["started_at"],
            "end_time": event["ended_at"],
            "input": event["input"],
            "output": event["output"],
            "metadata": {**event["metadata"], "response_id": event["response_id"]},
        }
        for event in events
    ]
    answer = HTTP.post(f"{dev.addresses['opik']}/v1/private/traces/batch", json={"traces": traces})
    assert answer.status_code == 204


def consumed(dev: DevStack, signal: str) -> int:
    return int(get(dev, "/conservation")[1]["signals"][signal]["consumed"])


def waiting(dev: DevStack) -> dict[str, float]:
    """Records that wait for each reader beside the join, as its metric says."""
    page = HTTP.get(f"{dev.addresses['http']}/metrics").raise_for_status().text
    lines = re.findall(r'rampgate_side_lag_records{.*reader="(\w+)".*} (\S+)', page)
    found: dict[str, float] = {}
    for reader, lag in lines:
        found[reader] = found.get(reader, 0.0) + float(lag)
    return found


def live_differences(dev: DevStack) -> dict[str, float]:
    """What fell due to live judging and neither ended nor waits, by agent version and whether it was rated."""
    page = HTTP.get(f"{dev.addresses['http']}/metrics").raise_for_status().text
    found: dict[str, float] = {}
    for figure, labels, value in re.findall(r"^rampgate_live_(due|ended|waiting)\w*{(.*)} (\S+)$", page, re.MULTILINE):
        whose = re.sub(r'end="\w+",', "", labels)
        found[whose] = found.get(whose, 0.0) + float(value) * (1 if figure == "due" else -1)
    assert found
    return {whose: by for whose, by in found.items() if by}


def judged(dev: DevStack, event: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The judges' scores that Opik holds of a trace, by name."""
    url = f"{dev.addresses['opik']}/v1/private/traces/{event['trace_id']}"
    scores = HTTP.get(url).raise_for_status().json().get("feedback_scores") or []
    return {score["name"]: score for score in scores if not score["name"].startswith("user_signal_")}


def verdicts(dev: DevStack, experiment: str) -> list[dict[str, Any]]:
    status, body = get(dev, f"/verdicts?experiment_id={experiment}")
    assert status == 200
    found: list[dict[str, Any]] = body["verdicts"]
    return found


def calls(dev: DevStack) -> int:
    """All that the model's stand-in was asked so far."""
    base = str(dev.addresses["judge"]).removesuffix("/v1")
    return sum(HTTP.get(f"{base}/_requests").raise_for_status().json()["answers"].values())


def calls_at_rest(dev: DevStack, seconds: float = 3.0) -> int:
    """Once it was asked nothing more for so long."""
    asked, since = calls(dev), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.1)
        if (now := calls(dev)) != asked:
            asked, since = now, time.monotonic()
    return asked


def tell(dev: DevStack, **behaviour: Any) -> None:
    base = str(dev.addresses["judge"]).removesuffix("/v1")
    assert HTTP.put(f"{base}/_behaviour", json=behaviour).status_code == 200
