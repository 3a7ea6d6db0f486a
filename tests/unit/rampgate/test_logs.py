"""Nothing that says it is a secret, and no password in a URL, comes through the logs' renderer."""

from __future__ import annotations

from typing import Any

import pytest

from rampgate.logs import redact
from rampgate.settings import hide_password

SECRET = "canary-secret"


@pytest.mark.parametrize(
    "event",
    [
        {"api_key": SECRET},
        {"Authorization": f"Bearer {SECRET}"},
        {"headers": {"authorization": SECRET, "x": 1}},
        {"options": [{"sasl_plain_password": SECRET}]},
        {"token": SECRET.encode()},
        {"redis": f"redis://:{SECRET}@h:1/0"},
        {"redis": f"redis://user:a/{SECRET}@h:1/0"},
        {"opik": f"https://{SECRET}@opik/api"},
        {"url": f"https://model/v1?key={SECRET}&v=1"},
        {"event": f"asking 'https://model/v1?api-version=1&key={SECRET}' again"},
        {"urls": (f"https://u:p@{SECRET}@h", "x")},
        {"event": f"connecting to redis://:{SECRET}@h:1 and https://u:{SECRET}@g"},
        {"exception": f"Traceback…\n  ConnectError: https://u:{SECRET}@h\n"},
    ],
)
def test_a_secret_does_not_pass(event: dict[str, Any]) -> None:
    assert SECRET not in str(redact(None, "info", event))


def test_everything_else_passes_as_it_is() -> None:
    event = {"event": "worker_starting", "kafka": ["a:1", "b:2"], "n": 3, "opik": "https://opik/api", "who": "me@x"}
    assert redact(None, "info", dict(event)) == event
    assert hide_password("redis://user:x@h:1/0") == "redis://user:***@h:1/0"
