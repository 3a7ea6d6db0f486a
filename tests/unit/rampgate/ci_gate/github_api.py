"""A stand-in of GitHub on this machine: answers as GitHub's GraphQL API does, as recorded in `pull_request.json`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from evalcore.gates.overrides import Approval, PullRequest

RECORDED = json.loads(Path(__file__).with_name("pull_request.json").read_text())
HEAD = RECORDED["data"]["repository"]["pullRequest"]["headRefOid"]
APPROVED = Approval("owner", HEAD, datetime(2026, 11, 20, 9, 12, 44, tzinfo=UTC))
PULL = PullRequest(
    "example/agents", 12, "writer", HEAD, approvals=(APPROVED,), base="main", reviews_required=1, owners_required=True
)
"""What the recorded answer says, but for description and labels."""


class FakeGitHub:
    """`says` is the next answer: a status and a body. `pull` is the pull request in it, to be changed by tests."""

    def __init__(self) -> None:
        self.body: dict[str, Any] = json.loads(json.dumps(RECORDED))
        self.status = 200
        self.asked: list[dict[str, Any]] = []
        self.tokens: list[str | None] = []
        self.url = ""

    @property
    def pull(self) -> dict[str, Any]:
        found: dict[str, Any] = self.body["data"]["repository"]["pullRequest"]
        return found

    def says(self, description: str, *labels: str) -> None:
        self.pull["body"] = description
        self.pull["labels"] = {"nodes": [{"name": label} for label in labels]}

    def merges(self, commit: str) -> None:
        """The pull request was merged as this commit, after its approvals."""
        self.pull.update(mergedAt="2026-11-20T09:30:00Z", mergeCommit={"oid": commit})


@contextmanager
def github() -> Iterator[FakeGitHub]:
    fake = FakeGitHub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            fake.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            fake.tokens.append(self.headers.get("authorization"))
            content = json.dumps(fake.body).encode()
            self.send_response(fake.status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    fake.url = f"http://127.0.0.1:{server.server_port}/graphql"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
