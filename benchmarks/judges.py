"""Judges: how near to the bound (calls × latency ÷ calls at once) a gate's scoring comes, and what it costs again with
the answers in Redis (PC5 NFR-2, NFR-3). The model is the stand-in, in a process of its own.

`run` measures in processes of their own, one a round; this module is also what such a process runs.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import date
from statistics import median
from typing import Any

import redis.asyncio as aioredis

from benchmarks.options import Options
from benchmarks.processes import ROOT, measured, serving
from rampgate.local.services.ports import accepts, release_port, reserve_port
from rampgate.local.services.redis import RedisServer

GOALS = {"ratio": 1.15, "warm_seconds": 1.0}
AT_ONCE = 20
WORDS = 250
JUDGES = (
    "capability_alignment", "response_quality", "ux_quality", "tool_compliance", "data_integrity", "fetch_legal",
    "jailbreaking", "privacy_location", "safety_restricted", "sensitive_topics",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """`layer`: `direct` is what we use, `opik` the model layer that Opik brings (litellm)."""

    items: int
    judges: int
    latency: float
    layer: str = "direct"

    @property
    def bound(self) -> float:
        return self.items * self.judges * self.latency / AT_ONCE


CASES = (Case(100, 4, 0.3), Case(345, 10, 0.05), Case(100, 4, 0.3, "opik"))


def run(options: Options) -> dict[str, Any]:
    """Medians of the rounds."""
    found = []
    with RedisServer() as redis:
        for case in CASES:
            with stand_in(case.latency) as url:
                asked = json.dumps({**asdict(case), "url": url, "redis": redis.url})
                rounds = [measured("judges", asked) for _ in range(options.rounds)]
            middle = {name: median(one[name] for one in rounds) for name in rounds[0]}
            found.append({**asdict(case), "bound": case.bound, **middle})
    return {"rounds": options.rounds, "goals": GOALS, "at_once": AT_ONCE, "measured": found}


@contextmanager
def stand_in(latency: float) -> Iterator[str]:
    port = reserve_port()
    words = ("--port", str(port), "--latency", str(latency))
    try:
        with serving("rampgate.local.model", *words, ready=lambda _: accepts(port)):
            yield f"http://127.0.0.1:{port}/v1"
    finally:
        release_port(port)


async def measure(case: Case, url: str, redis_url: str) -> dict[str, float]:
    from evalcore.scoring.chat_model import ChatModel
    from evalcore.scoring.http_client import HttpClient
    from evalcore.scoring.model_caller import CallLimits
    from evalcore.scoring.opik_model import OpikModel
    from evalcore.scoring.runner import Scorer
    from streams.redis.score_cache import RedisScoreCache

    wanted = tasks(case)
    async with HttpClient(AT_ONCE, 60.0) as client, aioredis.Redis.from_url(redis_url) as redis:
        await redis.flushall()
        model: Any = OpikModel(api_base=url, api_key="none") if case.layer == "opik" else ChatModel(client, url)
        cache = RedisScoreCache(redis, "bench:", 3_600)
        limits = CallLimits(at_once=AT_ONCE)
        # One call to connect and, for Opik's layer, to import; it is none of those that are measured.
        await Scorer(model, RedisScoreCache(redis, "first:", 60), limits).score("first", wanted[:1])
        found: dict[str, float] = {}
        for name in ("cold", "warm"):
            lag = asyncio.create_task(longest_lag())
            began, cpu = time.perf_counter(), time.process_time()
            answers = await Scorer(model, cache, limits).score("gate", wanted)
            found[f"{name}_seconds"] = time.perf_counter() - began
            found[f"{name}_cpu"] = time.process_time() - cpu
            lag.cancel()
            found[f"{name}_lag"] = await lag
            if any(one.failure for one in answers) or any(one.cached is not (name == "warm") for one in answers):
                raise RuntimeError(f"the {name} run did not measure what it says: {answers[0]}")
    return found


async def longest_lag() -> float:
    """How much later than it should a timer fired, until cancelled: for so long nothing else was done."""
    worst = 0.0
    with suppress(asyncio.CancelledError):
        while True:
            due = time.perf_counter() + 0.005
            await asyncio.sleep(0.005)
            worst = max(worst, time.perf_counter() - due)
    return worst


def tasks(case: Case) -> list[Any]:
    from evalcore.judges.evaluator import Task
    from evalcore.registry.disk import read_tree
    from evalcore.registry.registry import build
    from evalcore.validation import checked

    registry = build(checked(read_tree(ROOT / "configs"), date(2026, 11, 21))[0])
    judges = [registry.judge(name) for name in JUDGES[: case.judges]]
    return [Task(judge, f"t{number}", "online", trace(number)) for number in range(case.items) for judge in judges]


def trace(number: int) -> dict[str, Any]:
    said = " ".join(f"word{(number * 31 + place * 7) % 997}" for place in range(WORDS))
    return {
        "input": {"messages": [{"role": "user", "content": f"question {number}?"}]},
        "output": {"messages": [{"role": "assistant", "content": [{"type": "text", "text": f"{number}: {said}"}]}]},
        "metadata": {}, "tool_calls": [],
    }  # fmt: skip


if __name__ == "__main__":
    import uvloop

    given = json.loads(sys.argv[1])
    addresses = given.pop("url"), given.pop("redis")
    print(json.dumps(uvloop.run(measure(Case(**given), *addresses))))
