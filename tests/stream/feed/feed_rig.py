"""A rig with a thumbs table: items written as the app's backend writes them, feed, worker and sweep as processes."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from datetime import UTC, datetime
from typing import Any

import pytest
import uuid6

from rampgate.local.services.dynamodb import DynamoDBLocal
from tests.fault.rig import Rig
from tests.fault.worker_process import environment
from tests.fork_server import Forked
from tests.stream.commands import Ran, in_process_of_its_own

PROJECT = "feed-eval"


class FeedRig(Rig):
    """`attach` gives it a table. Processes are ended by `close`."""

    dynamodb: DynamoDBLocal
    table: str

    def attach(self, dynamodb: DynamoDBLocal) -> FeedRig:
        self.dynamodb, self.table = dynamodb, self.prefix + "thumbs-table"
        self._feeds: list[Forked] = []
        self.db = dynamodb.client()
        dynamodb.create_thumbs_table(self.table)
        self._settings |= {"thumbs_table": self.table, "dynamodb_endpoint": dynamodb.endpoint}
        return self

    def response_id(self, name: str) -> str:
        """One of this test alone: the local Opik is shared."""
        return f"{self.prefix}{name}"

    def put_item(self, name: str, thumb: str | None = "down", **more: Any) -> None:
        """The item of message `m-<name>`."""
        item: dict[str, Any] = {
            "MessageId": {"S": f"m-{name}"},
            "UserId": {"S": "u"},
            "ResponseId": {"S": self.response_id(name)},
            "CreatedAt": {"S": datetime.now(UTC).isoformat()},
        }
        if thumb is not None:
            item["Thumbs"] = {"S": thumb}
        self.db.put_item(TableName=self.table, Item=item | more)

    def delete_item(self, name: str) -> None:
        self.db.delete_item(TableName=self.table, Key={"MessageId": {"S": f"m-{name}"}})

    def traces(self, *names: str, session: str = "", said: Any = None, gap: float = 1.0, **more: Any) -> dict[str, str]:
        """Completed traces in Opik, `gap` seconds from one's end to the next one's start; returns their ids."""
        at = time.time() - len(names) * (gap + 1.0) - 1.0
        out, ids = [], {}
        for name in names:
            start, end = (datetime.fromtimestamp(moment, UTC).isoformat() for moment in (at, at + 1.0))
            ids[name] = str(uuid6.uuid7())
            metadata = {
                "response_id": self.response_id(name),
                "vertical": "receipts",
                "session_id": self.prefix + (session or name),
            } | more
            trace = {"id": ids[name], "name": "turn", "project_name": PROJECT, "start_time": start, "end_time": end}
            out.append(trace | {"input": said if said is not None else {"q": name}, "metadata": metadata})
            at += gap + 1.0
        self.opik.call("POST", "/v1/private/traces/batch", {"traces": out})
        return ids

    def trace_events(self, ids: dict[str, str]) -> None:
        """Completed-trace events for these, as tracing sends them."""
        now = datetime.now(UTC).isoformat()
        for name, trace_id in ids.items():
            event = {"event_id": name, "trace_id": trace_id, "response_id": self.response_id(name)}
            event |= {"project_name": PROJECT, "started_at": now, "ended_at": now}
            value = json.dumps(event | {"metadata": {"vertical": "receipts"}})
            self._producer.produce(self.prefix + "traces", value, self.response_id(name))
        assert self._producer.flush(20) == 0

    def rerolls(self, *names: str) -> None:
        """Events of rerolls as the history middleware sends them: `slow` comes after the window, `bad` is no JSON."""
        for name in names:
            event = {"event_id": f"reroll-{name}", "response_id": self.response_id(name), "new_response_id": "another"}
            event |= {"occurred_at": time.time(), "elapsed_seconds": 400.0 if name == "slow" else 10.0}
            value = b"{" if name == "bad" else json.dumps(event).encode()
            self._producer.produce(self.prefix + "rerolls", value, self.response_id(name))
        assert self._producer.flush(20) == 0

    def environment(self, **settings: Any) -> dict[str, str]:
        return environment(self._settings | settings) | self.dynamodb.credentials()

    def run(self, *arguments: str, **settings: Any) -> Ran:
        """`rampgate …` to its end."""
        return in_process_of_its_own(self.environment(**settings), *arguments)

    def feed(self, *arguments: str) -> Forked:
        log = (self.folder / f"feed-{len(self._feeds)}.log").open("ab")
        feed = Forked(["feed", "dynamodb", *arguments], self.environment(), log, log)
        log.close()
        self._feeds.append(feed)
        return feed

    def end(self, feed: Forked) -> int:
        """Its exit code. A call to DynamoDB that is under way may take 15 s before the feed gives it up."""
        feed.send_signal(signal.SIGTERM)
        try:
            return feed.wait(45)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the feed does not stop:\n{self.feed_log(self._feeds.index(feed))}")

    def feed_log(self, number: int = -1) -> str:
        return (self.folder / f"feed-{number % len(self._feeds)}.log").read_text()

    def published(self) -> list[dict[str, Any]]:
        """What is on the thumbs topic, by partition and offset."""
        return [json.loads(record.value or b"null") for record in self.records("thumbs")]

    def sweep(self, *arguments: str, **settings: Any) -> dict[str, Any]:
        ran = self.run("sweep", "--since", "1d", "--json", *arguments, **settings)
        assert ran.code == 0, ran.err
        return dict(ran.json)

    def score_of(self, trace_id: str) -> dict[str, float]:
        return {name: value for (trace, name), value in self.opik.scores([PROJECT]).items() if trace == trace_id}

    def writes_of(self, ids: dict[str, str]) -> dict[tuple[str, str], int]:
        wanted = set(ids.values())
        return {key: n for key, n in self.opik.writes().items() if key[0] in wanted}

    def close(self) -> None:
        for feed in getattr(self, "_feeds", ()):
            if feed.poll() is None:
                feed.kill()
                feed.wait()
        super().close()
