"""From an event handed to Kafka to its score stored: quiet streams, and half the top rate."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.contest import CONTENDERS, play
from benchmarks.lab import Failed, Lab
from benchmarks.options import Options
from benchmarks.pacing import pace, percentile
from benchmarks.records import Feed

GOALS = {"quiet": 0.05, "half": 1.0}
QUIET = 100.0


def run(lab: Lab, options: Options, top: float | None = None) -> dict[str, Any]:
    """p50 and p95 in seconds. `top`: our events a second; measured here in one round where it is not known."""
    top = top or play(lab, CONTENDERS["a"], options.events).rate
    found = [measure(lab, options, "quiet", QUIET, delay) for delay in (0.0, 0.02)]
    found.append(measure(lab, options, "half", top / 2, 0.02))
    return {"top_rate": top, "goals": GOALS, "measured": found}


def measure(lab: Lab, options: Options, load: str, rate: float, delay: float) -> dict[str, Any]:
    """One worker and events at a steady rate. The first second is not counted."""
    feed = Feed(options.events)
    count = min(int(rate * options.paced_seconds), int(options.events * 0.9))
    prefix = f"paced-{time.monotonic_ns()}."
    lab.create_topics(prefix, 4)
    lab.restore()
    worker = lab.worker(prefix, prefix)
    worker.start()
    lab.wait_for_group(prefix, 1)
    lab.sink.reset(delay)
    warm = min(200, feed.turns - count)
    pace(lab, prefix + "thumbs", feed, count, warm, 100.0)
    if not lab.sink.wait_for(2 * warm, 30.0):
        raise Failed(f"the worker did not get going:\n{worker.log_tail()}")
    lab.sink.reset(delay, keep=True)
    sent = pace(lab, prefix + "thumbs", feed, 0, count, rate)
    complete = lab.sink.wait_for(2 * count, 60.0)
    arrived = lab.sink.arrivals()
    worker.stop()
    if not complete or len(arrived) < count:
        raise Failed(f"{len(arrived)} of {count} thumbs arrived at {rate:.0f} a second")
    since = min(sent.values()) + 1.0
    waits = [arrived[trace] - at for trace, at in sent.items() if at >= since]
    achieved = count / (max(sent.values()) - min(sent.values()))
    return {
        "load": load,
        "asked_rate": rate,
        "rate": achieved,
        "sink_delay": delay,
        "events": len(waits),
        # The score has come when the sink has the request; it is stored when the sink answers.
        "to_sink": {"p50": percentile(waits, 0.5), "p95": percentile(waits, 0.95), "max": max(waits)},
        "to_stored": {"p50": percentile(waits, 0.5) + delay, "p95": percentile(waits, 0.95) + delay},
    }
