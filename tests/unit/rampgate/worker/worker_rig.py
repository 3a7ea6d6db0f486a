"""A worker process beside a copy of the shipped registry; no broker is there, so that it waits for one."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from click.testing import Result
from typer.testing import CliRunner

from rampgate.cli import app
from tests.fork_server import Forked
from tests.root import ROOT

ASKED = "/eval-config?vertical=receipts&category=receipt_scan"
QUALITY = "configs/rules/receipts/response_quality.yaml"
FOLDERS = ("configs", "prompts", "specs")


class Served:
    """A worker of its own beside a copy of the shipped registry."""

    def __init__(self, folder: Path, token: str | None = None) -> None:
        self.folder, self.token = folder, token
        self.http = httpx.Client(timeout=15, trust_env=False)
        self.url = ""
        self.process: Forked

    @property
    def log(self) -> list[dict[str, Any]]:
        lines = (self.folder / "log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def start(self, **settings: str) -> None:
        """With what it needs and nothing that answers; the folder is named as it is seen from there."""
        nowhere = {"RAMPGATE_KAFKA": "127.0.0.1:1", "RAMPGATE_REDIS": "redis://127.0.0.1:1/0"}
        away = {**nowhere, "RAMPGATE_OPIK": "http://127.0.0.1:1/api", "RAMPGATE_CONFIGS": "configs"}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAMPGATE_")}
        token = {"RAMPGATE_TOKEN": self.token} if self.token is not None else {}
        given = {**inherited, **away, **token, **settings, "RAMPGATE_HTTP": "127.0.0.1:0"}
        with (self.folder / "log").open("wb") as log:
            self.process = Forked(["worker"], given, log, log, folder=self.folder)
        until(lambda: any(line["event"] == "http_listening" for line in self.log), "a worker that listens")
        self.url = next(line["url"] for line in self.log if line["event"] == "http_listening")
        until(lambda: self.registry["ok"], "a look at the registry")

    def stop(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(15)
        finally:
            self.process.kill()

    def ask(self, path: str, method: str = "GET", token: str | None = None) -> tuple[int, Any]:
        token = token or self.token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = self.http.request(method, f"{self.url}{path}", headers=headers)
        return answer.status_code, answer.json() if answer.text.startswith("{") else answer.text

    @property
    def registry(self) -> dict[str, Any]:
        """What /readyz says of it."""
        found: dict[str, Any] = self.ask("/readyz")[1]["checks"]["registry"]
        return found

    def thresholds(self) -> Any:
        status, document = self.ask(ASKED)
        assert status == 200, document
        return next(judge for judge in document["judges"] if judge["id"] == "response_quality")["thresholds"]

    def edit(self, old: str, new: str, file: str = QUALITY) -> None:
        path = self.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def refresh(self, *arguments: str) -> Result:
        """`rampgate refresh`."""
        token = {"RAMPGATE_TOKEN": self.token} if self.token is not None else {}
        return CliRunner().invoke(app, ["refresh", *arguments], env={**token, "RAMPGATE_HTTP": self.url})


@contextmanager
def serving(folder: Path, token: str | None = None, **settings: str) -> Iterator[Served]:
    served = Served(folder, token)
    try:
        served.start(**settings)
        yield served
    finally:
        served.http.close()
        if hasattr(served, "process"):
            served.stop()


def copied(folder: Path) -> Path:
    """The shipped registry, where a test may change it."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name)
    return folder


def until(held: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if held():
                return
        except (OSError, KeyError, httpx.TransportError):
            pass
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.02)
