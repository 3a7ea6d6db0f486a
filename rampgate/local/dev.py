"""Starts the stack of `rampgate dev`: services, topics, and as child processes a worker and, with DynamoDB, a feed.

It ends everything with close(), or with this process, however it ends.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from rampgate.local.prepared import command, release
from rampgate.local.services.dynamodb import REGION, DynamoDBLocal
from rampgate.local.services.janitor import make_folder, remove_folder
from rampgate.local.services.ports import release_port, reserve_port
from rampgate.local.services.process import ChildProcess
from rampgate.local.services.service import Closing
from rampgate.local.services.stack import Stack
from schemas.topics import Topics

READY_SECONDS = 90.0
ENVIRONMENT = "environment.json"
REAL_SERVICES = (
    "KAFKA_SECURITY",
    "OPIK_WORKSPACE",
    "OPIK_API_KEY",
    "OPIK_API_KEY_FILE",
    "GROUP_INSTANCE_ID",
    "SETTINGS",
    "MODEL_KEY",
    "MODEL_KEY_FILE",
    "PAGERDUTY_KEY",
    "PAGERDUTY_KEY_FILE",
    "SLACK_WEBHOOK",
    "SLACK_WEBHOOK_FILE",
    "GRAFANA_URL",
    "GRAFANA_TOKEN",
    "GRAFANA_TOKEN_FILE",
)
"""Settings that name real services, which a local stack must not use."""


class DevStack(Closing):
    """The whole stack; `addresses` is what `dev --json` prints. Raises ServiceUnavailable and leaves nothing
    running."""

    def __init__(self, *, real: bool = False, worker: bool = True) -> None:
        self._model = own_model()
        parts = {"dynamodb": real, "opik": True, "model": self._model is None}
        self.stack = Stack("real" if real else "embedded", **parts)
        self.children: list[ChildProcess] = []
        self.addresses: dict[str, str | None] = {}
        self._real, self._with_worker = real, worker
        self._reserved: list[int] = []
        self._folder: Path | None = None

    def close(self) -> None:
        for child in reversed(self.children):
            child.stop()
        self.children.clear()
        self.stack.close()
        for port in self._reserved:
            release_port(port)
        self._reserved.clear()
        if self._folder is not None:
            remove_folder(self._folder)
            self._folder = None

    @property
    def ended(self) -> ChildProcess | None:
        """A child that ended by itself; None while all run."""
        return next((child for child in self.children if not child.running), None)

    def start(self) -> None:
        for name in REAL_SERVICES:
            os.environ.pop(f"RAMPGATE_{name}", None)
        stack = self.stack
        http = None
        if self._with_worker:
            http = self._prepare("worker", "rampgate.worker.process", ["worker"])
            if self._real:
                self._prepare("feed", "rampgate.worker.feed", ["feed", "dynamodb"])
        stack.start()
        prefix = os.environ.get("RAMPGATE_TOPIC_PREFIX", Topics().prefix)
        stack.kafka.create_topics(Topics(prefix, os.environ.get("RAMPGATE_AUDIT_TOPIC", Topics().audit)).all)
        environment = self._environment()
        judge = environment["RAMPGATE_MODEL_URL"] = self._model or stack.model.url
        if self._real:
            environment |= self._table(stack.dynamodb)
        for child in self.children:
            release(child.folder / ENVIRONMENT, environment | {"RAMPGATE_HTTP": child_address(child)})
        for child in self.children:
            self._await(child)
        self.addresses = {
            "kafka": stack.kafka.bootstrap,
            "redis": stack.redis.url,
            "opik": stack.opik.url,
            "http": http,
            "judge": judge,
            "dynamodb": stack.dynamodb.endpoint if self._real else None,
        }

    def _environment(self) -> dict[str, str]:
        """The children's environment, on top of this process's own, which may tune the worker but not name real
        services.

        The children read no settings file, because they run in folders of their own.
        """
        paths = {
            name: path for name, path in os.environ.items() if name.startswith("RAMPGATE_") and name.endswith("_FILE")
        }
        paths["RAMPGATE_CONFIGS"] = os.environ.get("RAMPGATE_CONFIGS", "configs")
        return {
            "RAMPGATE_OPIK_LOOKUPS_PER_MINUTE": os.environ.get("RAMPGATE_OPIK_LOOKUPS_PER_MINUTE", "600"),
            **{name: str(Path(path).absolute()) for name, path in paths.items()},
            "RAMPGATE_KAFKA": self.stack.kafka.bootstrap,
            "RAMPGATE_REDIS": self.stack.redis.url,
            "RAMPGATE_OPIK": self.stack.opik.url,
            "RAMPGATE_WRITE": "true",
        }

    def _table(self, dynamodb: DynamoDBLocal) -> dict[str, str]:
        name = os.environ.get("RAMPGATE_THUMBS_TABLE", "thumbs")
        dynamodb.create_thumbs_table(name)
        return {
            **dynamodb.credentials(),
            "RAMPGATE_DYNAMODB_ENDPOINT": dynamodb.endpoint,
            "RAMPGATE_DYNAMODB_REGION": REGION,
            "RAMPGATE_THUMBS_TABLE": name,
        }

    def _prepare(self, name: str, module: str, arguments: list[str]) -> str:
        """Start `rampgate <arguments>` as far as it goes without addresses; return the URL of its HTTP side."""
        port = reserve_port()
        self._reserved.append(port)
        if self._folder is None:
            self._folder = make_folder("rampgate-dev-")
        folder = self._folder / name
        own = {"RAMPGATE_HTTP": f"127.0.0.1:{port}"}
        waiting = command(folder / ENVIRONMENT, module, arguments)
        child = ChildProcess(name, waiting, folder, environment=own, remedy="read the log above")
        self.children.append(child)
        child.start()
        return f"http://127.0.0.1:{port}"

    def _await(self, child: ChildProcess) -> None:
        url = f"http://{child_address(child)}/readyz"
        child.wait_ready(lambda: answers_ok(url), READY_SECONDS)


def own_model() -> str | None:
    """The URL of the user's own model if it is on this machine; None, and the stand-in, for any other: it may cost."""
    url = os.environ.get("RAMPGATE_MODEL_URL", "")
    return url if urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1") else None


def child_address(child: ChildProcess) -> str:
    return child._environment["RAMPGATE_HTTP"]


def answers_ok(url: str) -> bool:
    """Tells whether a GET is answered with 200. Raises OSError for "not yet"; a failing probe's HTTPError is one."""
    with urllib.request.urlopen(url, timeout=2.0) as answer:  # noqa: S310 - our own child, on this machine
        return bool(answer.status == 200)
