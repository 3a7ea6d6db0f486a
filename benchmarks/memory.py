"""Memory: what a turn takes in Redis, without live judging and with it. The worker's over a long run: `flat`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson
import redis

from agents.keys import FORM, LIVE_MARK, family_of
from benchmarks.judges import stand_in
from benchmarks.judges import trace as words
from benchmarks.lab import Failed, Lab
from benchmarks.options import Options
from benchmarks.records import Feed

GOAL_BYTES = 300
WEEK, HOUR = 7 * 86_400.0, 3_600.0


def used(lab: Lab) -> int:
    """Bytes of our Redis in use."""
    with redis.Redis.from_url(lab.ours.url) as store:
        return int(store.info("memory")["used_memory"])


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
        kinds = {name: sum(1 for _ in store.scan_iter(f"rg:{name}{FORM}:*", count=5_000)) for name in "tscek"}
    return {"turns": turns, "span_seconds": span, "with_trace": sizes[0], "with_thumb": sizes[1], "keys": kinds}


def with_words(feed: Feed) -> Iterator[tuple[bytes, bytes]]:
    """The feed's traces, with what their judges read."""
    for number, (key, raw) in enumerate(feed.traces()):
        event = orjson.loads(raw)
        metadata = event["metadata"] | {"category": "receipt_scan"}
        yield key, orjson.dumps(event | words(number) | {"metadata": metadata, "feedback_scores": []})


def live_bytes(lab: Lab, turns: int) -> dict[str, Any]:
    """Bytes a turn by family of keys, by MEMORY USAGE, when each turn has its trace and a thumb and all judges of the
    shipped rules have scored it; the model is the stand-in. Keys that do not grow with the turns are left out."""
    feed, prefix = Feed(turns), f"live-{time.monotonic_ns()}."
    lab.create_topics(prefix, 4)
    lab.kafka.create_topics([prefix + name for name in ("ramp-steps", "verdicts", "ramp-commands")], 4)
    with redis.Redis.from_url(lab.ours.url) as store:
        store.flushall()
    with stand_in(0.0) as model:
        live = {"RAMPGATE_MODEL_URL": model, "RAMPGATE_MODEL_KEY": "k" * 32, "RAMPGATE_LIVE_SETTLE_SECONDS": "0"}
        worker = lab.worker(prefix, prefix, settings=live | {"RAMPGATE_MODEL_CALLS_AT_ONCE": "64"})
        worker.start()
        lab.wait_for_group(f"{prefix}-live", 1)  # a new group begins with what comes from now on
        lab.produce(prefix + "traces", with_words(feed))
        lab.produce(prefix + "thumbs", feed.thumbs())
        began, marks = time.monotonic(), 0
        while marks < turns:
            if time.monotonic() - began > 60 + turns / 10 or not worker.running:
                raise Failed(f"{marks} of {turns} traces were judged:\n{worker.log_tail()}")
            time.sleep(1.0)
            with redis.Redis.from_url(lab.ours.url) as store:
                marks = sum(1 for _ in store.scan_iter(f"rg:{LIVE_MARK.prefix}*", count=5_000))
        worker.stop()
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    with redis.Redis.from_url(lab.ours.url) as store:
        for key in store.scan_iter("rg:*", count=5_000):
            family = family_of(key.decode().removeprefix("rg:"))
            name = family.layout if family is not None else "?"
            sizes[name] += int(store.memory_usage(key, samples=0) or 0)
            counts[name] += 1
    return {
        "turns": turns,
        "bytes": {name: size / turns for name, size in sizes.most_common()},
        "keys": {name: count / turns for name, count in counts.items()},
        "total": sizes.total() / turns,
    }


def live(options: Options) -> dict[str, Any]:
    """The figures with live judging on; a part of its own, with a lab of its own."""
    with Lab() as lab:
        return live_bytes(lab, options.live_turns)


def run(lab: Lab, options: Options) -> dict[str, Any]:
    """They empty our Redis."""
    spread = [redis_bytes(lab, options.memory_turns, span) for span in (HOUR, WEEK)]
    return {"redis": spread, "goal_bytes": GOAL_BYTES}
