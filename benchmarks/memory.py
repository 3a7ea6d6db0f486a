"""Memory: the worker's over a long run, and what a turn takes in Redis."""

from __future__ import annotations

import time
from typing import Any

import psutil
import redis

from benchmarks.lab import Failed, Lab
from benchmarks.options import Options, progress
from benchmarks.records import Feed

GOAL_BYTES = 300
WEEK, HOUR = 7 * 86_400.0, 3_600.0


def used(lab: Lab) -> int:
    """Bytes of our Redis in use. Nothing runs while this is asked."""
    with redis.Redis.from_url(lab.ours.url) as store:
        return int(store.info("memory")["used_memory"])


def worker_memory(lab: Lab, options: Options) -> dict[str, Any]:
    """MB of resident memory at each tenth of the run. Users change their minds: later thumbs turn earlier ones."""
    feed = Feed(options.events)
    editions = max(options.soak_events // feed.turns, 1)
    total = editions * feed.turns
    prefix = f"soak-{time.monotonic_ns()}."
    lab.create_topics(prefix, 4)
    lab.restore()
    lab.sink.reset(0.02)
    with progress() as bars:
        bar = bars.add_task("thumbs for the long run", total=total)
        lab.produce(prefix + "thumbs", feed.thumbs(editions), lambda n: bars.advance(bar, n))
        worker = lab.worker(prefix, prefix)
        worker.start()
        bar = bars.add_task("the long run", total=total)
        at_tenths: list[tuple[float, float]] = []
        peak, done, began = 0.0, 0, time.monotonic()
        before = lab.consumed("thumbs")
        while done < total:
            if not worker.running or worker.pid is None:
                raise Failed(f"the worker ended in the long run:\n{worker.log_tail()}")
            if time.monotonic() - began > 60 + total / 2_000:
                raise Failed(f"only {done} of {total} events were handled in the long run")
            now = lab.consumed("thumbs") - before
            bars.advance(bar, now - done)
            done = now
            megabytes = psutil.Process(worker.pid).memory_info().rss / 1e6
            peak = max(peak, megabytes)
            if done / total >= (len(at_tenths) + 1) / 10:
                at_tenths.append((done, round(megabytes, 1)))
            time.sleep(0.2)
        seconds = time.monotonic() - began
        worker.stop()
    return {
        "events": total,
        "seconds": seconds,
        "resident_mb_at": at_tenths,
        "resident_mb_peak": round(peak, 1),
        "growth_second_half_mb": round(at_tenths[-1][1] - at_tenths[len(at_tenths) // 2 - 1][1], 1),
    }


def redis_bytes(lab: Lab, turns: int, span: float) -> dict[str, Any]:
    """Bytes a turn with its trace, then with a thumb on every turn too, spread over `span` seconds."""
    feed = Feed(turns, span)
    prefix = f"bytes-{time.monotonic_ns()}."
    lab.create_topics(prefix, 4)
    with redis.Redis.from_url(lab.ours.url) as store:
        store.flushall()
        store.save()
    lab.restore()  # a new process, so that nothing of the old data is left in its figures
    lab.sink.reset(0.0)
    empty = used(lab)
    sizes = []
    for kind, topic, records in (("trace", "traces", feed.traces()), ("thumbs", "thumbs", feed.thumbs())):
        lab.produce(prefix + topic, records)
        worker = lab.worker(prefix, prefix)
        worker.start()
        ends = time.monotonic() + 60 + turns / 2_000
        while lab.consumed(kind) < turns:
            if time.monotonic() > ends or not worker.running:
                raise Failed(f"the worker took in {lab.consumed(kind)} of {turns} {kind} records:\n{worker.log_tail()}")
            time.sleep(0.25)
        worker.stop()
        sizes.append((used(lab) - empty) / turns)
    with redis.Redis.from_url(lab.ours.url) as store:
        kinds = {name: sum(1 for _ in store.scan_iter(f"rg:{name}:*", count=5_000)) for name in "tscek"}
    return {"turns": turns, "span_seconds": span, "with_trace": sizes[0], "with_thumb": sizes[1], "keys": kinds}


def run(lab: Lab, options: Options) -> dict[str, Any]:
    """The Redis figures come last: they empty it."""
    long_run = worker_memory(lab, options)
    spread = [redis_bytes(lab, options.memory_turns, span) for span in (HOUR, WEEK)]
    return {"worker": long_run, "redis": spread, "goal_bytes": GOAL_BYTES}
