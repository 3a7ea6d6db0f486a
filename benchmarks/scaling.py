"""One, two and four of our workers on the partitions of one topic."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import psutil

from benchmarks.contest import rate
from benchmarks.lab import Failed, Lab
from benchmarks.options import Options
from benchmarks.records import Feed

PARTITIONS = 8
WORKERS = (1, 2, 4)


def run(lab: Lab, options: Options) -> dict[str, Any]:
    """Events a second by number of workers, and which share of each core's time all processes together took."""
    rounds = min(options.rounds, 3)
    found: dict[int, list[dict[str, float]]] = {count: [] for count in WORKERS}
    for _ in range(rounds):
        for count in WORKERS:
            found[count].append(measure(lab, options, count))
    measured = [
        {"workers": count, **{name: median(one[name] for one in of) for name in of[0]}} for count, of in found.items()
    ]
    return {"rounds": rounds, "partitions": PARTITIONS, "cores": psutil.cpu_count(), "measured": measured}


def measure(lab: Lab, options: Options, workers: int) -> dict[str, float]:
    """The group is complete before there is an event. Timed from the last event produced to nine tenths handled, so
    that neither the producer nor a worker that has run out of records counts."""
    feed = Feed(options.events)
    prefix = f"wide-{workers}-{time.monotonic_ns()}."
    lab.create_topics(prefix, PARTITIONS)
    lab.restore()
    lab.sink.reset(0.02)
    group = [lab.worker(prefix, prefix) for _ in range(workers)]
    for worker in group:
        worker.start()
    lab.wait_for_group(prefix, workers)
    began = time.monotonic()
    lab.produce(prefix + "thumbs", feed.thumbs())
    produced = time.monotonic()
    psutil.cpu_percent()
    complete = lab.sink.wait_for(2 * feed.turns, 60 + feed.turns / 500, lambda: all(w.running for w in group))
    busy = psutil.cpu_percent()
    for worker in group:
        worker.stop()
    if not complete:
        raise Failed(f"{workers} workers wrote {lab.sink.scores()} of {2 * feed.turns} scores")
    marks = lab.sink.marks()
    first = next((mark for mark in marks if mark[0] >= produced), marks[0])
    last = next(mark for mark in marks if mark[1] >= 0.9 * 2 * feed.turns)
    if last[1] - first[1] < 0.3 * 2 * feed.turns:  # handled as fast as they were produced: take it all
        first = next(mark for mark in marks if mark[1] >= 0.1 * 2 * feed.turns)
    return {
        "rate": rate(first, last),
        "rate_with_producing": feed.turns / (marks[-1][0] - began),
        "machine_busy": busy / 100,
        "scores_per_event": marks[-1][1] / feed.turns,
    }
