"""A Redis that answers and can't hold the state: it evicts, or it is full. No worker goes on as if nothing were."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx

from rampgate.local.services.redis import RedisServer
from tests.fault.checking import check
from tests.fault.rig import Rig, now_ms
from tests.fault.traffic import Traffic
from tests.fault.worker_process import WorkerProcess

Make = Callable[..., Rig]


def ask(worker: WorkerProcess, path: str) -> tuple[int, dict[str, Any]]:
    """A probe's answer."""
    lines = [json.loads(line) for line in worker.log().splitlines() if line.startswith("{")]
    url = next(line["url"] for line in lines if line["event"] == "http_listening")
    answer = httpx.get(url + path, timeout=10)
    return answer.status_code, answer.json()


def test_a_redis_that_evicts_keys_is_refused_at_the_start_before_anything_is_consumed(
    make_rig: Make, own_redis: RedisServer
) -> None:
    """Exit code 2, with what to set; once that is set a worker starts."""
    traffic = Traffic(90, 200, now_ms())
    rig = make_rig(redis_server=own_redis)
    rig.opik.load(traffic)
    rig.send(traffic.messages)
    rig.state.config_set("maxmemory", "100mb")
    rig.state.config_set("maxmemory-policy", "allkeys-lru")
    worker = rig.worker()
    assert worker.wait(30) == 2
    assert worker.logged("worker_must_stop")
    assert worker.logged("set its maxmemory-policy to noeviction")
    assert rig.committed() == {}
    assert rig.watermarks() == {}
    rig.state.config_set("maxmemory-policy", "noeviction")
    rig.worker()
    check(rig, traffic)


def test_a_full_redis_is_told_by_readiness_asks_for_no_restart_and_all_goes_on_once_there_is_room(
    make_rig: Make, own_redis: RedisServer
) -> None:
    """Full for longer than a stall may last: nothing is acknowledged, nothing stops."""
    traffic = Traffic(91, 900, now_ms())
    print(f"seed {traffic.seed}: {len(traffic.messages)} records")
    rig = make_rig(redis_server=own_redis, stalled_after_seconds=2)
    rig.opik.load(traffic)
    worker = rig.worker()
    first = len(traffic.messages) // 3
    rig.send(traffic.messages[:first])
    rig.wait("the first part consumed", rig.drained)
    rig.state.config_set("maxmemory", "1mb")
    rig.send(traffic.messages[first:])
    finished = rig.finished()
    rig.wait("readiness tells", lambda: "memory" in str(ask(worker, "/readyz")[1]["reasons"]), 30)
    until = time.monotonic() + 6.0
    while time.monotonic() < until:
        assert ask(worker, "/livez")[0] == 200, "a restart would not help"
        status, health = ask(worker, "/readyz")
        assert status == 503
        assert not health["checks"]["redis"]["ok"]
        time.sleep(0.5)
    assert rig.finished() == finished
    assert worker.running
    rig.state.config_set("maxmemory", "0")
    check(rig, traffic)
    rig.wait("ready again", lambda: ask(worker, "/readyz")[0] == 200, 30)
