"""Our worker under a sampler: `python -m benchmarks.sampler OUT.json`, settings as for `rampgate worker`.

A profiling timer interrupts the main thread every few milliseconds of CPU; what it finds is weighed by the CPU time the
thread has used since. (A sampling thread would need the interpreter's lock, and so mostly see the places that give it
up.) Other threads are told apart by their clocks only. SIGUSR1 begins, SIGUSR2 ends; the result is written at the end.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

INTERVAL = 0.001
Stack = tuple[tuple[str, str], ...]


class Sampler:
    """`cpu`: nanoseconds of the main thread by stack of (file, function), innermost first. `threads`: of the others."""

    def __init__(self) -> None:
        self.cpu: Counter[Stack] = Counter()
        self.lines: Counter[str] = Counter()
        self.threads: dict[str, int] = {}
        self.seconds = self.gc_seconds = 0.0
        self._on = False
        self._since = self._gc_since = 0.0
        self._used = 0

    def begin(self, *_: Any) -> None:
        self.threads = clocks()
        self._since, self._used, self._on = time.monotonic(), time.thread_time_ns(), True
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)

    def end(self, *_: Any) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._on, self.seconds = False, time.monotonic() - self._since
        self.threads = {name: used - self.threads.get(name, 0) for name, used in clocks().items()}

    def collecting(self, phase: str, _: Any) -> None:
        if phase == "start":
            self._gc_since = time.perf_counter()
        elif self._on:
            self.gc_seconds += time.perf_counter() - self._gc_since

    def tick(self, _: int, frame: FrameType | None) -> None:
        if frame is None or not self._on:
            return
        used = time.thread_time_ns()
        spent, self._used = used - self._used, used
        self.lines[f"{frame.f_code.co_filename}:{frame.f_code.co_name}:{frame.f_lineno}"] += spent
        stack: list[tuple[str, str]] = []
        at: FrameType | None = frame
        while at is not None:
            stack.append((at.f_code.co_filename, at.f_code.co_name))
            at = at.f_back
        self.cpu[tuple(stack)] += spent


def clocks() -> dict[str, int]:
    """Nanoseconds of CPU of each thread but the main one."""
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    return {t.name: time.clock_gettime_ns(time.pthread_getcpuclockid(t.ident)) for t in others if t.ident}


def main(out: Path) -> None:
    from rampgate.cli import main as rampgate

    sampler = Sampler()
    signal.signal(signal.SIGUSR1, sampler.begin)
    signal.signal(signal.SIGUSR2, sampler.end)
    signal.signal(signal.SIGPROF, sampler.tick)
    gc.callbacks.append(sampler.collecting)
    sys.argv = ["rampgate", "worker"]
    try:
        rampgate()
    finally:
        document = {
            "seconds": sampler.seconds,
            "gc_seconds": sampler.gc_seconds,
            "threads": sampler.threads,
            "cpu": list(sampler.cpu.items()),
            "lines": sampler.lines.most_common(60),
        }
        out.write_text(json.dumps(document))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
