"""Two million events with live judging on: whether memory, Redis and series stay flat, tenth by tenth.

Each tenth brings new turns, their traces, and thumbs of all turns so far; it is over once the join and the live judges
have committed all of it. The model is the stand-in, in a process of its own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx
import orjson
import psutil
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.judges import stand_in
from benchmarks.lab import Failed, Lab
from benchmarks.memory import used, with_words
from benchmarks.options import Options, progress
from benchmarks.records import Feed
from rampgate.local.services.ports import release_port, reserve_port

TENTHS = 10
EVENTS_PER_TURN = 40
"""One trace; the rest are thumbs."""
RATE = 0.1
"""Sampling rate of the quality judges. Safety judges score every trace, and a turn voted down is scored by all."""
VOTED_DOWN = 20
"""One turn of so many is voted down each time; the others are voted up again and again."""
SECONDS = 3_600.0
TOPICS = ("traces", "thumbs")


def run(options: Options) -> dict[str, Any]:
    port = reserve_port()
    try:
        with Lab() as lab, stand_in(0.0) as model:
            for file in (lab.configs / "rules").rglob("*.yaml"):
                rule = file.read_text()
                if re.search("^classification: quality$", rule, re.M):
                    file.write_text(re.sub("^sampling_rate: .*", f"sampling_rate: {RATE}", rule, flags=re.M))
            return measure(lab, options.flat_events, model, port)
    finally:
        release_port(port)


def measure(lab: Lab, events: int, model: str, port: int) -> dict[str, Any]:
    prefix = "flat."
    lab.create_topics(prefix, 4)
    lab.sink.reset(0.0)
    turns = events // EVENTS_PER_TURN // TENTHS * TENTHS
    feed = Feed(turns)
    traces = with_words(feed)
    settings = {
        "RAMPGATE_MODEL_URL": model, "RAMPGATE_MODEL_KEY": "k" * 32, "RAMPGATE_MODEL_CALLS_AT_ONCE": "64",
        "RAMPGATE_LIVE_SETTLE_SECONDS": "1", "RAMPGATE_HTTP": f"127.0.0.1:{port}",
    }  # fmt: skip
    worker = lab.worker(prefix, prefix, settings=settings)
    empty = used(lab)
    worker.start()
    lab.wait_for_group(f"{prefix}-live", 1)  # it begins with what comes from its start on
    rows: list[dict[str, float]] = []
    sent, began = dict.fromkeys(TOPICS, 0), time.monotonic()
    with progress() as bars:
        bar = bars.add_task("tenths", total=TENTHS)
        for tenth in range(1, TENTHS + 1):
            known, new = turns * tenth // TENTHS, turns // TENTHS
            records = {
                "traces": islice(traces, new),
                "thumbs": thumbs(feed, known, tenth, new * (EVENTS_PER_TURN - 1)),
            }
            for topic, some in records.items():
                # A thumbs-down before its trace would be parked, and looked at again only after a while.
                sent[topic] += lab.produce(prefix + topic, some)
                while not settled(lab, prefix, topic, sent[topic]):
                    if not worker.running:
                        raise Failed(f"the worker ended:\n{worker.log_tail()}")
                    if time.monotonic() - began > SECONDS * tenth:
                        raise Failed(f"tenth {tenth} was not done in an hour:\n{worker.log_tail()}")
                    time.sleep(1.0)
            row = sample(lab, worker.pid or 0, port)
            row |= {"events": sum(sent.values()), "redis_bytes_per_turn": round((row["redis_bytes"] - empty) / known)}
            rows.append(row)
            if row["judged"] < known:
                raise Failed(
                    f"{row['judged']:.0f} scores for {known} turns, so no judging is measured:\n{worker.log_tail()}"
                )
            bars.advance(bar)
    worker.stop()
    return {
        "events": sum(sent.values()), "turns": turns, "rate": RATE, "voted_down": 1 / VOTED_DOWN,
        "seconds": round(time.monotonic() - began), "tenths": rows,
    }  # fmt: skip


def thumbs(feed: Feed, known: int, edition: int, count: int) -> Iterator[tuple[bytes, bytes]]:
    for number in range(count):
        turn, again = number % known, edition * 1_000 + number // known
        key, value = feed.thumb(turn, again)
        event = orjson.loads(value)
        event["value"] = "up" if turn % VOTED_DOWN else "down"
        yield key, orjson.dumps(event)


def settled(lab: Lab, group: str, topic: str, sent: int) -> bool:
    """Join and live judges have committed everything. The group has its topics' prefix for a name."""
    return all(lab.committed(one, group + topic) >= sent for one in (group, f"{group}-live"))


def sample(lab: Lab, pid: int, port: int) -> dict[str, float]:
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=30.0).text
    series, judged = 0, 0.0
    for family in text_string_to_metric_families(text):
        series += len(family.samples)
        if family.name == "rampgate_live_judge_scores":
            judged = sum(one.value for one in family.samples if one.labels.get("outcome") == "scored")
    return {
        "judged": judged, "resident_mb": round(psutil.Process(pid).memory_info().rss / 1e6, 1),
        "redis_bytes": used(lab), "series": series, "metrics_kb": round(len(text) / 1e3, 1),
    }  # fmt: skip
