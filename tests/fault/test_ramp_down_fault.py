"""A ramp-down waits for no one: PagerDuty, Slack and Grafana accept and never answer, and the worker that found the
breach is killed between the steps of its response (PC5 §5.7)."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.fault.faulty_gates import Model
from tests.fault.held import PARTITIONS
from tests.fault.rig import Rig, now_ms
from tests.fault.turns import Message
from tests.fault.worker_process import WorkerProcess
from tests.stream.gates.ramp_rig import trace

Make = Callable[..., Rig]
SLOW = pytest.mark.slow
TRACES = 90
"""Of a version; a third is bad."""
SETTLE = 2
WITHIN = 60.0
"""Seconds from the settling of a version's last trace to its command."""
FOUND = '"event": "regression"'


class Receivers:
    """Take every message, and answer from then on that they may. `came`: (path, body) of each request; `taken`: of each
    that got an answer."""

    def __init__(self) -> None:
        self.came: list[tuple[str, Any]] = []
        self.taken: list[tuple[str, Any]] = []
        self._answers = threading.Event()
        receivers = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))
                receivers.came.append(message)
                receivers._answers.wait()
                receivers.taken.append(message)
                try:
                    self.send_response(202)
                    self.end_headers()
                except OSError:
                    receivers.taken.remove(message)  # who sent it has given up, or died

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: pytest's output is no place for it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self) -> None:
        self._answers.set()

    def close(self) -> None:
        self.answer()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receivers() -> Iterator[Receivers]:
    made = Receivers()
    yield made
    made.close()


class Watched:
    """Workers that judge live traces, and whose messages hang."""

    def __init__(self, make: Make, model: Model, receivers: Receivers, folder: Path, every: float) -> None:
        self.receivers, self.log = receivers, folder / "regressions.md"
        self.rig = make(
            model_url=model.url, model_key="secret", live_judging="true", live_settle_seconds=SETTLE,
            regression_seconds=every, regression_minimum=30, regressions_log=self.log, pagerduty_key="routing",
            pagerduty_url=f"{receivers.url}/page", slack_webhook=f"{receivers.url}/slack",
            grafana_url=receivers.url, grafana_token="token", session_timeout_seconds=6,
        )  # fmt: skip
        self.rig.kafka.create_topics([f"{self.rig.prefix}ramp-commands"], PARTITIONS)
        self.settled: dict[str, int] = {}

    def traffic(self, version: str) -> None:
        """Of the version, a third bad; notes when the last of it settles."""
        events = [trace(f"{version}-{number}", version) for number in range(TRACES)]
        for number, event in enumerate(events):
            event["metadata"] |= {"user_id": f"u{number}", "session_id": f"s{number}"}
            event["output"]["messages"][-1]["content"][0]["text"] = f"#quality:{0 if number % 3 == 0 else 1}"
        self.rig.send(Message("traces", e["response_id"].encode(), json.dumps(e).encode()) for e in events)
        self.settled[version] = now_ms() + 1_000 * SETTLE

    def commands(self, version: str) -> dict[str, int]:
        """When each judge's command about the version was sent, in ms; none has two."""
        records = [(json.loads(record.value or b""), record) for record in self.rig.records("ramp-commands")]
        of_it = [(value["judge_id"], record.timestamp) for value, record in records if _about(value) == version]
        assert len(of_it) == len(dict(of_it)), f"a breach is commanded twice: {of_it}"
        return dict(of_it)

    def waited(self, version: str) -> float:
        """Seconds from the settling of its last trace to the version's first command."""
        self.rig.wait(f"{version} is ramped down", lambda: bool(self.commands(version)), 2 * WITHIN)
        return (min(self.commands(version).values()) - self.settled[version]) / 1000

    def found(self, seconds: float = 2 * WITHIN) -> WorkerProcess:
        """The worker that found a breach, stopped as soon as it says so: its command takes longer."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for worker in self.rig.workers:
                if worker.logged(FOUND):
                    worker.pause()
                    return worker
            time.sleep(0.005)
        raise AssertionError("no worker found a breach")

    def pages(self, version: str) -> list[str]:
        """Summaries of what PagerDuty took about the version."""
        pages = [body["payload"] for path, body in self.receivers.taken if path == "/page" and "payload" in body]
        return [page["summary"] for page in pages if page["custom_details"]["agent_version"] == version]


def _about(command: dict[str, Any]) -> str:
    version: str = command["agent_version"]
    return version


@pytest.mark.parametrize("every", [3.0, pytest.param(30.0, marks=SLOW)], ids=["often", "as shipped"])
@pytest.mark.parametrize("killed", [pytest.param("nobody", marks=SLOW), "before the command", "amid the notices"])
def test_pc5_5_7_a_bad_version_is_ramped_down_within_a_minute_though_no_receiver_answers_and_the_watcher_dies(
    make_rig: Make, model: Model, receivers: Receivers, tmp_path: Path, killed: str, every: float,
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    """Each breach gets one command, and in the end every page says what became of it."""
    watched = Watched(make_rig, model, receivers, tmp_path, every)
    rig = watched.rig
    for _ in range(2):
        rig.worker()
    rig.wait("two workers judge", lambda: rig.sharing("traces") == 2)
    watched.traffic("v-bad")
    if killed != "nobody":
        finder = watched.found()
        assert watched.commands("v-bad") == {}, "it is killed before its command"
        if killed == "amid the notices":
            finder.resume()
            rig.wait("its pages hang", lambda: any(path == "/page" for path, _ in receivers.came), WITHIN, 0.01)
        finder.kill()
    waits = {"v-bad": watched.waited("v-bad")}
    watched.traffic("v-worse")
    waits["v-worse"] = watched.waited("v-worse")
    figures = {"killed": killed, "every": every, **waits}
    record_property("figures", figures)
    print(figures)
    assert max(waits.values()) <= WITHIN, waits
    rig.wait("all its breaches are commanded", lambda: len(watched.commands("v-worse")) >= 2, WITHIN)
    assert receivers.taken == [], "no receiver has answered yet"
    judges = {version: set(watched.commands(version)) for version in watched.settled}
    receivers.answer()
    for version, commanded in judges.items():
        rig.wait("each of its breaches is paged", lambda v=version: len(watched.pages(v)) >= len(judges[v]), 150.0)  # type: ignore[misc] # mypy knows no defaults of lambdas
        assert {summary.partition(" is below")[0] for summary in watched.pages(version)} == commanded
        assert all("It is being ramped down to 0 %" in summary for summary in watched.pages(version))
    time.sleep(2 * min(every, 5.0))
    assert Counter({version: set(watched.commands(version)) for version in judges}) == Counter(judges)
    rows = watched.log.read_text()
    assert all(f"| {judge} |" in rows and f"| {version} |" in rows for version in judges for judge in judges[version])
