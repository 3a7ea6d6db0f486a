"""What a restart costs: seconds from the start of the process to its first score, in three situations."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from benchmarks.lab import Failed, Lab
from benchmarks.options import Options
from benchmarks.records import Feed
from rampgate.local.services.process import ChildProcess

CASES = {
    "cold": "no owner before, a group of its own",
    "after_term": "the owner was stopped with SIGTERM and is gone",
    "after_kill": "the owner was killed with SIGKILL a moment ago; Kafka has to miss it first",
}
GOAL = 2.0
"""Seconds of a cold start."""


def run(lab: Lab, options: Options) -> dict[str, Any]:
    """Medians. An event waits in the topic when the process starts."""
    feed = Feed(options.events)
    found: dict[str, list[float]] = {case: [] for case in CASES}
    stops: list[float] = []
    for number in range(options.restarts):
        for case in CASES:
            found[case].append(measure(lab, feed, case, number, stops))
    return {
        "rounds": options.restarts,
        "cases": CASES,
        "goal": GOAL,
        "seconds": {case: median(of) for case, of in found.items()},
        "all": found,
        "stop_seconds": median(stops),
    }


def measure(lab: Lab, feed: Feed, case: str, number: int, stops: list[float]) -> float:
    prefix = f"restart-{case}-{number}-{time.monotonic_ns()}."
    lab.create_topics(prefix, 4)
    lab.restore()
    lab.sink.reset(0.02)
    if case != "cold":
        owner = lab.worker(prefix, prefix)
        owner.start()
        first_score(lab, feed, prefix, owner, 0)
        time.sleep(1.5)  # its offsets are committed
        began = time.monotonic()
        if case == "after_term":
            owner.stop()
            stops.append(time.monotonic() - began)
        else:
            owner.kill()
    return first_score(lab, feed, prefix, lab.worker(prefix, prefix), 1)


def first_score(lab: Lab, feed: Feed, prefix: str, worker: ChildProcess, turn: int) -> float:
    """Start the worker with one event waiting; seconds until its scores are in."""
    lab.produce(prefix + "thumbs", [feed.thumb(turn)])
    lab.sink.reset(0.02)
    began = time.monotonic()
    worker.start()
    if not lab.sink.wait_for(2, 120.0, lambda: worker.running):
        raise Failed(f"no score came:\n{worker.log_tail()}")
    return lab.sink.marks()[0][0] - began
