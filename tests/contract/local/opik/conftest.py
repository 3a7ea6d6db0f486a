"""A local Opik as a process of its own, with the official, unmodified SDK and plain HTTP in front of it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator

import httpx
import pytest

os.environ["OPIK_SENTRY_ENABLE"] = "false"
os.environ["OPIK_ANALYTICS_ENABLE"] = "false"
os.environ["OPIK_TRACK_DISABLE"] = "false"

import opik

OWN_WARNING = "shortly after creation with batching enabled"  # about how a test uses the SDK, whatever the server


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    command = [sys.executable, "-m", "rampgate.local.opik", "--port", "0", "--faults"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        assert process.wait(10) == 0


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url) as client:
        yield client
        client.delete("/_faults")


@pytest.fixture
def project() -> str:
    return f"project-{uuid.uuid4()}"


@pytest.fixture
def client(url: str, project: str, caplog: pytest.LogCaptureFixture) -> Iterator[opik.Opik]:
    """The SDK; whatever it logs as a warning or an error fails the test."""
    caplog.set_level(logging.WARNING, logger="opik")
    logging.getLogger("opik").propagate = True
    made = opik.Opik(host=url, project_name=project, workspace="default")
    yield made
    made.end()
    told = [record.getMessage() for record in caplog.records if record.name.startswith("opik")]
    assert [text for text in told if OWN_WARNING not in text] == []
