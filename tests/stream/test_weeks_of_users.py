"""Workers hold judges against users by themselves, on real parts: killed, and with Redis emptied (PF-9 FR-10, §5.4)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from evalcore.inversion.user_weeks import merged
from evalcore.inversion.users import Week, latest_closed
from schemas.checks.user_week import UserWeek
from schemas.settings import KafkaAccess
from streams.kafka.reading import records_now
from tests.contract.opik.scripted_opik import trace_id_at
from tests.fault.faulty_opik import FaultyOpik
from tests.fault.rig import Rig

PROJECT = "receipts-eval"
USERS = 80
LOOKS = 3.0
"""Seconds in which a worker, which looks every half second, would have told news twice."""


class Slack:
    """Answers with `status`. `told`: what it took."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.status = 200
        slack = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if slack.status == 200:
                    slack.told.append(body["text"])
                self.send_response(slack.status)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: pytest's output is no place for it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def slack() -> Iterator[Slack]:
    made = Slack()
    yield made
    made.close()


def week_in_opik(opik: FaultyOpik, week: Week) -> None:
    """Users' thumbs, a judge that scores against them and one that goes with nothing."""
    draw = np.random.default_rng(week.number)
    traces, scores = [], []
    for number in range(USERS):
        at = week.since_ms + 1_000 * number
        began = datetime.fromtimestamp(at / 1000, UTC).isoformat().replace("+00:00", "Z")
        trace, thumb = trace_id_at(at), 1.0 if number % 2 else -1.0
        named = {"response_id": f"{week} {number}", "user_id": f"u{number}", "vertical": "receipts"}
        traces.append({
            "id": trace, "project_name": PROJECT, "name": "turn", "metadata": named, "start_time": began,
            "end_time": began, "input": {"q": "hello"}, "output": {"a": "hello"},
        })  # fmt: skip
        said = {"tone": 3.0 - thumb + draw.normal(scale=0.5), "facts": draw.normal(), "user_signal_thumbs": thumb}
        scores += [
            {"id": trace, "name": name, "value": round(float(value), 4), "project_name": PROJECT, "source": "sdk"}
            for name, value in said.items()
        ]
    opik.call("POST", "/v1/private/traces/batch", {"traces": traces})
    opik.call("PUT", "/v1/private/traces/feedback-scores", {"scores": scores})


def weeks_on_the_topic(rig: Rig) -> list[UserWeek]:
    async def read() -> list[UserWeek]:
        access = KafkaAccess((rig.kafka.bootstrap,))
        records = records_now(access, f"{rig.prefix}user-weeks")
        return [UserWeek.model_validate_json(one.value or b"") async for one in records]

    return asyncio.run(read())


def empty_redis(rig: Rig) -> None:
    for key in rig.state.scan_iter(f"{rig.prefix}*"):
        rig.state.delete(key)


def test_pf9_fr10_5_4_two_weeks_against_users_are_told_once_though_workers_die_and_redis_is_emptied(
    rig: Rig, scripted_opik: FaultyOpik, slack: Slack, registry_of_today: Path
) -> None:
    """One worker is killed between the two weeks, one before it could tell; two live on and tell nothing again."""
    last = latest_closed(datetime.now(UTC), timedelta(days=7))
    for week in (last.before, last):
        week_in_opik(scripted_opik, week)
    settings = {"configs": registry_of_today, "regression_seconds": 0.5, "slack_webhook": slack.url}

    scripted_opik.fault(match={"path": "traces/search"}, delay_seconds=1.5)
    first = rig.worker(**settings)
    rig.wait("the first week is looked at", lambda: looked_at(first.log(), last.before), 120)
    first.kill()
    scripted_opik.heal()
    empty_redis(rig)

    slack.status = 403
    second = rig.worker(**settings)
    rig.wait("Slack refuses the news", lambda: second.logged("user_week_not_told"), 120)
    second.kill()
    assert not looked_at(second.log(), last.before), "what the first one found stands on the topic"
    empty_redis(rig)

    slack.status = 200
    third, fourth = rig.worker(**settings), rig.worker(**settings)
    rig.wait("the news are told", lambda: slack.told, 120)
    empty_redis(rig)
    time.sleep(LOOKS)
    fifth = rig.worker(**settings)
    rig.wait("one more worker has started", lambda: fifth.logged("live_judging"), 120)
    time.sleep(LOOKS)
    assert all(one.running for one in (third, fourth, fifth))

    (text,) = slack.told
    assert f"in {last.before} and {last}" in text
    assert "tone in receipts" in text
    assert "facts" not in text
    found = weeks_on_the_topic(rig)
    assert {one.key for one in found} >= {str(last.before), str(last), f"{last}/told"}
    rows = {one.judge_id: one.weeks_in_a_row for one in merged(found)[last].judges}
    assert rows == {"tone": 2, "facts": 0}


def looked_at(log: str, week: Week) -> bool:
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return any(line.get("event") == "user_week" and line.get("week") == str(week) for line in lines)
