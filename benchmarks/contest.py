"""One round of one contender: the same topic, the same state, a fresh group, its own process."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import redis

from benchmarks.lab import Failed, Lab
from benchmarks.processes import ROOT
from benchmarks.records import response_id
from rampgate.local.services.process import ChildProcess

PREFIX = "bench."
QUIX_PYTHON = ROOT / ".venv-bench" / "bin" / "python"


@dataclass(frozen=True)
class Contender:
    """`most`: of the events, for one too slow for all of them."""

    letter: str
    name: str
    command: tuple[str, ...] = ()
    most: int = 10**9


def python(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, *arguments)


FAUST = ("--loop", "uvloop", "worker", "--without-web", "-l", "warn")
CONTENDERS = {
    one.letter: one
    for one in (
        Contender("a", "Rampgate's worker, as shipped"),
        Contender("b", "Faust agent, `take(1000)`", python("-m", "benchmarks.contenders.faust_take", *FAUST)),
        Contender("c", "Faust agent, one at a time", python("-m", "benchmarks.contenders.faust_one", *FAUST), 500),
        Contender("d", "quixstreams, `BatchingSink`", (str(QUIX_PYTHON), "-m", "benchmarks.contenders.quix_sink")),
        Contender("e", "bare aiokafka loop (the limit)", python("-m", "benchmarks.contenders.bare_loop")),
    )
}


@dataclass
class Round:
    """Events a second after warm-up, from the first score to the last, and from the process's start.

    `cpu_us`: microseconds of CPU an event cost each process, after warm-up. `profiled`: the events it was taken over.
    """

    letter: str
    events: int
    rate: float
    rate_first_to_last: float
    rate_from_start: float
    first_score_seconds: float
    cpu_us: dict[str, float] = field(default_factory=dict)
    profiled: float = 0.0


def play(lab: Lab, contender: Contender, events: int, *, delay: float = 0.02, profile: Path | None = None) -> Round:
    """Run a contender over the topic's first `events` records; raises Failed where it did not do all of the job."""
    events = min(events, contender.most)
    group = f"round-{contender.letter}-{time.monotonic_ns()}"
    lab.restore()
    lab.sink.reset(delay)
    child = start(lab, contender, group, profile)
    began = time.monotonic()
    timeout = 60 + events / 500
    lab.sink.wait_for(events // 5, timeout, alive=lambda: child.running)
    before, scores = cpu_seconds(lab, child), lab.sink.scores()
    if profile is not None:
        os.kill(child.pid or 0, signal.SIGUSR1)
    complete = lab.sink.wait_for(2 * events, timeout, alive=lambda: child.running)
    after, handled = cpu_seconds(lab, child), max(lab.sink.scores() - scores, 2) / 2
    if profile is not None:
        os.kill(child.pid or 0, signal.SIGUSR2)
    cpu_us = {name: (after[name] - before[name]) / handled * 1e6 for name in after}
    child.stop(grace=20.0)
    if not complete:
        raise Failed(f"({contender.letter}) wrote {lab.sink.scores()} of {2 * events} scores:\n{child.log_tail()}")
    check(lab, contender, group, events)
    marks = [(at, scores) for at, scores in lab.sink.marks() if scores <= 2 * events]
    first, last = marks[0], marks[-1]
    warm = next(mark for mark in marks if mark[1] >= 0.1 * 2 * events)
    return Round(
        contender.letter,
        events,
        rate(warm, last),
        rate(first, last),
        last[1] / 2 / (last[0] - began),
        first[0] - began,
        cpu_us,
        handled,
    )


def rate(since: tuple[float, int], until: tuple[float, int]) -> float:
    """Events a second between two marks; an event is two scores."""
    return (until[1] - since[1]) / 2 / max(until[0] - since[0], 1e-9)


def start(lab: Lab, contender: Contender, group: str, profile: Path | None) -> ChildProcess:
    if contender.letter == "a":
        lab.left_in_good_order(group, PREFIX + "thumbs")
        child = lab.worker(PREFIX, group, profile=profile)
    else:
        environment = {
            "BENCH_KAFKA": lab.kafka.bootstrap,
            "BENCH_TOPIC": PREFIX + "thumbs",
            "BENCH_GROUP": group,
            "BENCH_REDIS": lab.plain.url,
            "BENCH_SINK": lab.sink.url,
            "FAUST_DATADIR": str(lab.folder / "faust"),
            **{name: value for name, value in os.environ.items() if name.startswith("BENCH_")},
        }
        child = lab.process(contender.letter, list(contender.command), environment)
    child.start()
    return child


def cpu_seconds(lab: Lab, child: ChildProcess) -> dict[str, float]:
    """CPU time so far of all that takes part."""
    pids = {"worker": child.pid, "redis": lab.ours.pids[0], "plain redis": lab.plain.pids[0]}
    pids |= {"kafka": lab.kafka.pids[0], "sink": lab.sink_pid}
    out = {}
    for name, pid in pids.items():
        try:
            times = psutil.Process(pid).cpu_times() if pid else None
        except psutil.NoSuchProcess:
            times = None
        out[name] = times.user + times.system if times else 0.0
    out["redis"] += out.pop("plain redis")
    return out


def check(lab: Lab, contender: Contender, group: str, events: int) -> None:
    """That the signals are stored and the offsets committed; only whole runs can be checked exactly."""
    whole = lab.produced == events
    if contender.letter == "a":
        done, scores = lab.consumed("thumbs", "done"), lab.sink.scores()
        if whole and (done != events or scores != 2 * events):
            raise Failed(f"(a) counted {done} signals done and wrote {scores} scores, of {events} events")
    elif whole:
        with redis.Redis.from_url(lab.plain.url) as store:
            sample = range(0, events, max(events // 500, 1))
            stored: list[Any] = [store.hget("turn:" + response_id(turn), "thumbs") for turn in sample]
        if not all(stored):
            raise Failed(f"({contender.letter}) left {stored.count(None)} of {len(stored)} signals unstored")
    committed = lab.committed(group, PREFIX + "thumbs")
    if committed <= 0 or (whole and committed != events):
        raise Failed(f"({contender.letter}) committed up to {committed} of {events} events")


def summary(rounds: list[Round]) -> dict[str, Any]:
    """Medians of a contender's rounds, with the rounds themselves."""
    return {
        "rate": median(one.rate for one in rounds),
        "rate_first_to_last": median(one.rate_first_to_last for one in rounds),
        "rate_from_start": median(one.rate_from_start for one in rounds),
        "first_score_seconds": median(one.first_score_seconds for one in rounds),
        "events": rounds[0].events,
        "cpu_us": {name: median(one.cpu_us[name] for one in rounds) for name in rounds[0].cpu_us},
        "rounds": [asdict(one) for one in rounds],
    }
